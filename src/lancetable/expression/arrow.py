"""Translate a ``pyarrow.compute.Expression`` into the tree of this package.

Arrow has no API to inspect expressions, but pickles them as an IPC file of one row: the metadata
of its schema is the tree in prefix notation, and the columns hold the constants and options.

================  ===========================================================
key               value
================  ===========================================================
field_ref         a column name
nested_field_ref  the number of ``field_ref`` entries that follow and form one path
literal           the number of the column that holds the constant
call              a function name; its arguments follow, then perhaps options
options           the number of the column that holds the options
end               the same function name
================  ===========================================================

Comparisons, logic, arithmetic, casts and tests become our tree, so they can be split and pushed
down, and order NaN as SQL does. An expression with anything else is left to Arrow as a whole.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import ExpressionError
from lancetable.expression.simplify import negate
from lancetable.expression.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negate,
    Opaque,
    Operation,
    Or,
    literal,
)

_MATCH, _SKIP, _EMIT_NULL, _INCONCLUSIVE = range(4)


class _Entry(NamedTuple):
    key: str
    value: str


class _ForeignError(Exception):
    """Raised for an expression that the tree of this package cannot represent."""


def from_arrow(expression: pc.Expression) -> Expression:
    """Translate an Arrow expression.

    Raises:
        ExpressionError: The expression names columns by number instead of by name.
    """
    try:
        pickled = expression.__reduce__()
        batch = pa.ipc.open_file(pa.py_buffer(pickled[1][0])).get_batch(0)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, TypeError, IndexError) as cause:
        message = f"cannot read the Arrow expression {expression}: refer to columns by name"
        raise ExpressionError(message) from cause
    entries = _metadata(batch.schema)
    try:
        return _Reading(entries, batch).expression()
    except _ForeignError:
        return Opaque(str(expression), _paths(entries), expression)


def run_opaque(expression: Opaque, batch: pa.RecordBatch) -> pa.Array:
    """Evaluate an expression outside the tree with Arrow."""
    from pyarrow import acero  # noqa: PLC0415 - a library of its own, rarely needed

    source = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
    project = acero.ProjectNodeOptions([expression.expression], ["value"])
    plan = acero.Declaration.from_sequence(
        [acero.Declaration("table_source", source), acero.Declaration("project", project)]
    )
    return plan.to_table(use_threads=False)["value"].combine_chunks()


def _metadata(schema: pa.Schema) -> list[_Entry]:
    """Read all entries; ``Schema.metadata`` is a dict and would lose repeated keys.

    The C data interface holds a count, then per entry the length and bytes of key and value.
    """
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = schema.__arrow_c_schema__()
    # struct ArrowSchema { const char* format; const char* name; const char* metadata; … }
    members = ctypes.cast(pointer_of(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    position = members[2]
    if not position:
        return []

    def number() -> int:
        nonlocal position
        value = ctypes.c_int32.from_address(position).value
        position += 4
        return value

    def text() -> str:
        nonlocal position
        length = number()
        data = ctypes.string_at(position, length)
        position += length
        return data.decode()

    return [_Entry(text(), text()) for _ in range(number())]


def _paths(entries: Sequence[_Entry]) -> tuple[tuple[str, ...], ...]:
    paths: list[tuple[str, ...]] = []
    position = 0
    while position < len(entries):
        key, value = entries[position]
        count = int(value) if key == "nested_field_ref" else int(key == "field_ref")
        first = position + (key == "nested_field_ref")
        if count:
            paths.append(tuple(entry.value for entry in entries[first : first + count]))
        position = max(first + count, position + 1)
    return tuple(dict.fromkeys(paths))


class _Reading:
    """Parser of the prefix notation of one expression."""

    def __init__(self, entries: Sequence[_Entry], batch: pa.RecordBatch) -> None:
        self._entries = entries
        self._batch = batch
        self._position = 0

    def _next(self) -> _Entry:
        entry = self._entries[self._position]
        self._position += 1
        return entry

    def expression(self) -> Expression:
        key, value = self._next()
        if key == "field_ref":
            return Column((value,))
        if key == "nested_field_ref":
            return Column(tuple(self._next().value for _ in range(int(value))))
        if key == "literal":
            return Literal(self._batch.column(int(value))[0])
        if key == "call":
            return self._call(value)
        raise _ForeignError(key)

    def _call(self, name: str) -> Expression:
        arguments: list[Expression] = []
        options: pa.Scalar | None = None
        while self._entries[self._position].key != "end":
            if self._entries[self._position].key == "options":
                options = self._batch.column(int(self._next().value))[0]
            else:
                arguments.append(self.expression())
        self._next()
        return _translate(name, arguments, options)


def _translate(name: str, arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
    if name in _COMPARISONS:
        return Compare(_COMPARISONS[name], arguments[0], arguments[1])
    if name in _OPERATIONS:
        return Arithmetic(_OPERATIONS[name], arguments[0], arguments[1])
    if name in _CALLS:
        return Call(_CALLS[name], tuple(arguments))
    rule = _RULES.get(name)
    if rule is None:
        raise _ForeignError(name)
    return rule(arguments, options)


_Rule = Callable[[Sequence[Expression], pa.Scalar | None], Expression]


def _is_null(arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
    missing = IsNull(arguments[0])
    if options is None or not options["nan_is_null"].as_py():
        return missing
    return Or((missing, IsTrue(Call("isnan", (arguments[0],)))))


def _is_in(arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
    if options is None:
        raise _ForeignError("is_in")
    values = options["value_set"].values
    behaviour = options["null_matching_behavior"].as_py()
    if behaviour not in {_MATCH, _SKIP} or pa.types.is_floating(values.type):
        raise _ForeignError("is_in")
    items = tuple(Literal(value) for value in values.drop_null())
    # Arrow's test is never null: a missing value is simply not in the list.
    found: Expression = IsTrue(In(arguments[0], items)) if items else literal(value=False)
    if behaviour == _MATCH and values.null_count:
        return Or((found, IsNull(arguments[0])))
    return found


def _cast(arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
    if options is None or any(options[key].as_py() for key in options if key.startswith("allow_")):
        raise _ForeignError("cast")
    target = options["to_type"].type
    if not (pa.types.is_floating(target) or pa.types.is_integer(target)):
        raise _ForeignError("cast")
    return Cast(arguments[0], target)


def _match_like(arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
    if options is None:
        raise _ForeignError("match_like")
    pattern = Literal(options["pattern"])
    return Like(arguments[0], pattern, ignore_case=bool(options["ignore_case"].as_py()))


def _pattern_call(name: str) -> _Rule:
    def rule(arguments: Sequence[Expression], options: pa.Scalar | None) -> Expression:
        if options is None or options["ignore_case"].as_py():
            raise _ForeignError(name)
        return Call(name, (arguments[0], Literal(options["pattern"])))

    return rule


_COMPARISONS: Mapping[str, Comparison] = {
    "equal": Comparison.EQ,
    "not_equal": Comparison.NE,
    "less": Comparison.LT,
    "less_equal": Comparison.LE,
    "greater": Comparison.GT,
    "greater_equal": Comparison.GE,
}
_OPERATIONS: Mapping[str, Operation] = {
    "add_checked": Operation.ADD,
    "subtract_checked": Operation.SUBTRACT,
    "multiply_checked": Operation.MULTIPLY,
    "divide_checked": Operation.DIVIDE,
}
_CALLS: Mapping[str, str] = {
    "coalesce": "coalesce",
    "is_nan": "isnan",
    "utf8_lower": "lower",
    "utf8_upper": "upper",
    "utf8_length": "length",
    "binary_length": "octet_length",
    "list_value_length": "array_length",
    "year": "year",
    "month": "month",
    "day": "day",
}
_RULES: Mapping[str, _Rule] = {
    "and_kleene": lambda arguments, _: And(tuple(arguments)),
    "or_kleene": lambda arguments, _: Or(tuple(arguments)),
    "invert": lambda arguments, _: negate(arguments[0]),
    "is_null": _is_null,
    "is_valid": lambda arguments, _: IsNull(arguments[0], negated=True),
    "negate_checked": lambda arguments, _: Negate(arguments[0]),
    "if_else": lambda arguments, _: Case(
        ((IsNull(arguments[0]), literal(None)), (arguments[0], arguments[1])), arguments[2]
    ),
    "is_in": _is_in,
    "cast": _cast,
    "match_like": _match_like,
    "starts_with": _pattern_call("starts_with"),
    "ends_with": _pattern_call("ends_with"),
    "match_substring": _pattern_call("contains"),
    "match_substring_regex": _pattern_call("regexp_like"),
}
