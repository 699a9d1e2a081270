"""Under which code does an error of this library appear in Spark.

Spark keeps only the text of an error that is raised in a Python process of its own. A code in
front of it, made of the name of its class, lets programs tell errors apart.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lancetable.errors import LanceTableError, UnsupportedError

_MISSING = re.compile(r"No module named '(lancetable[\w.]*|pyarrow|numpy)'")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def code_of(error: LanceTableError) -> str:
    """Return the code of an error, such as ``LANCE_TABLE_NOT_FOUND``."""
    name = type(error).__name__.removesuffix("Error")
    return f"LANCE_{_WORD.sub('_', name).upper()}"


@contextmanager
def coded() -> Iterator[None]:
    """Put codes in front of the messages of errors."""
    try:
        yield
    except LanceTableError as error:
        text = str(error)
        if not text.startswith("[LANCE_"):
            error.args = (f"[{code_of(error)}] {text}",)
        raise


@contextmanager
def explained() -> Iterator[None]:
    """Say it plainly when the workers of Spark lack this library."""
    try:
        yield
    except Exception as error:
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        raise UnsupportedError(
            f"the workers of Spark have no module {missing[1]!r}; install lancetable where they "
            "run, or send it with spark.addArtifact('lancetable.zip', pyfile=True)"
        ) from error
