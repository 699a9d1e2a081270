"""Error codes in messages, and a clear error for workers that lack this library.

Spark passes on only the text of an error that is raised in one of its Python processes. Messages
therefore begin with a code made of the name of the error class.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, ParamSpec, TypeVar, cast

from lancetable.errors import LanceTableError, UnsupportedError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)
_MISSING = re.compile(r"No module named '(lancetable[\w.]*|pyarrow|numpy)'")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def code_of(error: LanceTableError) -> str:
    """Return the code of an error, such as ``LANCE_TABLE_NOT_FOUND``."""
    name = type(error).__name__.removesuffix("Error")
    return f"LANCE_{_WORD.sub('_', name).upper()}"


@contextmanager
def _coded() -> Iterator[None]:
    try:
        yield
    except LanceTableError as error:
        text = str(error)
        if not text.startswith("[LANCE_"):
            error.args = (f"[{code_of(error)}] {text}",)
        raise


def coded(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Put codes in front of the messages of errors that a function or generator raises."""
    if isgeneratorfunction(function):

        @wraps(function)
        def generate(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:  # noqa: ANN401
            with _coded():
                yield from cast("Any", function(*args, **kwargs))

        return cast("Callable[Arguments, Result]", generate)

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with _coded():
            return function(*args, **kwargs)

    return call


def all_coded(kind: Class) -> Class:
    """Put codes in front of the messages of errors that the public methods of a class raise."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name not in {"__init__", "__call__"}:
            continue
        if isinstance(value, classmethod):
            setattr(kind, name, classmethod(coded(value.__func__)))
        elif callable(value) and not isinstance(value, type):
            setattr(kind, name, coded(value))
    return kind


@contextmanager
def explain_missing_modules() -> Iterator[None]:
    """Raise a clear error if the workers of Spark cannot import this library."""
    try:
        yield
    except Exception as error:
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        raise UnsupportedError(
            f"the workers of Spark have no module {missing[1]!r}; install lancetable on the "
            "workers, or send it with spark.addArtifact('lancetable.zip', pyfile=True)"
        ) from error
