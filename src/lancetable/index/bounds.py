"""Decide by the least and the largest value of a group of rows whether one of them may match.

Pages of a btree and zones of a zone map are such groups. Groups that may hold a match are kept; the
comparisons are those of the plain evaluation, so that NaN and the two zeros are ordered alike.
"""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression import (
    And,
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Not,
    Or,
    evaluate_mask,
    literal,
)
from lancetable.format.arrays import Mask

MOST_VALUES = 256
"""Longer lists are narrowed to the range from their least to their largest value."""

_LOWER, _UPPER = {Comparison.LT, Comparison.LE}, {Comparison.GT, Comparison.GE}
_Answer: TypeAlias = Mask | None


class Bounds:
    """Groups of rows with their least and largest values, and whether they hold nulls.

    A null least value means that the group has smaller values than any, or none at all; ``always``
    are groups that are kept for every comparison.
    """

    def __init__(
        self, least: pa.Array, largest: pa.Array, has_null: Mask, always: Mask | None = None
    ) -> None:
        self._batch = pa.RecordBatch.from_arrays([least, largest], ["least", "largest"])
        self._open: Mask = np.asarray(pc.is_null(least))
        self._has_null = has_null
        self._has_value: Mask = np.asarray(pc.is_valid(largest))
        self._always = always

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        return self._batch.column(0).type

    def may_match(self, part: Expression) -> Mask | None:
        """Return which groups may hold rows that match; None when the bounds do not tell."""
        match _as_comparison(part):
            case And(operands):
                known = [one for one in map(self.may_match, operands) if one is not None]
                return np.logical_and.reduce(known) if known else None
            case Or(operands):
                each = [self.may_match(one) for one in operands]
                found = [one for one in each if one is not None]
                return np.logical_or.reduce(found) if len(found) == len(each) else None
            case Compare(op, Column(), Literal() as value):
                return self._compared(op, value)
            case In(Column(), _, negated, values) if values is not None:
                return self._not_listed(values) if negated else self._listed(values)
            case IsNull(Column(), negated):
                return self._kept(self._has_value) if negated else self._has_null
            case _:
                return self._prefixed(prefix_of(part))

    def _compared(self, op: Comparison, value: Literal) -> _Answer:
        if op in _LOWER:
            return self._kept(self._least(op, value))
        if op in _UPPER:
            return self._kept(self._largest(op, value))
        if op in {Comparison.EQ, Comparison.NOT_DISTINCT} and value.scalar.is_valid:
            return self._between(value, value)
        if op is Comparison.NE and value.scalar.is_valid:
            return self._other_than(value)
        return None

    def _other_than(self, value: Literal) -> Mask:
        """Return which groups may hold another value than this one."""
        other = self._least(Comparison.LT, value) | self._largest(Comparison.GT, value)
        return self._kept(other & self._has_value)

    def _not_listed(self, values: pa.Array) -> _Answer:
        if values.null_count:
            return np.zeros(len(self._has_null), np.bool_)
        if not len(values) or len(values) > MOST_VALUES:
            return None
        others = [self._other_than(Literal(one)) for one in values]
        return np.asarray(np.logical_and.reduce(others))

    def _between(self, low: Literal, high: Literal) -> Mask:
        inside = self._least(Comparison.LE, high) & self._largest(Comparison.GE, low)
        return self._kept(inside)

    def _listed(self, values: pa.Array) -> _Answer:
        valid = values.drop_null()
        if not len(valid):
            return np.zeros(len(self._has_null), np.bool_)
        if len(valid) > MOST_VALUES:
            if pa.types.is_floating(valid.type):
                return None
            ends = pc.min_max(valid)
            return self._between(Literal(ends["min"]), Literal(ends["max"]))
        found = np.zeros(len(self._has_null), np.bool_)
        for one in valid:
            found |= self._between(Literal(one), Literal(one))
        return found

    def _prefixed(self, prefix: str) -> _Answer:
        if not prefix or not _is_text(self.type):
            return None
        # All values with the prefix lie between it and itself followed by the last character.
        first = Literal(pa.scalar(prefix, self.type))
        last = Literal(pa.scalar(prefix + "\U0010ffff" * 4, self.type))
        at_most = self._least(Comparison.LE, last) | self._starts(prefix)
        return self._kept(at_most & self._largest(Comparison.GE, first))

    def _starts(self, prefix: str) -> Mask:
        starts = pc.starts_with(self._batch.column(0), prefix)
        found: Mask = np.asarray(starts.fill_null(False))  # noqa: FBT003 - what nulls become
        return found

    def _least(self, op: Comparison, value: Literal) -> Mask:
        mask: Mask = evaluate_mask(Compare(op, Column(("least",)), value), self._batch)
        return mask | self._open

    def _largest(self, op: Comparison, value: Literal) -> Mask:
        return evaluate_mask(Compare(op, Column(("largest",)), value), self._batch)

    def _kept(self, mask: Mask) -> Mask:
        return mask if self._always is None else mask | self._always


def _as_comparison(part: Expression) -> Expression:
    """Return a test of a boolean column as a comparison."""
    match part:
        case Column() as column:
            return Compare(Comparison.EQ, column, literal(True))  # noqa: FBT003 - the value
        case Not(Column() as column):
            return Compare(Comparison.EQ, column, literal(False))  # noqa: FBT003 - the value
        case IsTrue(Column() as column, value, False):
            return Compare(Comparison.EQ, column, literal(value))
        case _:
            return part


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def prefix_of(part: Expression) -> str:
    """Return what all values that match a part begin with; empty when that is not known."""
    match part:
        case Like(Column(), Literal() as pattern, False, False, escape):
            text = pattern.value if isinstance(pattern.value, str) else ""
            wildcards = (text.find(one) for one in ("%", "_", escape) if one)
            ends = [end for end in wildcards if end >= 0]
            return text[: min(ends)] if ends else text
        case Call("starts_with", (Column(), Literal() as prefix)):
            return prefix.value if isinstance(prefix.value, str) else ""
        case _:
            return ""
