"""Compare, match and look up values.

Floats follow the total order Lance itself uses: that of IEEE 754, except that the two zeros are
equal. From below it is -NaN, -inf, …, -0.0 = 0.0, …, inf, NaN; a NaN equals those of the same bits.
Everything else is three-valued: a missing operand gives a missing result, except for the DISTINCT
operators.

In this order the bits of floats compare as integers: those of numbers above zero as signed ones,
those of numbers below zero in reverse as unsigned ones, for any other operand.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.expression.coerce import is_list
from lancetable.expression.tree import Comparison

Number: TypeAlias = np.integer[Any] | np.floating[Any]

_KERNELS: Mapping[Comparison, Callable[[pa.Array, pa.Array], pa.Array]] = {
    Comparison.EQ: pc.equal,
    Comparison.NE: pc.not_equal,
    Comparison.LT: pc.less,
    Comparison.LE: pc.less_equal,
    Comparison.GT: pc.greater,
    Comparison.GE: pc.greater_equal,
}

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")


def compare(op: Comparison, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare two operands of the same type, either of which may be a scalar."""
    if op in {Comparison.DISTINCT, Comparison.NOT_DISTINCT}:
        return _distinct(op, left, right)
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return compare(op.mirrored, right, left)
    if pt.is_floating(left.type):
        return _compare_floats(op, left, right)
    if is_list(left.type) or pt.is_struct(left.type):
        return _compare_nested(op, left, right)
    return _KERNELS[op](left, right)


def _distinct(op: Comparison, left: pa.Array, right: pa.Array) -> pa.Array:
    differ = compare(Comparison.NE, left, right)
    one_missing = pc.xor(pc.is_null(left), pc.is_null(right))
    distinct = pc.or_(pc.coalesce(differ, pa.scalar(value=False)), one_missing)
    return distinct if op is Comparison.DISTINCT else pc.invert(distinct)


def _compare_floats(op: Comparison, left: pa.Array, right: pa.Array) -> pa.Array:
    if isinstance(left, pa.Scalar):
        return _compare_floats(op, pa.array([left.as_py()], left.type), right)[0]
    if not isinstance(right, pa.Scalar):
        if _has_nan(left) or _has_nan(right):
            left, right = total_order(left), total_order(right)
        return _KERNELS[op](left, right)
    test = number_test(op, left.type, right)
    if test is None:
        return pa.nulls(len(left), pa.bool_())
    op, constant = test
    if constant.dtype.kind == "f":
        return _KERNELS[op](left, right)
    type_ = pa.from_numpy_dtype(constant.dtype)
    return _KERNELS[op](left.view(type_), pa.scalar(constant.item(), type_))


def _has_nan(values: pa.Array) -> bool:
    return pc.any(pc.is_nan(values)).as_py() is True


def total_order(values: pa.Array) -> pa.Array:
    """Return integers that compare as floats do; nulls stay nulls."""
    width = values.type.bit_width // 8
    bits = values.view(pa.from_numpy_dtype(f"i{width}"))
    data = bits.buffers()[1]
    if data is None or not len(bits):
        return bits
    numbers = np.frombuffer(data, f"i{width}", len(bits), bits.offset * width)
    least = np.iinfo(numbers.dtype).min
    keys = np.where(numbers < 0, ~numbers | least, numbers)
    keys[numbers == least] = 0
    mask = np.asarray(bits.is_null()) if bits.null_count else None
    return pa.array(keys, mask=mask)


def _compare_nested(op: Comparison, left: pa.Array, right: pa.Array) -> pa.Array:
    constant = isinstance(left, pa.Scalar)
    rows = 1 if constant else len(left)
    pairs = zip(_listed(left, rows), _listed(right, rows), strict=True)
    equal = [None if one is None or other is None else one == other for one, other in pairs]
    same = pa.array(equal, pa.bool_())
    result = same if op is Comparison.EQ else pc.invert(same)
    return result[0] if constant else result


def _listed(values: pa.Array, rows: int) -> list[object]:
    return [values.as_py()] * rows if isinstance(values, pa.Scalar) else values.to_pylist()


def number_test(
    op: Comparison, type_: pa.DataType, scalar: pa.Scalar
) -> tuple[Comparison, Number] | None:
    """Return a comparison with a number equivalent to one with a scalar; None if there is none.

    Floats are compared by their bits, for which the number is an integer, unless it is a float.
    """
    ordinary = op not in {Comparison.DISTINCT, Comparison.NOT_DISTINCT} and scalar.is_valid
    if not (ordinary and pt.is_primitive(type_)) or pt.is_boolean(type_) or pt.is_interval(type_):
        return None
    width = type_.bit_width // 8
    if pt.is_floating(type_):
        return _float_test(op, np.dtype(f"f{width}").type(scalar.as_py()))
    constant = scalar.as_py() if pt.is_integer(type_) else scalar.value
    kind = "u" if pt.is_unsigned_integer(type_) else "i"
    number: Number = np.dtype(f"{kind}{width}").type(constant)
    return op, number


def _float_test(op: Comparison, constant: np.floating[Any]) -> tuple[Comparison, Number]:
    signed, natural = f"i{constant.itemsize}", f"u{constant.itemsize}"
    is_equality = op in {Comparison.EQ, Comparison.NE}
    if constant == 0:
        if is_equality:
            return op, constant
        if op in {Comparison.LT, Comparison.GE}:
            # Exactly the values below zero have larger bits than -0.0.
            constant = -np.abs(constant)
            return op.mirrored, constant.view(natural)
        return op, np.abs(constant).view(signed)
    if is_equality or not np.signbit(constant):
        return op, constant.view(signed)
    return op.mirrored, constant.view(natural)


def compare_numbers(
    op: Comparison, values: npt.NDArray[np.number], constant: np.number
) -> npt.NDArray[np.bool_]:
    """Compare a NumPy column, viewed as the type of the constant, with the constant."""
    values = values.view(constant.dtype)
    match op:
        case Comparison.EQ:
            mask = values == constant
        case Comparison.NE:
            mask = values != constant
        case Comparison.LT:
            mask = values < constant
        case Comparison.LE:
            mask = values <= constant
        case Comparison.GT:
            mask = values > constant
        case _:
            mask = values >= constant
    return np.asarray(mask, np.bool_)


def contained(values: pa.Array, choices: pa.Array, *, negated: bool) -> pa.Array:
    """Return which values are in the list, with SQL's rules for nulls on either side."""
    found = pc.is_in(_hashable(values), value_set=_hashable(choices.drop_null()))
    result = pc.invert(found) if negated else found
    if choices.null_count:
        # Not found among the known values, but it may equal the unknown one.
        return pc.if_else(found, pa.scalar(not negated), pa.scalar(None, pa.bool_()))
    if values.null_count:
        return pc.if_else(pc.is_valid(values), result, pa.scalar(None, pa.bool_()))
    return result


def _hashable(values: pa.Array) -> pa.Array:
    """Return floats as their bits, which Arrow compares exactly."""
    if not pt.is_floating(values.type):
        return values
    return values.view(pa.from_numpy_dtype(f"u{values.type.bit_width // 8}"))


def choices_of(choices: pa.Array) -> pa.Array:
    """Build the array in which a membership test looks up values."""
    type_ = choices.type
    if pt.is_floating(type_) and pc.any(pc.equal(choices, pa.scalar(0.0, type_))).as_py():
        # Floats are looked up by their bits.
        return pa.concat_arrays([choices, pa.array([0.0, -0.0], type_)])
    return choices


def match_like(values: pa.Array, pattern: pa.Array, *, ignore_case: bool, escape: str) -> pa.Array:
    """Match strings against a pattern of ``%`` and ``_``."""
    if isinstance(pattern, pa.Scalar):
        if not pattern.is_valid:
            return pa.nulls(len(values), pa.bool_())
        regex = like_to_regex(pattern.as_py(), escape)
        if escape == "\\" and not ignore_case and "\\" not in pattern.as_py():
            return pc.match_like(values, pattern.as_py())
        return pc.match_substring_regex(values, regex, ignore_case=ignore_case)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    matched = [
        _compiled(text, escape, flags)(value) is not None
        if isinstance(value, str) and isinstance(text, str)
        else None
        for value, text in zip(_listed(values, len(pattern)), pattern.to_pylist(), strict=True)
    ]
    return pa.array(matched, pa.bool_())


@lru_cache(maxsize=256)
def _compiled(pattern: str, escape: str, flags: int) -> Callable[[str], re.Match[str] | None]:
    regex = like_to_regex(pattern, escape).removeprefix("(?s)").removesuffix(r"\z")
    return re.compile(regex, flags).fullmatch


def like_to_regex(pattern: str, escape: str) -> str:
    """Translate a LIKE pattern to a regular expression that matches whole strings."""
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, escape)
            # An escape before an ordinary character stands for itself.
            kept = following if following in {"%", "_", escape} else escape + following
            parts.append(_verbatim(kept))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(_verbatim(character))
    return f"(?s)^{''.join(parts)}\\z"


def _verbatim(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)
