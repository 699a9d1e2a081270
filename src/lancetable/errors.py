"""Every error this library raises on purpose.

::

    LanceTableError
    ├── InputError            (also ValueError)           the caller asked for something unusable
    │   ├── SchemaError                                   a column or type that does not fit
    │   └── ExpressionError                               a predicate that cannot be understood
    ├── NotFoundError         (also LookupError)          something named is not there
    │   ├── TableNotFoundError
    │   ├── VersionNotFoundError
    │   ├── RefNotFoundError                              a tag or a branch
    │   ├── IndexNotFoundError
    │   └── FileNotFoundInStoreError                      an object the table refers to
    ├── ExistsError           (also FileExistsError)      a table, tag or branch is already there
    ├── UnsupportedError      (also NotImplementedError)  feature flag, file version, encoding
    ├── CorruptError                                      bytes contradict the specification
    ├── CommitError                                       a change did not become a version
    │   ├── ConflictError                                 another writer changed what it builds on
    │   ├── ContentionError                               other writers kept winning; try later
    │   └── UnknownOutcomeError                           it may have landed: keep every file
    └── StoreError            (also OSError)              the storage backend failed
        └── ShortageError                                 memory, files, space or a limit ran out
            └── LimitError                                decoded bytes exceed a limit that was set

A message is one sentence that says what was wrong, where, and what to do about it. It may quote
names and values of a table, so it is shown without control characters and never longer than a page.
"""

from collections.abc import Callable
from typing import Self

MOST_CHARACTERS = 4000
"""The longest message that is shown; what is in its middle is left out."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that scripts and emoji need, and that cannot reorder text."""


def printable(
    text: str, *, keep: str = "", escape: Callable[[str], str] = lambda one: ascii(one)[1:-1]
) -> str:
    """Return text of a table without characters that a terminal acts upon.

    Control characters, marks that reverse the order of text, and halves of characters are written
    as escapes, but for those in ``keep``.
    """
    if text.isprintable():
        return text
    from unicodedata import category  # noqa: PLC0415 - nearly all text is printable

    acted_upon = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return "".join(
        escape(one)
        if not one.isprintable() and one not in keep + _JOINERS and category(one) in acted_upon
        else one
        for one in text
    )


class LanceTableError(Exception):
    """Base of every deliberate error of this library."""

    def __str__(self) -> str:
        message = super().__str__()
        if len(message) > MOST_CHARACTERS:
            head, tail = MOST_CHARACTERS * 3 // 4, MOST_CHARACTERS // 4
            left_out = len(message) - head - tail
            message = f"{message[:head]}[… {left_out} characters …]{message[-tail:]}"
        return printable(message, keep="\n")


class InputError(LanceTableError, ValueError):
    """The caller asked for something that cannot be done."""


class SchemaError(InputError):
    """A column or a type does not fit the table."""


class ExpressionError(InputError):
    """A predicate or an expression cannot be parsed or bound.

    ``position`` is the zero-based offset into the text, when it is known.
    """

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class NotFoundError(LanceTableError, LookupError):
    """Something that was named does not exist."""


class TableNotFoundError(NotFoundError):
    """There is no table at the given place."""


class VersionNotFoundError(NotFoundError):
    """The table has no such version, or it was cleaned away."""


class RefNotFoundError(NotFoundError):
    """The table has no such tag or branch."""


class IndexNotFoundError(NotFoundError):
    """The table has no index of that name."""


class FileNotFoundInStoreError(NotFoundError):
    """An object that the table refers to is missing from its store."""


class ExistsError(LanceTableError, FileExistsError):
    """Something of that name is already there."""


class UnsupportedError(LanceTableError, NotImplementedError):
    """The bytes are well formed, but use something this version cannot read."""


class CorruptError(LanceTableError):
    """Bytes contradict the specification.

    Code that looks at bytes alone raises it without a place; the layer that knows
    the file adds one with :meth:`at`.
    """

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.message = message
        self.path = path

    def at(self, path: str, where: str = "") -> Self:
        """Return the same error, naming the file and the place in it."""
        if self.path is not None:
            return self
        place = f"{where}: " if where else ""
        return type(self)(f"{place}{self.message}", path=path)


class CommitError(LanceTableError):
    """A change did not become a version of the table."""


class ConflictError(CommitError):
    """Another writer changed what this change builds on; open the table again and repeat it.

    ``retryable`` is true when the same work, done again on the new version, makes sense.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class ContentionError(CommitError):
    """Other writers, all compatible, kept winning the race for the next version; try later."""


class UnknownOutcomeError(CommitError):
    """The store failed at the moment of the commit, so the change may or may not have landed."""


class StoreError(LanceTableError, OSError):
    """The storage backend failed.

    ``is_certain`` is true when it is known that the request had no effect, because the backend
    refused it; otherwise it may have been carried out, and only the answer was lost.
    """

    def __init__(self, message: str, *, is_certain: bool = False) -> None:
        super().__init__(message)
        self.is_certain = is_certain


class ShortageError(StoreError):
    """Memory, file descriptors, disk space or a limit that was set is used up.

    Nothing is known to be wrong with the bytes: the same request may succeed with more room.
    """


class LimitError(ShortageError):
    """Stored bytes would take more memory than a limit allows; none was allocated.

    ``row_bytes`` is the average size of the rows that were asked for.
    """

    def __init__(self, message: str, *, row_bytes: int = 0, path: str | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}", is_certain=True)
        self.message = message
        self.row_bytes = row_bytes
        self.path = path

    def at(self, path: str, where: str = "") -> Self:
        """Return the same error, naming the file and the place in it."""
        if self.path is not None:
            return self
        place = f"{where}: " if where else ""
        return type(self)(f"{place}{self.message}", row_bytes=self.row_bytes, path=path)
