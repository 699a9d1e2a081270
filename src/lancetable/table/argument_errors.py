"""The door of the library: a call that fails because of a wrong argument says which one it was.

Arguments are not looked at while all goes well. Only when a call ends in an error that is not one
of the library's are they compared with what the function says it takes; if one does not fit, the
caller is told so in place of a traceback from deep inside. If all fit, the error is a fault of the
library and is left as it is. So is an exception that the caller's own progress callback raised.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from lancetable.errors import InputError, LanceTableError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)


def explains(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a function name the argument that made it fail."""

    @wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except LanceTableError:
            raise
        except Exception as error:
            from lancetable.fragment.progress import is_raised_by_callback
            from lancetable.table.arguments import misfit

            if is_raised_by_callback(error):
                raise
            text = misfit(function, args, kwargs)
            if text is None:
                raise
            raise InputError(text) from None

    return called


def explaining(kind: Class) -> Class:
    """Let every public method of a class name the argument that made it fail."""
    for name, value in list(vars(kind).items()):
        if callable(value) and not isinstance(value, type) and not name.startswith("_"):
            setattr(kind, name, explains(value))
    return kind
