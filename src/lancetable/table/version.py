"""One version of a table: its facts, its rows and the versions around it.

Nothing here loads pyarrow or numpy before it is needed, so that opening and counting stay cheap.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Self, Unpack

from lancetable.commit import versions
from lancetable.errors import InputError
from lancetable.store import TableLocation
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.searchable import Searchable

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.commit.history.difference import Difference
    from lancetable.commit.history.history import History
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.versions import VersionInfo
    from lancetable.format.manifest.model import Fragment
    from lancetable.format.schema.model import Blobs
    from lancetable.fragment.blobs import BlobFile
    from lancetable.operations.feed.feed import Changes
    from lancetable.scan.request import ColumnsArgument, Where
    from lancetable.scan.scanner import Scan
    from lancetable.scan.take import Numbers
    from lancetable.table.inspection import Inspection
    from lancetable.table.settings import ScanSettings


@explaining
class TableVersion(Searchable):
    """One version of a table: its facts, its rows and the versions around it."""

    __slots__ = ("__weakref__",)

    def __init__(self, location: TableLocation, snapshot: "Snapshot") -> None:
        self._handle = Handle(location, snapshot)

    @classmethod
    def of(cls, handle: Handle) -> Self:
        """Return a table that shares a handle."""
        made = cls.__new__(cls)
        made._handle = handle  # noqa: SLF001 - of the same class
        return made

    # ---- facts

    @property
    def _snapshot(self) -> "Snapshot":
        return self._handle.snapshot

    @property
    def uri(self) -> str:
        """The address of the table."""
        return self._handle.location.uri

    @property
    def version(self) -> int:
        """The number of this version."""
        return self._snapshot.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch; None for the main one."""
        return self._snapshot.branch

    @property
    def timestamp(self) -> datetime | None:
        """When this version was committed."""
        return self._snapshot.manifest.timestamp

    @property
    def schema(self) -> "pa.Schema":
        """The columns, as a scan returns them."""
        from lancetable.format.schema.types import arrow_schema

        return arrow_schema(self._snapshot.manifest.schema)

    @property
    def fragments(self) -> "Sequence[Fragment]":
        """The fragments in the order their rows are read."""
        return self._snapshot.manifest.fragments

    @property
    def size(self) -> int:
        """The bytes of the data files, as far as the manifest records them."""
        return self._handle.size()

    @property
    def inspect(self) -> "Inspection":
        """Versions, fragments, files and references as Arrow tables."""
        from lancetable.table.inspection import Inspection

        return Inspection(self._snapshot)

    # ---- versions

    def versions(self, *, detail: bool = True) -> "list[VersionInfo]":
        """Return the versions that can be opened, oldest first.

        Without ``detail`` no manifest is read: numbers, paths and sizes only.
        """
        return versions.list_versions(self._snapshot, detail=detail)

    def refresh(self) -> Self:
        """Move to the latest version of the same branch."""
        latest = versions.load(self._handle.location, branch=self.branch)
        old, new = self._snapshot.manifest, latest.manifest
        # A table that was removed and created again may have a version of the same number.
        if (new.version, new.timestamp) != (old.version, old.timestamp):
            self._handle.move(latest)
        return self

    def checkout(
        self,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
        as_of: datetime | str | None = None,
    ) -> Self:
        """Move to another version; of this branch unless a tag or a branch is named.

        A time ``as_of`` without an offset is local time.
        """
        if tag is None and branch is None:
            branch = self.branch
        location = self._handle.location
        self._handle.move(
            versions.load(location, version=version, tag=tag, branch=branch, as_of=as_of)
        )
        return self

    def history(self, *, limit: int | None = None) -> "History":
        """Return what each version of this branch up to this one did, newest first."""
        from lancetable.commit.history.history import read_history

        return read_history(self._snapshot, limit=limit)

    def diff(self, other: "TableVersion") -> "Difference":
        """Return how the version of another handle differs in columns, rows and files.

        Only metadata is compared; :meth:`changes` returns the rows that changed.
        """
        from lancetable.commit.history.difference import compare

        return compare(self._snapshot, other._snapshot)  # noqa: SLF001 - of the same class

    @contextmanager
    def hold(self, *, seconds: int | None = None) -> Iterator[None]:
        """Protect the files of this version from cleanup during a ``with`` block.

        Long scans do so by themselves. ``seconds`` is how long the version stays protected after
        this process exited without releasing its lease; 120 by default.
        """
        from lancetable.commit.leases import reading

        with reading(self._snapshot.store, self.version, seconds=seconds) as hold:
            hold.require()
            yield

    # ---- reading

    def count(self, where: "Where" = None) -> int:
        """Return the number of rows, or of those that match a predicate."""
        if where is not None:
            return self.scan(columns=[], where=where).count()
        return self._handle.count()

    def scan(  # noqa: PLR0913 - the vocabulary of a query
        self,
        columns: "ColumnsArgument" = None,
        *,
        where: "Where" = None,
        limit: int | None = None,
        offset: int = 0,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: "Blobs" = "descriptions",
        fragments: "Sequence[int | Fragment] | None" = None,
        include_deleted: bool = False,
        use_indices: bool = True,
        **options: "Unpack[ScanSettings]",
    ) -> "Scan":
        """Describe rows to read; the result reads them when they are requested.

        Args:
            columns: names and nested paths, or a dict of names and SQL expressions.
            where: a predicate, as SQL text or an Arrow expression.
            limit: the most rows to return.
            offset: how many rows to skip first.
            with_row_id: add the column ``_rowid``.
            with_row_address: add the column ``_rowaddr``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            fragments: ids or values of the fragments to read, in the order given.
            include_deleted: also return deleted rows that are still in the data files, with a
                null ``_rowid`` and ``_rowaddr``; needs ``with_row_id``.
            use_indices: find rows through scalar indices where that reads less.
            **options: fields of :class:`lancetable.ScanOptions`, such as ``batch_rows``.
        """
        from lancetable.scan.request import ScanRequest, parse_columns, parse_where, scan_options
        from lancetable.scan.scanner import Scan

        selection = parse_columns(columns)
        request = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            where=parse_where(where),
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            include_deleted=include_deleted,
            blobs=blobs,
            use_indices=use_indices,
        )
        if fragments is None and not include_deleted:
            readers = self._handle.opened()
        else:
            from lancetable.scan.fragments import readers_of

            readers = readers_of(self._snapshot, fragments, include_deleted=include_deleted)
        return Scan(readers, request, scan_options(options), self._handle.plans())

    def take(
        self,
        offsets: "Numbers | None" = None,
        *,
        row_ids: "Numbers | None" = None,
        row_addresses: "Numbers | None" = None,
        columns: "ColumnsArgument" = None,
    ) -> "pa.Table":
        """Return single rows in the order given, by offset, row id or row address."""
        if (offsets is None) + (row_ids is None) + (row_addresses is None) != 2:
            raise InputError("give exactly one of offsets, row_ids and row_addresses")
        taker = self._handle.taker(columns)
        if offsets is not None:
            return taker.by_offset(offsets)
        if row_ids is not None:
            return taker.by_row_id(row_ids)
        return taker.by_address(row_addresses)

    def head(self, rows: int = 10, *, columns: "ColumnsArgument" = None) -> "pa.Table":
        """Return the first rows."""
        return self.scan(columns, limit=rows).to_arrow()

    def sample(
        self, rows: int, *, seed: int | None = None, columns: "ColumnsArgument" = None
    ) -> "pa.Table":
        """Return rows chosen at random, in table order; at most all of them."""
        if rows < 0:
            raise InputError(f"rows is {rows}; give a number from 0")
        total = self.count()
        import random

        chosen = random.Random(seed).sample(range(total), min(rows, total))  # noqa: S311
        return self.take(sorted(chosen), columns=columns)

    def blobs(
        self,
        column: str,
        offsets: "Numbers | None" = None,
        *,
        row_ids: "Numbers | None" = None,
        row_addresses: "Numbers | None" = None,
        allow_external: bool = False,
    ) -> "list[BlobFile | None]":
        """Return the blobs of single rows as files, None for a null.

        ``allow_external`` also opens files outside the table; only for writers you trust.
        """
        from lancetable.format.schema.project import resolve
        from lancetable.fragment.blobs import blob_field
        from lancetable.scan.take import open_blobs

        field = blob_field(resolve(self._snapshot.manifest.schema, column))
        rows = self.take(
            offsets, row_ids=row_ids, row_addresses=row_addresses, columns=[column, "_rowaddr"]
        )
        return open_blobs(self._handle.opened(), field, rows, allow_external=allow_external)

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        *,
        columns: "ColumnsArgument" = None,
        with_row_id: bool = False,
        blobs: "Blobs" = "descriptions",
        **options: "Unpack[ScanSettings]",
    ) -> "Changes":
        """Describe the rows that the versions after ``from_version`` changed.

        Applied in order, the changes turn the rows of ``from_version`` (0 for an empty table) into
        those of ``to_version``, by default this one. Each row has ``_change_type`` (``insert``,
        ``delete``, ``update_preimage`` or ``update_postimage``), ``_commit_version`` and
        ``_commit_timestamp``. Without stable row ids an update that moved rows is a delete and an
        insert. The other arguments are those of :meth:`scan`.
        """
        from lancetable.operations.feed.feed import Changes
        from lancetable.scan.request import ScanRequest, parse_columns, scan_options

        snapshot = self._snapshot
        if to_version is not None and to_version != snapshot.version:
            location = self._handle.location
            snapshot = versions.load(location, version=to_version, branch=self.branch)
        selection = parse_columns(columns)
        request = ScanRequest(
            columns=selection.columns,
            expressions=selection.expressions,
            with_row_id=with_row_id,
            blobs=blobs,
        )
        return Changes(snapshot, from_version, request, scan_options(options))

    # ---- protocols

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        from lancetable.table.repr import as_text, portrait

        return as_text(portrait(self._handle))

    def _repr_html_(self) -> str:
        from lancetable.table.repr import as_html, portrait

        return as_html(portrait(self._handle))
