"""Read and write Lance tables without the Lance library: the public names, nothing else.

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
    LimitError,
    NotFoundError,
    RefNotFoundError,
    SchemaError,
    ShortageError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
    VersionNotFoundError,
)

if TYPE_CHECKING:
    from lancetable.commit.history.difference import Difference
    from lancetable.commit.history.entry import HistoryEntry
    from lancetable.commit.history.history import History
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.refs import BranchInfo, TagInfo
    from lancetable.commit.versions import VersionInfo
    from lancetable.format.limits import ReadLimits, set_limits
    from lancetable.fragment.progress import WriteProgress
    from lancetable.fragment.writer import WriteOptions
    from lancetable.operations.branch.cherry_pick import PickResult
    from lancetable.operations.branch.fast_forward import PublishResult
    from lancetable.operations.check.model import CheckResult, Problem
    from lancetable.operations.check.repair import Loss, RepairPlan, RepairResult
    from lancetable.operations.cleanup.options import CleanupResult
    from lancetable.operations.columns.add import FunctionOptions
    from lancetable.operations.compact.options import CompactResult
    from lancetable.operations.feed.feed import Changes
    from lancetable.operations.feed.task import ChangeTask
    from lancetable.operations.prepared_transaction import PreparedTransaction
    from lancetable.operations.results import (
        CastNote,
        ColumnsResult,
        DeleteResult,
        MergeResult,
        UpdateResult,
        WriteResult,
    )
    from lancetable.operations.row_ids import RowIdsResult
    from lancetable.operations.uncommitted import NewFragments
    from lancetable.store import Durability
    from lancetable.store.dynamodb import DynamoManifests
    from lancetable.store.manifests import KeyValueManifests, ManifestEntry, ManifestStore
    from lancetable.store.sqlite import SqliteManifests
    from lancetable.table import Table, create_table, open_table
    from lancetable.table.rescue import check_table, repair_table

__version__ = "0.1.0"

__all__ = [
    "BranchInfo",
    "CastNote",
    "ChangeTask",
    "Changes",
    "CheckResult",
    "CleanupResult",
    "ColumnsResult",
    "CommitError",
    "CommitOptions",
    "CompactResult",
    "ConflictError",
    "ContentionError",
    "CorruptError",
    "DeleteResult",
    "Difference",
    "Durability",
    "DynamoManifests",
    "ExistsError",
    "ExpressionError",
    "FileNotFoundInStoreError",
    "FunctionOptions",
    "History",
    "HistoryEntry",
    "InputError",
    "KeyValueManifests",
    "LanceTableError",
    "LimitError",
    "Loss",
    "ManifestEntry",
    "ManifestStore",
    "MergeResult",
    "NewFragments",
    "NotFoundError",
    "PickResult",
    "PreparedTransaction",
    "Problem",
    "PublishResult",
    "ReadLimits",
    "RefNotFoundError",
    "RepairPlan",
    "RepairResult",
    "RowIdsResult",
    "SchemaError",
    "ShortageError",
    "SqliteManifests",
    "StoreError",
    "Table",
    "TableNotFoundError",
    "TagInfo",
    "UnknownOutcomeError",
    "UnsupportedError",
    "UpdateResult",
    "VersionInfo",
    "VersionNotFoundError",
    "WriteOptions",
    "WriteProgress",
    "WriteResult",
    "__version__",
    "check_table",
    "create_table",
    "open_table",
    "repair_table",
    "set_limits",
]

_HOMES = {
    "BranchInfo": "lancetable.commit.refs",
    "CastNote": "lancetable.operations.results",
    "ChangeTask": "lancetable.operations.feed.task",
    "Changes": "lancetable.operations.feed.feed",
    "CheckResult": "lancetable.operations.check.model",
    "CleanupResult": "lancetable.operations.cleanup.options",
    "ColumnsResult": "lancetable.operations.results",
    "CommitOptions": "lancetable.commit.options",
    "CompactResult": "lancetable.operations.compact.options",
    "DeleteResult": "lancetable.operations.results",
    "Difference": "lancetable.commit.history.difference",
    "Durability": "lancetable.store",
    "DynamoManifests": "lancetable.store.dynamodb",
    "FunctionOptions": "lancetable.operations.columns.add",
    "History": "lancetable.commit.history.history",
    "HistoryEntry": "lancetable.commit.history.entry",
    "KeyValueManifests": "lancetable.store.manifests",
    "Loss": "lancetable.operations.check.repair",
    "ManifestEntry": "lancetable.store.manifests",
    "ManifestStore": "lancetable.store.manifests",
    "MergeResult": "lancetable.operations.results",
    "NewFragments": "lancetable.operations.uncommitted",
    "PickResult": "lancetable.operations.branch.cherry_pick",
    "PreparedTransaction": "lancetable.operations.prepared_transaction",
    "Problem": "lancetable.operations.check.model",
    "PublishResult": "lancetable.operations.branch.fast_forward",
    "ReadLimits": "lancetable.format.limits",
    "RepairPlan": "lancetable.operations.check.repair",
    "RepairResult": "lancetable.operations.check.repair",
    "RowIdsResult": "lancetable.operations.row_ids",
    "SqliteManifests": "lancetable.store.sqlite",
    "Table": "lancetable.table",
    "TagInfo": "lancetable.commit.refs",
    "UpdateResult": "lancetable.operations.results",
    "VersionInfo": "lancetable.commit.versions",
    "WriteOptions": "lancetable.fragment.writer",
    "WriteProgress": "lancetable.fragment.progress",
    "WriteResult": "lancetable.operations.results",
    "check_table": "lancetable.table.rescue",
    "create_table": "lancetable.table",
    "open_table": "lancetable.table",
    "repair_table": "lancetable.table.rescue",
    "set_limits": "lancetable.format.limits",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lancetable' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
