"""Functions on numbers."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.functions.signature import Function, Kernel, Kind, function
from lancetable.expression.operators.arithmetic import calculate
from lancetable.expression.operators.cast import cast
from lancetable.expression.operators.compare import compare
from lancetable.expression.tree import Comparison, Operation


def _unary(kernel: Callable[[pa.Array], pa.Array]) -> Kernel:
    return lambda arguments: kernel(arguments[0])


def _abs(arguments: Sequence[pa.Array]) -> pa.Array:
    try:
        return pc.abs_checked(arguments[0])
    except pa.ArrowInvalid as cause:
        kind = arguments[0].type
        raise ExpressionError(f"the absolute value does not fit {kind}: cast it first") from cause


def _digits(arguments: Sequence[pa.Array]) -> int:
    if len(arguments) == 1:
        return 0
    digits = arguments[1]
    if not isinstance(digits, pa.Scalar) or not digits.is_valid:
        raise ExpressionError("the number of digits must be a constant")
    return int(digits.as_py())


def _round(arguments: Sequence[pa.Array]) -> pa.Array:
    values, digits = arguments[0], _digits(arguments)
    rounded = pc.round(values, ndigits=digits, round_mode="half_towards_infinity")
    if pt.is_decimal(values.type):
        return rounded.cast(
            pa.decimal128(values.type.precision, max(min(digits, values.type.scale), 0))
        )
    return rounded


def _trunc(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.round(arguments[0], ndigits=_digits(arguments), round_mode="towards_zero")


def _numpy(kernel: Callable[..., np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> Kernel:
    def compute(arguments: Sequence[pa.Array]) -> pa.Array:
        missing = pc.is_null(arguments[0])
        for each in arguments[1:]:
            missing = pc.or_(missing, pc.is_null(each))
        operands = [_doubles(each) for each in arguments]
        with np.errstate(all="ignore"):
            return pa.array(
                kernel(*operands), pa.float64(), mask=missing.to_numpy(zero_copy_only=False)
            )

    return compute


def _doubles(values: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if isinstance(values, pa.Scalar):
        value = values.as_py()
        return np.asarray(math.nan if value is None else value, np.float64)
    filled: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = pc.fill_null(
        values, math.nan
    ).to_numpy(zero_copy_only=False)
    return filled


def _log(arguments: Sequence[pa.Array]) -> pa.Array:
    if len(arguments) == 1:
        return pc.log10(arguments[0])
    base, value = arguments
    return _numpy(lambda one, other: np.log(other) / np.log(one))([base, value])


def _extreme(better: Comparison) -> Kernel:
    def compute(arguments: Sequence[pa.Array]) -> pa.Array:
        best = arguments[0]
        for each in arguments[1:]:
            chosen = pc.if_else(compare(better, each, best), each, best)
            best = pc.coalesce(chosen, best, each)
        return best

    return compute


def _nanvl(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.if_else(pc.is_nan(arguments[0]), arguments[1], arguments[0])


_FLOAT = Kind.FLOAT
_POWER = function(_numpy(np.power), _FLOAT, _FLOAT)
_CEIL = function(_unary(pc.ceil), Kind.FLOAT_OR_DECIMAL)
_SIGN = function(_unary(lambda values: cast(pc.sign(values), values.type)), Kind.NUMBER)

MATH_FUNCTIONS: Mapping[str, Function] = {
    "abs": function(_abs, Kind.NUMBER),
    "round": function(_round, Kind.FLOAT_OR_DECIMAL, Kind.INTEGER, least=1),
    "trunc": function(_trunc, Kind.FLOAT_OR_DECIMAL, Kind.INTEGER, least=1),
    "floor": function(_unary(pc.floor), Kind.FLOAT_OR_DECIMAL),
    "ceil": _CEIL,
    "ceiling": _CEIL,
    "sqrt": function(_numpy(np.sqrt), _FLOAT),
    "exp": function(_numpy(np.exp), _FLOAT),
    "ln": function(_unary(pc.ln), _FLOAT),
    "log": function(_log, _FLOAT, _FLOAT, least=1),
    "log10": function(_unary(pc.log10), _FLOAT),
    "log2": function(_unary(pc.log2), _FLOAT),
    "power": _POWER,
    "pow": _POWER,
    "sin": function(_unary(pc.sin), _FLOAT),
    "cos": function(_unary(pc.cos), _FLOAT),
    "tan": function(_unary(pc.tan), _FLOAT),
    "asin": function(_unary(pc.asin), _FLOAT),
    "acos": function(_unary(pc.acos), _FLOAT),
    "atan": function(_unary(pc.atan), _FLOAT),
    "atan2": function(_numpy(np.arctan2), _FLOAT, _FLOAT),
    "degrees": function(_numpy(np.degrees), _FLOAT),
    "radians": function(_numpy(np.radians), _FLOAT),
    "sign": _SIGN,
    "signum": _SIGN,
    "mod": function(
        lambda arguments: calculate(Operation.REMAINDER, arguments[0], arguments[1]),
        Kind.SAME,
        Kind.SAME,
    ),
    "isnan": function(_unary(pc.is_nan), _FLOAT),
    "iszero": function(lambda arguments: pc.equal(arguments[0], 0.0), _FLOAT),
    "nanvl": function(_nanvl, _FLOAT, _FLOAT),
    "greatest": function(_extreme(Comparison.GT), Kind.SAME, variadic=True),
    "least": function(_extreme(Comparison.LT), Kind.SAME, variadic=True),
}
