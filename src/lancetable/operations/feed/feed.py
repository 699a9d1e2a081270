"""The change feed: what each version changed, in the order of commits.

1. Follow the columns of the last version back to the first (:mod:`.task`).
2. For each version, oldest first, find the rows it took away and brought (:mod:`.difference`).
3. Cut them into tasks, one fragment each (:mod:`.task`), removed rows first.

Planning reads manifests and deletion files, never data; it goes on as tasks are requested.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lancetable.commit import refs
from lancetable.commit.leases import reading
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Overwrite, Restore
from lancetable.commit.versions import load
from lancetable.errors import InputError, VersionNotFoundError
from lancetable.operations.feed.difference import Portion, Side, difference
from lancetable.operations.feed.task import (
    ADDED_FIELDS,
    ChangeTask,
    Link,
    earlier,
    links_of,
    readable,
)
from lancetable.operations.rows.parts import part_of
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanOptions, ScanRequest

if TYPE_CHECKING:
    import pandas as pd

TASK_ROWS = 1024 * 1024


class Changes:
    """The changes that some versions made, not read yet. It is an Arrow stream, like a scan.

    Beside the columns of the last version each row has ``_change_type`` (``insert``, ``delete``,
    ``update_preimage``, ``update_postimage``), ``_commit_version`` and ``_commit_timestamp``.
    """

    def __init__(
        self, snapshot: Snapshot, from_version: int, request: ScanRequest, options: ScanOptions
    ) -> None:
        number: object = from_version
        if not isinstance(number, int) or isinstance(number, bool):
            raise InputError(f"changes start from the number of a version, not from {number!r}")
        if not 0 <= from_version <= snapshot.version:
            raise InputError(
                f"changes go from a version up to a later one, not from {from_version} to "
                f"{snapshot.version}"
            )
        self._snapshot = snapshot
        self._from = from_version
        self._request = request
        self._options = options
        taken = {field.name for field in snapshot.manifest.schema.fields}
        for field in ADDED_FIELDS:
            if field.name in taken:
                raise InputError(
                    f"the table has a column {field.name!r} of its own, so that its changes have "
                    "no name for theirs; rename the column"
                )

    @property
    def from_version(self) -> int:
        """The version whose rows the changes start from."""
        return self._from

    @property
    def to_version(self) -> int:
        """The last version whose changes are included."""
        return self._snapshot.version

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the result; every column of the table may be null."""
        links = links_of(self._snapshot.manifest.schema)
        shown = plan(readable(links, self._snapshot.manifest.schema), self._request).schema
        return pa.schema([*shown, *ADDED_FIELDS], shown.metadata)

    def tasks(self, *, rows: int = TASK_ROWS) -> Iterator[ChangeTask]:
        """Yield tasks of at most so many rows, in the order of commits; each can be pickled.

        Raises:
            VersionNotFoundError: a version was cleaned away.
            UnsupportedError: a version does not say what it changed, and it cannot be found out.
        """
        before: Side | None = None
        columns = self._columns()
        if self._from:
            before = Side(self._load(self._from, self._from + 1), columns[self._from])
        for version in range(self._from + 1, self.to_version + 1):
            after = Side(self._load(version, version), columns[version])
            if before is not None and before.snapshot.branch != after.snapshot.branch:
                # The version before, as the branch that begins here has it.
                before = Side(self._load(version - 1, version), before.links)
            found = difference(before, after)
            if before is not None:
                yield from self._cut(before, found.removed, after.snapshot, rows, is_removed=True)
            yield from self._cut(after, found.added, after.snapshot, rows, is_removed=False)
            before = after

    def all_rows(self, *, rows: int = TASK_ROWS) -> Iterator[ChangeTask]:
        """Yield tasks that give all rows of the last version, as if it had inserted them."""
        snapshot = self._snapshot
        side = Side(snapshot, links_of(snapshot.manifest.schema))
        yield from self._cut(side, difference(None, side).added, snapshot, rows, is_removed=False)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes in batches; only a bounded part of them is in memory at a time.

        A lease keeps the versions from being cleaned up meanwhile, those of the open branch.
        """
        store, seconds = self._snapshot.store, self._options.lease_seconds
        first = max(self._from, 1)
        with reading(store, first, self.to_version, seconds=seconds) as hold:
            hold.start()
            for task in self.tasks():
                hold.tick()
                yield from task.read()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a stream of batches as an Arrow reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """Return all changes as a table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self, **options: Any) -> "pd.DataFrame":  # noqa: ANN401 - pyarrow's options
        """Return all changes as a data frame; options are those of ``pyarrow.Table.to_pandas``."""
        return self.to_arrow().to_pandas(**options)

    def counts(self) -> Mapping[int, Mapping[str, int]]:
        """Return for each version how many changes of each kind it made; reads no data."""
        found: dict[int, Counter[str]] = {
            version: Counter() for version in range(self._from + 1, self.to_version + 1)
        }
        for task in self.tasks():
            found[task.commit_version].update(task.counts())
        return {
            version: {kind: count for kind, count in sorted(counts.items()) if count}
            for version, counts in found.items()
        }

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Changes after version {self._from} up to version {self.to_version}>"

    def _load(self, version: int, needed_for: int) -> Snapshot:
        """Return a version as the line of history has it that made another one."""
        latest = self._snapshot
        if version == latest.version and needed_for == version:
            return latest
        branch = _line(latest, needed_for)
        try:
            return load(latest.location, version=version, branch=branch)
        except VersionNotFoundError as cause:
            raise VersionNotFoundError(
                f"the changes of version {needed_for} cannot be read without version {version}, "
                f"and {cause}"
            ) from None

    def _columns(self) -> dict[int, tuple[Link, ...]]:
        """Return where the columns of the feed are in each version."""
        snapshot = self._snapshot
        schema, links = snapshot.manifest.schema, links_of(snapshot.manifest.schema)
        found = {snapshot.version: links}
        for version in range(snapshot.version - 1, max(self._from, 1) - 1, -1):
            older = self._load(version, version + 1)
            if older.manifest.schema.fields != schema.fields:
                is_replaced = _is_replaced(self._load(version + 1, version + 1))
                links = earlier(links, older.manifest.schema, by_name=is_replaced)
            found[version] = links
            schema = older.manifest.schema
        return found

    def _cut(
        self, side: Side, portions: list[Portion], made: Snapshot, rows: int, *, is_removed: bool
    ) -> Iterator[ChangeTask]:
        schema = readable(side.links, self._snapshot.manifest.schema)
        manifest = side.snapshot.manifest._replace(schema=schema)
        shown = side.snapshot._replace(manifest=manifest)
        for portion in portions:
            part = part_of(shown, [portion.fragment])
            for start in range(0, len(portion.offsets), max(rows, 1)):
                yield ChangeTask(
                    part,
                    portion.offsets[start : start + rows],
                    portion.updated[start : start + rows],
                    is_removed,
                    made.version,
                    made.manifest.timestamp,
                    self._request,
                    self.schema,
                    self._options.batch_rows,
                )


def _is_replaced(snapshot: Snapshot) -> bool:
    """Say whether a version brought a schema whose ids have nothing to do with those before."""
    transaction = snapshot.transaction()
    return transaction is None or isinstance(transaction.operation, Overwrite | Restore)


def _line(latest: Snapshot, version: int) -> str | None:
    """Return the branch that made a version: the snapshot's own, or one it comes from."""
    branch = latest.branch
    while branch is not None:
        info = refs.read_branch(latest.location.open(), branch)
        if version > info.parent_version:
            break
        branch = info.parent_branch
    return branch
