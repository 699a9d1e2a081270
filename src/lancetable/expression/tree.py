"""The nodes of an expression tree.

Every node is a frozen value; an expression is one of the classes joined in ``Expression``. The
parser, the translation of Arrow expressions, binding, simplification and evaluation all work on
this tree.
"""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression.scalars import make_scalar


class Comparison(enum.Enum):
    """The comparison operators; the value is the operator's SQL text."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    DISTINCT = "IS DISTINCT FROM"
    NOT_DISTINCT = "IS NOT DISTINCT FROM"

    @property
    def mirrored(self) -> "Comparison":
        """Return the operator that means the same with the operands swapped."""
        return _MIRRORED.get(self, self)

    @property
    def inverse(self) -> "Comparison":
        """Return the operator whose result is the negation of this one's."""
        return _INVERSE[self]


_MIRRORED = {
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}
_INVERSE = {
    Comparison.EQ: Comparison.NE,
    Comparison.NE: Comparison.EQ,
    Comparison.LT: Comparison.GE,
    Comparison.LE: Comparison.GT,
    Comparison.GT: Comparison.LE,
    Comparison.GE: Comparison.LT,
    Comparison.DISTINCT: Comparison.NOT_DISTINCT,
    Comparison.NOT_DISTINCT: Comparison.DISTINCT,
}


class Operation(enum.Enum):
    """The arithmetic and bitwise operators; the value is the operator's SQL text."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    BIT_AND = "&"
    BIT_OR = "|"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"

    @property
    def is_shift(self) -> bool:
        """True when the right operand counts bits."""
        return self in {Operation.SHIFT_LEFT, Operation.SHIFT_RIGHT}

    @property
    def is_bitwise(self) -> bool:
        """True when the operator works on the bits of integers."""
        return self.is_shift or self in {Operation.BIT_AND, Operation.BIT_OR}


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or with a longer path a field of a struct column."""

    path: tuple[str, ...]
    position: int | None = field(default=None, compare=False, repr=False)
    is_quoted: bool = field(default=False, compare=False, repr=False)
    """True when the name was in double quotes, which other dialects use for text."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, held as an Arrow scalar so that its type and precision are exact."""

    scalar: pa.Scalar

    @property
    def value(self) -> object:
        """The constant as a Python value."""
        value: object = self.scalar.as_py()
        return value

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the constant."""
        return self.scalar.type

    def __reduce__(self) -> tuple[Callable[[pa.Array], "Literal"], tuple[pa.Array]]:
        # Arrow pickles a scalar as a Python value, which loses intervals and nanoseconds.
        return _restore_literal, (pa.repeat(self.scalar, 1),)


def _restore_literal(values: pa.Array) -> Literal:
    return Literal(values[0])


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two values."""

    op: Comparison
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of the operands, in three-valued logic."""

    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of the operands, in three-valued logic."""

    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; null stays null."""

    operand: "Expression"


@dataclass(frozen=True, slots=True, eq=False)
class Literals:
    """Many constants of one type as one Arrow array; equal to the tuple of its literals."""

    array: pa.Array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Literal]:
        return map(Literal, self.array)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Literals):
            return bool(self.array.equals(other.array))
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class In:
    """Membership in a list; ``values`` is the set as one Arrow array once bound."""

    operand: "Expression"
    items: tuple["Expression", ...] | Literals
    negated: bool = False
    values: pa.Array | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    """A match against a pattern of ``%`` and ``_``."""

    operand: "Expression"
    pattern: "Expression"
    negated: bool = False
    ignore_case: bool = False
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class IsNull:
    """A test for missing values; never null itself."""

    operand: "Expression"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsTrue:
    """``IS [NOT] TRUE`` and ``IS [NOT] FALSE``; never null itself."""

    operand: "Expression"
    value: bool = True
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic operation on two values."""

    op: Operation
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Negate:
    """The arithmetic negation."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion to another type; ``or_null`` gives null where it is impossible."""

    operand: "Expression"
    type: pa.DataType
    or_null: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true."""

    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the table in :mod:`lancetable.expression.functions.table`."""

    name: str
    arguments: tuple["Expression", ...]
    position: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Item:
    """A field of a struct value by name, or an element of a list counted from one."""

    operand: "Expression"
    key: "Expression"


@dataclass(frozen=True, slots=True)
class Opaque:
    """An Arrow expression that this tree cannot represent, evaluated by Arrow itself."""

    text: str
    paths: tuple[tuple[str, ...], ...]
    expression: pc.Expression = field(compare=False, repr=False)


Expression: TypeAlias = (
    Column
    | Literal
    | Compare
    | And
    | Or
    | Not
    | In
    | Like
    | IsNull
    | IsTrue
    | Arithmetic
    | Negate
    | Cast
    | Case
    | Call
    | Item
    | Opaque
)


def literal(value: object, type: pa.DataType | None = None) -> Literal:  # noqa: A002
    """Make a constant of a Python value."""
    return Literal(make_scalar(value, type))


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct operands of a node."""
    match expression:
        case Column() | Literal() | Opaque():
            return ()
        case And(operands) | Or(operands) | Call(_, operands):
            return operands
        case In(operand, items):
            return (operand,) if isinstance(items, Literals) else (operand, *items)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case _:
            return _fixed_children(expression)


def _fixed_children(
    expression: Compare | Not | Like | IsNull | IsTrue | Arithmetic | Negate | Cast | Item,
) -> tuple[Expression, ...]:
    match expression:
        case Compare(_, left, right) | Arithmetic(_, left, right):
            return (left, right)
        case Like(operand, pattern):
            return (operand, pattern)
        case Item(operand, key):
            return (operand, key)
        case _:
            return (expression.operand,)


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the node with ``change`` applied to each direct operand."""
    match expression:
        case Column() | Literal() | Opaque():
            return expression
        case And(operands) | Or(operands):
            return replace(expression, operands=tuple(change(part) for part in operands))
        case Call(_, arguments):
            return replace(expression, arguments=tuple(change(part) for part in arguments))
        case In(operand, items):
            if not isinstance(items, Literals):
                items = tuple(change(item) for item in items)
            return replace(expression, operand=change(operand), items=items)
        case Case(branches, otherwise):
            pairs = tuple((change(when), change(then)) for when, then in branches)
            return Case(pairs, change(otherwise))
        case _:
            return _rebuild_fixed(expression, change)


def _rebuild_fixed(
    expression: Compare | Not | Like | IsNull | IsTrue | Arithmetic | Negate | Cast | Item,
    change: Callable[[Expression], Expression],
) -> Expression:
    match expression:
        case Compare(op, left, right):
            return Compare(op, change(left), change(right))
        case Arithmetic(operation, left, right):
            return Arithmetic(operation, change(left), change(right))
        case Like(operand, pattern):
            return replace(expression, operand=change(operand), pattern=change(pattern))
        case Item(operand, key):
            return Item(change(operand), change(key))
        case _:
            return replace(expression, operand=change(expression.operand))


def walk(expression: Expression) -> list[Expression]:
    """Return every node of an expression, parents before their operands."""
    found = [expression]
    for node in found:
        if not isinstance(node, Column | Literal):
            found += children(node)
    return found


def columns(expression: Expression) -> set[tuple[str, ...]]:
    """Return the paths of all columns the expression reads."""
    found: set[tuple[str, ...]] = set()
    for node in walk(expression):
        if isinstance(node, Column):
            found.add(node.path)
        elif isinstance(node, Opaque):
            found.update(node.paths)
    return found


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Split an expression into the parts that must all be true."""
    if not isinstance(expression, And):
        return (expression,)
    return tuple(part for operand in expression.operands for part in conjuncts(operand))
