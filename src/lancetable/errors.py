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

A message is one sentence that says what was wrong, where, and what to do about it.
"""

from typing import Self


class LanceTableError(Exception):
    """Base of every deliberate error of this library."""


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
    """Another writer changed what this change builds on; read again and decide anew.

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
