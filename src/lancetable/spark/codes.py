"""Under which code does an error of this library appear in Spark.

Spark keeps only the text of an error that is raised in a Python process of its own. A code in
front of it, made of the name of its class, lets programs tell errors apart.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lancetable.errors import LanceTableError

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
