"""Write the files of a segment of a full-text index; ``partition`` tells what they hold.

Beside what readers need, a list has the largest score of its word, its blocks begin with theirs,
and ``_impacts`` has the pairs of frequency and length of document with which scores can be bounded.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.arrays import booleans, numbers
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.postings_encode import (
    Encoded,
    PostingLists,
    Weights,
    Words,
    encode_blocks,
    encode_impacts,
    encode_position_items,
    encode_positions,
)
from lancetable.format.encoding.kernels.token_set_encode import encode_tokens
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.index.base import Numbers, Sink
from lancetable.index.specs import FullText
from lancetable.index.text.bm25 import K1, Statistics, norms_of
from lancetable.index.text.runs import Runs

METADATA = "metadata.lance"
_TAILS = {1: "fixed32_v1", 2: "varint_delta_v1"}
_POSITIONS = {"positions_layout": "shared_stream_v2", "positions_codec": "packed_delta_v1"}
_DOCUMENTS_PER_BATCH = 1 << 20
_BYTES_PER_DOCUMENT = 64
_BLOCKS = pa.list_(pa.large_binary())
_METADATA_SCHEMA = pa.schema([pa.field("deleted_fragments", pa.binary(), nullable=False)])
_DOCS_SCHEMA = pa.schema(
    [
        pa.field("_rowid", pa.uint64(), nullable=False),
        pa.field("_num_tokens", pa.uint32(), nullable=False),
    ]
)
_TOKENS_SCHEMA = pa.schema(
    [
        pa.field("_token_fst_bytes", pa.large_binary(), nullable=False),
        pa.field("_token_next_id", pa.uint32(), nullable=False),
        pa.field("_token_total_length", pa.uint64(), nullable=False),
    ]
)


class Documents(NamedTuple):
    """The documents of a partition, by their numbers."""

    rows: Numbers
    lengths: Words
    """How many words each has."""


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """Write partitions one after the other, and then what describes the segment."""

    sink: Sink
    spec: FullText
    memory_bytes: int

    def write_partition(
        self, number: int, documents: Documents, words: pa.Array, runs: Runs
    ) -> None:
        """Write a partition.

        Args:
            number: the number of the partition.
            documents: the documents.
            words: the words in the order of their numbers.
            runs: the lists of the words.
        """
        name = f"part_{number}"
        counts = runs.counts(len(words))
        if not counts.all():
            words = words.filter(booleans(counts > 0))
        self._write_documents(f"{name}_docs.lance", documents)
        self._write_tokens(f"{name}_tokens.lance", words)
        metadata = {"format_version": str(self.spec.format_version), "posting_block_size": "128"}
        if self.spec.format_version > 1:
            metadata["posting_tail_codec"] = _TAILS[self.spec.format_version]
            metadata |= _POSITIONS if self.spec.with_position else {}
        batches = self._lists(documents, runs, counts)
        self.sink.write(f"{name}_invert.lance", self._schema(), batches, metadata=metadata)

    def write_metadata(self, partitions: Sequence[int]) -> None:
        """Write the file that describes the segment."""
        spec = self.spec
        metadata = {
            "partitions": json.dumps([*partitions]),
            "params": spec.to_json(),
            "token_set_format": "fst",
            "format_version": str(spec.format_version),
            "posting_tail_codec": _TAILS[spec.format_version],
            "posting_block_size": "128",
        }
        if spec.with_position and spec.format_version > 1:
            metadata |= _POSITIONS
        batch = pa.RecordBatch.from_arrays(
            [pa.array([encode_bitmap([])], pa.binary())], schema=_METADATA_SCHEMA
        )
        self.sink.write(METADATA, _METADATA_SCHEMA, [batch], metadata=metadata)

    def _write_documents(self, name: str, documents: Documents) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            for first in range(0, len(documents.rows), _DOCUMENTS_PER_BATCH):
                place = slice(first, first + _DOCUMENTS_PER_BATCH)
                columns = [numbers(documents.rows[place]), numbers(documents.lengths[place])]
                yield pa.RecordBatch.from_arrays(columns, schema=_DOCS_SCHEMA)

        total = {"total_tokens": str(int(documents.lengths.sum(dtype=np.int64)))}
        self.sink.write(name, _DOCS_SCHEMA, batches(), metadata=total)

    def _write_tokens(self, name: str, words: pa.Array) -> None:
        order = pc.sort_indices(words)
        _, edges, data = words.take(order).buffers()
        ends = np.frombuffer(edges, np.int64)[: len(words) + 1]
        text = np.frombuffer(data or b"", np.uint8)
        made = encode_tokens(text, ends, order.to_numpy().astype(np.int64))
        columns = [
            pa.array([made], pa.large_binary()),
            pa.array([len(words)], pa.uint32()),
            pa.array([int(ends[-1])], pa.uint64()),
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=_TOKENS_SCHEMA)
        self.sink.write(name, _TOKENS_SCHEMA, [batch])

    def _schema(self) -> pa.Schema:
        fields = [
            ("_posting", _BLOCKS),
            ("_max_score", pa.float32()),
            ("_length", pa.uint32()),
            ("_impacts", _BLOCKS),
        ]
        if self.spec.with_position and self.spec.format_version == 1:
            fields.append(("_position", pa.list_(_BLOCKS)))
        elif self.spec.with_position:
            fields.append(("_compressed_position", pa.large_binary()))
            fields.append(("_position_block_offset", pa.list_(pa.uint32())))
        return pa.schema([pa.field(name, type_, nullable=False) for name, type_ in fields])

    def _lists(
        self, documents: Documents, runs: Runs, counts: Integers
    ) -> Iterable[pa.RecordBatch]:
        schema = self._schema()
        statistics = Statistics(len(documents.rows), int(documents.lengths.sum(dtype=np.int64)))
        norms = norms_of(documents.lengths, statistics.average)
        for lists in runs.chunks(len(counts), max(self.memory_bytes // _BYTES_PER_DOCUMENT, 1)):
            used = _without_empty(lists)
            weights = Weights(norms, _largest_scores(used.counts, statistics.documents))
            columns = self._columns(used, weights, documents.lengths)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _columns(self, lists: PostingLists, weights: Weights, lengths: Words) -> list[pa.Array]:
        blocks, best = encode_blocks(lists, weights, plain_tail=self.spec.format_version == 1)
        impacts = encode_impacts(lists, lengths)
        columns = [
            _listed(lists.blocks, _binary(blocks)),
            numbers(best),
            numbers(lists.counts.astype(np.uint32)),
            _listed(lists.blocks + 1, _binary(impacts)),
        ]
        if not self.spec.with_position:
            return columns
        if self.spec.format_version == 1:
            items, per_document = encode_position_items(lists)
            inner = _listed(per_document, _binary(items))
            return [*columns, _listed(lists.counts, inner)]
        return [*columns, *_streams(lists.blocks, encode_positions(lists))]


def _largest_scores(counts: Integers, documents: int) -> npt.NDArray[np.float64]:
    """Return the score of each word in a document of nothing else."""
    found: npt.NDArray[np.float64] = np.log1p((documents - counts + 0.5) / (counts + 0.5))
    return found * (K1 + 1)


def _without_empty(lists: PostingLists) -> PostingLists:
    """Return the lists that have documents."""
    used = np.append(True, lists.counts > 0)
    if used.all():
        return lists
    starts = None if lists.starts is None else lists.starts[used]
    return lists._replace(edges=lists.edges[used], starts=starts)


def _edges(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)])


def _binary(items: Encoded) -> pa.Array:
    edges = np.concatenate([[0], items.ends])
    return _large(edges, items.data)


def _large(edges: Integers, data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(edges) - 1, buffers)


def _listed(sizes: Integers, items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(numbers(_edges(sizes).astype(np.int32)), items)


def _streams(blocks: Integers, parts: Encoded) -> list[pa.Array]:
    """Return the positions of each word as one stream, and where the part of each block starts."""
    edges = _edges(blocks)
    ends = np.concatenate([[0], parts.ends])
    streams = ends[edges]
    inside = (ends[:-1] - np.repeat(streams[:-1], blocks)).astype(np.uint32)
    return [_large(streams, parts.data), _listed(blocks, numbers(inside))]
