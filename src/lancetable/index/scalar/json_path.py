"""JSON: an index of another kind on the values at one path of JSON documents."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import CorruptError, InputError
from lancetable.expression import Call, Column, Expression, Literal, evaluate, literal, walk
from lancetable.expression.tree import rebuild
from lancetable.format.manifest.indices.codec import decode_json_details, encode_json_details
from lancetable.format.manifest.indices.kinds import KINDS, kind_name
from lancetable.format.rows import RowSet
from lancetable.index.base import ROW, VALUE, ScalarIndex, ScalarKind, Sink, Source, Warmed
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar import bitmap, btree
from lancetable.index.specs import JsonPath, Spec

_KEY = re.compile(r"(?:\$\.)?([A-Za-z_][A-Za-z0-9_]*)")
_GETTERS: Mapping[str, pa.DataType] = {
    "json_get_int": pa.int64(),
    "json_get_float": pa.float64(),
    "json_get_string": pa.string(),
    "json_get_bool": pa.bool_(),
}
_DOCUMENT = "document"
_VALUES = {"bitmap": (bitmap.FILE, "keys"), "btree": (btree.LOOKUP, "min")}
"""Where the kinds that hold values have some, by which their type is known."""
TARGETS = ("btree", "bitmap", "ngram")
"""Kinds of the index on the values: those that hold rows as this kind does."""


def target_of(details: bytes) -> str:
    """Return the kind of the index on the values.

    Raises:
        CorruptError: the details are damaged.
    """
    return kind_name(decode_json_details(details)[1])


class JsonPathSegment:
    """An opened segment: ``index`` holds the values of type ``type_`` at a path.

    The functions that predicates use take a key. Only the path of a single key names the same
    value; it is written as the key, or as ``$.key``.
    """

    def __init__(self, path: str, type_: pa.DataType, index: ScalarIndex) -> None:
        key = _KEY.fullmatch(path)
        self._key = key[1] if key else None
        self._type = type_
        self._index = index

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the index on the values describes."""
        return self._index.covered(fragments)

    def warm(self) -> None:
        """Read what the index on the values keeps."""
        if isinstance(self._index, Warmed):
            self._index.warm()

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows for which a part of a predicate on the value at the path is true."""
        of_values = self._of_values(part)
        if any(one == Column((_DOCUMENT,)) for one in walk(of_values)):
            return None
        found = self._index.search(of_values)
        # Another writer may read other values out of the documents: rows are compared again.
        return None if found is None else found.at_most()

    def _of_values(self, part: Expression) -> Expression:
        match part:
            case Call(name, (Column(), Literal() as key)) if (
                key.value == self._key and _GETTERS.get(name) == self._type
            ):
                return Column((VALUE,))
            case Column():
                return Column((_DOCUMENT,))
            case _:
                return rebuild(part, self._of_values)


class JsonPathKind:
    """Build, merge and open segments through the kind of the index on the values."""

    name = JsonPath.kind

    def __init__(self, kinds: Iterable[ScalarKind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds if kind.name in TARGETS}

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        is_text = pt.is_string(type_) or pt.is_large_string(type_)
        return None if is_text else "it takes JSON documents"

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment; the first value that is there decides the type of all."""
        assert isinstance(spec, JsonPath)
        kind = self._kinds[spec.target.kind]
        key = _KEY.fullmatch(spec.path)
        if key is None:
            raise InputError(
                f"path is {spec.path!r}; give the key of a value, such as 'a' or '$.a'"
            )
        getter, batches = _getter(iter(rows), key[1])
        of_values = _GETTERS[getter]
        reason = kind.refuses(of_values)
        if reason is not None:
            raise InputError(
                f"the values at {spec.path!r} are of type {of_values}, which an index of kind "
                f"{kind.name!r} does not take: {reason}"
            )
        values = (_values(batch, getter, key[1]) for batch in batches)
        details = kind.build(values, of_values, spec.target, sink, memory_bytes)
        return _details(spec, details)

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several; those with values of different types are not merged."""
        assert isinstance(spec, JsonPath)
        kind = self._kinds[spec.target.kind]
        types = {_type(source.files, kind.name) for source in sources}
        if len(types) > 1:
            return None
        details = kind.merge(sources, types.pop(), spec.target, sink, memory_bytes)
        return None if details is None else _details(spec, details)

    def spec(self, files: SegmentFiles) -> JsonPath:
        """Return the parameters of a segment."""
        path = decode_json_details(files.segment.details)[0]
        return JsonPath(path, self._target(files).spec(files))  # type: ignore[arg-type]

    def open(self, files: SegmentFiles) -> JsonPathSegment:
        """Return an opened segment."""
        path = decode_json_details(files.segment.details)[0]
        kind = self._target(files)
        return JsonPathSegment(path, _type(files, kind.name), kind.open(files))

    def _target(self, files: SegmentFiles) -> ScalarKind:
        name = target_of(files.segment.details)
        if name not in self._kinds:
            raise CorruptError(f"an index on JSON documents is of kind {name!r}")
        return self._kinds[name]


def _details(spec: JsonPath, details: bytes) -> bytes:
    return encode_json_details(spec.path, KINDS[spec.target.kind].type_url, details)


def _type(files: SegmentFiles, kind: str) -> pa.DataType:
    return files.type(*_VALUES[kind]) if kind in _VALUES else pa.string()


def _getter(rows: Iterator[pa.RecordBatch], key: str) -> tuple[str, Iterator[pa.RecordBatch]]:
    """Return the function for the type of the first value that is there, and all rows."""
    seen = []
    for batch in rows:
        seen.append(batch)
        found = _values(batch, "json_get", key).column(VALUE).drop_null()
        for text in found.to_pylist():
            value = json.loads(text)
            if value is not None:
                return _name(value), chain(seen, rows)
    return "json_get_string", iter(seen)


def _name(value: object) -> str:
    match value:
        case bool():
            return "json_get_bool"
        case int():
            return "json_get_int"
        case float():
            return "json_get_float"
        case _:
            return "json_get_string"


def _values(batch: pa.RecordBatch, getter: str, key: str) -> pa.RecordBatch:
    """Return the values at a key of documents, with their rows."""
    values = evaluate(Call(getter, (Column((VALUE,)), literal(key))), batch)
    return pa.RecordBatch.from_arrays([values, batch.column(ROW)], [VALUE, ROW])
