"""Signatures of functions, and kernels from plain Python functions."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa


class Kind(enum.Enum):
    """The kinds of arguments a function accepts; the value is the text in error messages."""

    ANY = "any value"
    SAME = "values of one type"
    TEXT = "text"
    AS_TEXT = "a value that can be written as text"
    BYTES = "text or bytes"
    INTEGER = "an integer"
    NUMBER = "a number"
    FLOAT = "a floating-point number"
    FLOAT_OR_DECIMAL = "a number with a fraction"
    INSTANT = "a date or a timestamp"
    LIST = "a list"


Kernel = Callable[[Sequence[pa.Array]], pa.Array]
"""Takes arrays and scalars, the function's subject as an array, and returns an array."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the SQL dialect; the last kind applies to all further arguments.

    Its kernel always receives the argument number ``subject`` as an array.
    """

    kernel: Kernel
    kinds: tuple[Kind, ...]
    least: int
    most: int | None
    subject: int = 0

    def accepts(self, count: int) -> bool:
        """Return whether the function takes ``count`` arguments."""
        return count >= self.least and (self.most is None or count <= self.most)

    def kind(self, index: int) -> Kind:
        """Return what the function accepts as its argument number ``index``."""
        return self.kinds[min(index, len(self.kinds) - 1)]

    @property
    def arity(self) -> str:
        """The number of arguments in words."""
        if self.most is None:
            return f"at least {self.least} arguments"
        if self.least == self.most:
            return f"{self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} to {self.most} arguments"


def function(
    kernel: Kernel,
    *kinds: Kind,
    least: int | None = None,
    variadic: bool = False,
    subject: int = 0,
) -> Function:
    """Describe a function with one kind per argument; the last ones may be optional."""
    required = len(kinds) if least is None else least
    most = None if variadic else len(kinds)
    return Function(kernel, kinds or (Kind.ANY,), required, most, subject)


def by_row(compute: Callable[..., object], result: pa.DataType) -> Kernel:
    """Make a kernel from a Python function of single values; a missing argument gives null."""

    def kernel(arguments: Sequence[pa.Array]) -> pa.Array:
        rows = len(arguments[0])
        answers = [
            None if any(value is None for value in values) else compute(*values)
            for values in zip(*(listed(each, rows) for each in arguments), strict=True)
        ]
        return pa.array(answers, result)

    return kernel


def listed(values: pa.Array, rows: int) -> list[object]:
    """Return an argument as a list with one entry per row."""
    if isinstance(values, pa.Scalar):
        return [values.as_py()] * rows
    return list(values.to_pylist())


def spread(value: pa.Array, rows: int) -> pa.Array:
    """Return a value as an array with one entry per row."""
    if not isinstance(value, pa.Scalar):
        return value
    # Arrow cannot repeat a list zero times.
    return pa.repeat(value, rows) if rows else pa.nulls(0, value.type)


def constants(arguments: Sequence[pa.Array]) -> bool:
    """Return whether all arguments but the first are constants other than null."""
    return all(isinstance(each, pa.Scalar) and each.is_valid for each in arguments[1:])


def kernel_or_rows(fast: Kernel, slow: Kernel) -> Kernel:
    """Use the fast kernel when all arguments but the first are constants other than null."""

    def kernel(arguments: Sequence[pa.Array]) -> pa.Array:
        return (fast if constants(arguments) else slow)(arguments)

    return kernel
