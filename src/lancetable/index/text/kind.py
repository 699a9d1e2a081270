"""INVERTED: build and merge segments of full-text indices."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from lancetable.format.encoding.kernels.postings_encode import varint
from lancetable.index.base import Sink, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.specs import FullText, Spec
from lancetable.index.text.build import build
from lancetable.index.text.merge import merge
from lancetable.index.text.write import METADATA

_BLOCK = 128


class TextKind:
    """Build and merge segments."""

    name = FullText.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        if pt.is_list(type_) or pt.is_large_list(type_):
            type_ = type_.value_type
        is_text = pt.is_string(type_) or pt.is_large_string(type_)
        return None if is_text else "it takes texts, lists of texts and JSON documents"

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        assert isinstance(spec, FullText)
        build(rows, spec, sink, memory_bytes)
        return _details(spec)

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several; None when they were not analysed alike."""
        assert isinstance(spec, FullText)
        return _details(spec) if merge(sources, spec, sink, memory_bytes) else None

    def spec(self, files: SegmentFiles) -> FullText:
        """Return the parameters of a segment.

        Raises:
            CorruptError: they are damaged.
            UnsupportedError: this release does not have the tokenizer.
        """
        metadata = files.metadata(METADATA)
        version = 1 if metadata.get("format_version", "1") == "1" else 2
        return FullText.from_json(metadata.get("params", "{}"), format_version=version)


def _details(spec: FullText) -> bytes:
    """Return the message; its fields have the numbers that stand here, others are left out."""
    numbers = {
        3: spec.with_position,
        4: spec.max_token_length,
        5: spec.lower_case,
        6: spec.stem,
        7: spec.remove_stop_words,
        8: spec.ascii_folding,
        9: spec.min_ngram_length,
        10: spec.max_ngram_length,
        11: spec.prefix_only,
        12: _BLOCK,
        15: spec.format_version,
    }
    texts = {1: spec.base_tokenizer, 2: f'"{spec.language}"'}
    parts = [
        varint(number << 3 | 2) + varint(len(text.encode())) + text.encode()
        for number, text in texts.items()
    ]
    parts += [varint(number << 3) + varint(value) for number, value in numbers.items() if value]
    return b"".join(parts)
