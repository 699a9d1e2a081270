"""Name the argument that made a public function fail.

Arguments are compared with the annotations of a function only after a call raised one of the
errors that wrong arguments cause. If one does not fit, the caller gets an ``InputError`` that
names it. If all fit, or if code of the caller raised the error, the error is left as it is.
"""

import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from importlib import import_module
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from lancetable.errors import InputError, LanceTableError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)

NAMES = {
    "Analysis": "lancetable.expression.analysis.parameters",
    "BlobFile": "lancetable.fragment.blobs",
    "Blobs": "lancetable.format.schema.model",
    "ColumnsArgument": "lancetable.scan.request",
    "CommitLock": "lancetable.commit.location.external",
    "CommitOptions": "lancetable.commit.options",
    "Expression": "lancetable.expression",
    "Fragment": "lancetable.format.manifest.model",
    "FunctionOptions": "lancetable.operations.columns.add",
    "ManifestStore": "lancetable.store.manifests",
    "Mapping": "collections.abc",
    "NewFragments": "lancetable.operations.prepared_transaction",
    "Numbers": "lancetable.scan.take",
    "OptimizeMode": "lancetable.operations.index.optimize",
    "PathLike": "os",
    "PreparedTransaction": "lancetable.operations.prepared_transaction",
    "ProgressCallback": "lancetable.fragment.write.progress",
    "Query": "lancetable.query",
    "QueryToken": "lancetable.expression.analysis.analyzer",
    "Result": "lancetable.operations.prepared_transaction",
    "Runner": "lancetable.operations.run.runner",
    "SpecArgument": "lancetable.index.specs",
    "StatisticsOf": "lancetable.index.text.documents",
    "Where": "lancetable.scan.request",
}
"""Modules of the types that annotations name and modules import for the type checker only."""

_OWN = {"lancetable", "pyarrow", "numpy", "sqlglot", "obstore", "google"}
"""Packages whose errors may be caused by a wrong argument; the standard library is another."""
_MISTAKES = (TypeError, ValueError, AttributeError, KeyError, OverflowError)
_LONGEST = 60
_UNIONS = (typing.Union, types.UnionType)


def explains(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function name the argument that made it fail."""

    @wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except LanceTableError:
            raise
        except _MISTAKES as error:
            text = None if _is_from_caller(error) else misfit(function, args, kwargs)
            if text is None:
                raise
            raise InputError(text) from error

    return called


def explaining(kind: Class) -> Class:
    """Let every public method of a class name the argument that made it fail."""
    for name, value in list(vars(kind).items()):
        if callable(value) and not isinstance(value, type) and not name.startswith("_"):
            setattr(kind, name, explains(value))
    return kind


def _is_from_caller(error: BaseException) -> bool:
    """Return whether a function of the caller, such as a callback, raised an error."""
    step = error.__traceback__
    for _ in ("the wrapper", "the function it wraps"):
        step = step and step.tb_next
    while step is not None:
        package = str(step.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _OWN and package not in sys.stdlib_module_names:
            return True
        step = step.tb_next
    return False


def misfit(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> str | None:
    """Return which argument does not fit, and what would; None when all fit."""
    import inspect

    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # Python's own message names the argument
        return None
    hints = hints_of(function)
    for name, value in given.items():
        wanted = hints.get(name, object)
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            continue  # options check themselves
        if not fits(value, wanted):
            shown = repr(value)
            shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
            return f"{name} of {function.__name__}() is {shown}; it takes {described(wanted)}"
    return None


def hints_of(function: Callable[..., object]) -> dict[str, object]:
    """Return the types of the parameters of a function; those that are unknown are ``object``."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    names = _Names(function.__globals__)
    found: dict[str, object] = {}
    for name, annotation in function.__annotations__.items():
        # One at a time: get_type_hints fails as a whole when a single name is unknown.
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(holder, globalns=function.__globals__, localns=names)
        except (ImportError, LookupError, NameError, TypeError):
            continue
        found |= hints
    return found


class _Names(dict[str, object]):
    """The names of a module, and those that it imports for the type checker only."""

    def __missing__(self, name: str) -> object:
        if name == "pa":
            return import_module("pyarrow")
        return getattr(import_module(NAMES[name]), name)


def fits(value: object, wanted: object) -> bool:
    """Return whether a value may be of a type."""
    origin = typing.get_origin(wanted)
    if origin in _UNIONS:
        return any(fits(value, one) for one in typing.get_args(wanted))
    if wanted is None:
        return value is None
    if origin is typing.Literal:
        return value in typing.get_args(wanted)
    return _is_of(value, origin or wanted) and _parts_fit(value, wanted)


def _is_of(value: object, kind: object) -> bool:
    """Return whether a value is of a class; NumPy numbers are numbers, booleans are not."""
    if not isinstance(kind, type) or kind is object:
        return True
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if kind is Sequence:
        # Arrays are sequences in all but name; a text would be taken letter by letter.
        return hasattr(value, "__getitem__") and not isinstance(value, str | bytes | Mapping)
    if getattr(kind, "_is_protocol", False) and kind.__module__.startswith("lancetable"):
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
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
