"""Read Lance tables without the Lance library: the public names, nothing else.

Importing this package loads neither pyarrow nor numpy; a name is looked up in its module when
it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lancetable.errors import (
    CommitError,
    ConflictError,
    ContentionError,
    CorruptError,
    ExistsError,
    ExpressionError,
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
    NotFoundError,
    RefNotFoundError,
    SchemaError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from lancetable.table import Table, open_table

__version__ = "0.1.0"

__all__ = [
    "CommitError",
    "ConflictError",
    "ContentionError",
    "CorruptError",
    "ExistsError",
    "ExpressionError",
    "FileNotFoundInStoreError",
    "InputError",
    "LanceTableError",
    "NotFoundError",
    "RefNotFoundError",
    "SchemaError",
    "StoreError",
    "Table",
    "TableNotFoundError",
    "UnknownOutcomeError",
    "UnsupportedError",
    "VersionNotFoundError",
    "__version__",
    "open_table",
]

_HOMES = {"Table": "lancetable.table", "open_table": "lancetable.table"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lancetable' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
