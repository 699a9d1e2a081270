"""The table of all functions by name."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression.functions.geo import GEO_FUNCTIONS
from lancetable.expression.functions.json import JSON_FUNCTIONS
from lancetable.expression.functions.list import LIST_FUNCTIONS
from lancetable.expression.functions.math import MATH_FUNCTIONS
from lancetable.expression.functions.signature import Function, Kind, function
from lancetable.expression.functions.struct import STRUCT_FUNCTIONS
from lancetable.expression.functions.text import TEXT_FUNCTIONS
from lancetable.expression.functions.time import TIME_FUNCTIONS
from lancetable.expression.operators.compare import compare
from lancetable.expression.tree import Comparison


def _coalesce(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.coalesce(*arguments)


def _nullif(arguments: Sequence[pa.Array]) -> pa.Array:
    values, unwanted = arguments
    equal = pc.fill_null(compare(Comparison.EQ, values, unwanted), False)  # noqa: FBT003
    return pc.if_else(equal, pa.scalar(None, values.type), values)


def _clock(arguments: Sequence[pa.Array]) -> pa.Array:
    """Placeholder of the functions that binding replaces by one moment for the whole table."""
    return arguments[0]


_COALESCE = function(_coalesce, Kind.SAME, variadic=True)
_NVL = function(_coalesce, Kind.SAME, Kind.SAME)
_NOW = Function(_clock, (Kind.ANY,), least=0, most=0)

FUNCTIONS: Mapping[str, Function] = {
    "coalesce": _COALESCE,
    "nvl": _NVL,
    "ifnull": _NVL,
    "nullif": function(_nullif, Kind.SAME, Kind.SAME),
    "now": _NOW,
    "current_timestamp": _NOW,
    "current_date": _NOW,
    **TEXT_FUNCTIONS,
    **MATH_FUNCTIONS,
    **TIME_FUNCTIONS,
    **LIST_FUNCTIONS,
    **STRUCT_FUNCTIONS,
    **JSON_FUNCTIONS,
    **GEO_FUNCTIONS,
}
