"""Read and write Lance tables without the Lance library.

Importing this package loads neither pyarrow nor numpy; a name is imported from its module when it
is first used. ``__init__.pyi`` declares the same names for type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "BTree": "index.specs",
    "Bitmap": "index.specs",
    "BloomFilter": "index.specs",
    "BranchInfo": "commit.refs",
    "CastNote": "operations.results",
    "ChangeTask": "operations.feed.task",
    "Changes": "operations.feed.feed",
    "CheckOptions": "operations.check.model",
    "CheckResult": "operations.check.model",
    "CleanupOptions": "operations.cleanup.options",
    "CleanupResult": "operations.cleanup.options",
    "ColumnsResult": "operations.results",
    "CommitError": "errors",
    "CommitOptions": "commit.options",
    "CompactOptions": "operations.compact.options",
    "CompactResult": "operations.compact.options",
    "ConflictError": "errors",
    "ContentionError": "errors",
    "CorruptError": "errors",
    "DeleteResult": "operations.results",
    "Difference": "commit.history.difference",
    "Durability": "store",
    "DynamoManifests": "store.dynamodb",
    "ExistsError": "errors",
    "ExpressionError": "errors",
    "FileNotFoundInStoreError": "errors",
    "FullText": "index.specs",
    "FunctionOptions": "operations.columns.add",
    "History": "commit.history.history",
    "HistoryEntry": "commit.history.history",
    "IndexInfo": "operations.index.describe",
    "IndexNotFoundError": "errors",
    "IndexOptions": "operations.index.create",
    "IndexResult": "operations.index.create",
    "InputError": "errors",
    "IvfFlat": "index.ivf",
    "IvfHnswFlat": "index.ivf",
    "IvfHnswPq": "index.ivf",
    "IvfHnswSq": "index.ivf",
    "IvfPq": "index.ivf",
    "IvfRq": "index.ivf",
    "IvfSq": "index.ivf",
    "JsonPath": "index.specs",
    "KeyValueManifests": "store.manifests",
    "LabelList": "index.specs",
    "LanceTableError": "errors",
    "LimitError": "errors",
    "Loss": "operations.check.repair",
    "ManifestEntry": "store.manifests",
    "ManifestStore": "store.manifests",
    "MergeResult": "operations.results",
    "NGram": "index.specs",
    "NewFragments": "operations.prepared_transaction",
    "NotFoundError": "errors",
    "OptimizeOptions": "operations.index.optimize",
    "OptimizeResult": "operations.index.optimize",
    "PickResult": "operations.branch.cherry_pick",
    "PreparedTransaction": "operations.prepared_transaction",
    "Problem": "operations.check.model",
    "Progress": "fragment.write.progress",
    "PublishResult": "operations.branch.fast_forward",
    "RTree": "index.specs",
    "ReadLimits": "format.limits",
    "RefNotFoundError": "errors",
    "RepairPlan": "operations.check.repair",
    "RepairResult": "operations.check.repair",
    "RowIdsResult": "operations.row_ids",
    "Rrf": "scan.hybrid",
    "ScanOptions": "scan.request",
    "SchemaError": "errors",
    "ShortageError": "errors",
    "SqliteManifests": "store.sqlite",
    "StoreError": "errors",
    "Table": "table",
    "TableNotFoundError": "errors",
    "TagInfo": "commit.refs",
    "UnknownOutcomeError": "errors",
    "UnsupportedError": "errors",
    "UpdateResult": "operations.results",
    "VersionInfo": "commit.versions",
    "VersionNotFoundError": "errors",
    "Weighted": "scan.hybrid",
    "WriteOptions": "fragment.write.writer",
    "WriteResult": "operations.results",
    "ZoneMap": "index.specs",
    "check_table": "table",
    "create_table": "table",
    "open_table": "table",
    "repair_table": "table",
    "set_limits": "format.limits",
}

__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605 - the stub declares it


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lancetable' has no attribute {name!r}")
    value: object = getattr(import_module(f"lancetable.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
