"""Which argument of a call is not what the function says it takes.

Annotations are read as they stand in the sources. A type that cannot be looked up, or that says
nothing about a value, fits everything: this only explains an error that has happened already.
"""

import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real

# Where types live whose modules are only named for the type checker.
_HOMES = {
    "Blobs": "lancetable.scan.request",
    "Callable": "collections.abc",
    "CheckProgress": "lancetable.operations.check.model:Progress",
    "ColumnsArgument": "lancetable.scan.request",
    "CommitLock": "lancetable.commit.location.commit_lock",
    "CommitOptions": "lancetable.commit.options",
    "Expression": "lancetable.expression",
    "FunctionOptions": "lancetable.operations.columns.add",
    "Iterable": "collections.abc",
    "Mapping": "collections.abc",
    "Numbers": "lancetable.scan.take",
    "PathLike": "os",
    "Progress": "lancetable.operations.cleanup.options",
    "Runner": "lancetable.operations.run.runner",
    "Sequence": "collections.abc",
    "Table": "lancetable.table.handle",
    "Where": "lancetable.scan.request",
    "WriteOptions": "lancetable.fragment.writer",
    "datetime": "datetime",
    "pa": "pyarrow:",
    "timedelta": "datetime",
}
_LONGEST = 60
_UNIONS = (typing.Union, types.UnionType)


def misfit(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> str | None:
    """Return which argument does not fit, and what would; None when all fit."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # Python has said already what is missing or too much
        return None
    for name, value in given.items():
        wanted = _resolved(signature.parameters[name].annotation, function)
        if not fits(value, wanted):
            shown = repr(value)
            shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
            return f"{name} of {function.__name__}() is {shown}; it takes {described(wanted)}"
    return None


def fits(value: object, wanted: object) -> bool:
    """Tell whether a value may be of a type."""
    origin = typing.get_origin(wanted)
    if origin in _UNIONS:
        return any(fits(value, one) for one in typing.get_args(wanted))
    if wanted is None:
        return value is None
    if origin is typing.Literal:
        return value in typing.get_args(wanted)
    return _is_of(value, origin or wanted) and _parts_fit(value, wanted)


def _is_of(value: object, kind: object) -> bool:
    """Tell whether a value is of a class; numbers of NumPy count as numbers, booleans do not."""
    if not isinstance(kind, type) or kind is object:
        return True
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if kind is Sequence:
        # Arrays are sequences in all but name; a text would be taken letter by letter.
        return hasattr(value, "__getitem__") and not isinstance(value, str | bytes | Mapping)
    if getattr(kind, "_is_protocol", False) and kind.__module__.startswith("lancetable"):
        return True
    return isinstance(value, kind)


def _parts_fit(value: object, wanted: object) -> bool:
    inner = typing.get_args(wanted)
    if isinstance(value, Mapping) and len(inner) == len(("key", "value")):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if isinstance(value, list | tuple | set | frozenset) and inner:
        return all(fits(one, inner[0]) for one in value)
    return True


def described(wanted: object) -> str:
    """Return a type in words."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in _UNIONS:
        return " or ".join(dict.fromkeys(map(described, inner)))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {described(inner[0])} to {described(inner[1])}"
    if isinstance(origin, type) and issubclass(origin, Collection):
        return f"a sequence of {described(inner[0])}"
    return _named(origin or wanted)


def _named(kind: object) -> str:
    if kind is type(None):
        return "None"
    if kind is Callable:
        return "a function"
    if getattr(kind, "__module__", None) == "lancetable.expression.tree":
        return "an expression"
    return getattr(kind, "__name__", str(kind))


class _Names(dict[str, object]):
    """The names of a module, and those that it only names for the type checker."""

    def __missing__(self, name: str) -> object:
        home, _, other = _HOMES[name].partition(":")
        module = import_module(home)
        return module if _HOMES[name].endswith(":") else getattr(module, other or name)


def _resolved(annotation: object, function: Callable[..., object]) -> object:
    if not isinstance(annotation, str):
        return object if annotation is inspect.Parameter.empty else annotation
    try:
        return eval(annotation, {}, _Names(function.__globals__))  # noqa: S307 - our own source
    except (ImportError, LookupError, NameError, TypeError):
        return object
