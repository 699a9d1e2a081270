"""JSON: an index of another kind on the values at one path of JSON documents."""

import re
from collections.abc import Mapping

import pyarrow as pa

from lancetable.expression import Call, Column, Expression, Literal, walk
from lancetable.expression.tree import rebuild
from lancetable.format.rows import RowSet
from lancetable.index.base import VALUE, ScalarIndex

_KEY = re.compile(r"(?:\$\.)?([A-Za-z_][A-Za-z0-9_]*)")
_GETTERS: Mapping[str, pa.DataType] = {
    "json_get_int": pa.int64(),
    "json_get_float": pa.float64(),
    "json_get_string": pa.string(),
    "json_get_bool": pa.bool_(),
}
_DOCUMENT = "document"


class JsonPath:
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

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows for which a part of a predicate on the value at the path is true."""
        of_values = self._of_values(part)
        if any(one == Column((_DOCUMENT,)) for one in walk(of_values)):
            return None
        return self._index.search(of_values)

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
