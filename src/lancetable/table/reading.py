"""What can be asked of one version of a table.

Nothing here loads pyarrow or numpy before it is needed, so that opening and counting stay cheap.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Self

from lancetable.commit import versions
from lancetable.errors import InputError
from lancetable.format.manifest.codec import live_rows
from lancetable.store import TableLocation
from lancetable.table.argument_errors import explaining

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.versions import VersionInfo
    from lancetable.format.manifest.model import Fragment, IndexSegment
    from lancetable.format.schema.model import Blobs
    from lancetable.fragment.blobs import BlobFile
    from lancetable.fragment.readers import Readers
    from lancetable.scan.plan import Plans
    from lancetable.scan.request import ColumnsArgument, Where
    from lancetable.scan.scanner import Scan
    from lancetable.scan.take import Numbers, Taker
    from lancetable.table.repr import Portrait


@explaining
class ReadingTable:
    """One version of a table. ``refresh`` and ``checkout`` move it to another."""

    __slots__ = ("__weakref__", "_location", "_plans", "_readers", "_snapshot", "_takers")

    def __init__(self, location: TableLocation, snapshot: "Snapshot") -> None:
        self._location = location
        self._move(snapshot)

    def _move(self, snapshot: "Snapshot") -> None:
        self._snapshot = snapshot
        self._readers: Readers | None = None
        self._plans: Plans = {}
        self._takers: dict[object, Taker] = {}

    @property
    def uri(self) -> str:
        """Where the table is."""
        return self._location.uri

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
    def indices(self) -> "Sequence[IndexSegment]":
        """The segments of all indices."""
        return self._snapshot.indices()

    @property
    def metadata(self) -> Mapping[str, str]:
        """What users noted about the table."""
        return dict(self._snapshot.manifest.table_metadata or {})

    @property
    def config(self) -> Mapping[str, str]:
        """The settings kept with the table."""
        return dict(self._snapshot.manifest.config or {})

    @property
    def size(self) -> int:
        """The bytes of the data files, as far as the manifest knows them."""
        return sum(file.size or 0 for fragment in self.fragments for file in fragment.files)

    def versions(self, *, detail: bool = True) -> "list[VersionInfo]":
        """Return the versions that can be opened, oldest first.

        Without ``detail`` no manifest is read: numbers, paths and sizes only.
        """
        return versions.list_versions(self._snapshot, detail=detail)

    def refresh(self) -> Self:
        """Move to the latest version of the same branch; opened files are kept when it is this."""
        latest = versions.load(self._location, branch=self.branch)
        old, new = self._snapshot.manifest, latest.manifest
        # A table that was removed and made again may have a version of the same number.
        if (new.version, new.timestamp) != (old.version, old.timestamp):
            self._move(latest)
        return self

    def checkout(
        self,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
        as_of: datetime | str | None = None,
    ) -> Self:
        """Move to another version; one of this branch unless a tag or a branch is named.

        A time ``as_of`` without an offset is local time.
        """
        if tag is None and branch is None:
            branch = self.branch
        self._move(
            versions.load(self._location, version=version, tag=tag, branch=branch, as_of=as_of)
        )
        return self

    def count(self, where: "Where" = None) -> int:
        """Return the number of rows, or of those for which a predicate is true."""
        if where is not None:
            return self.scan(columns=[], where=where).count()
        known = live_rows(self._snapshot.manifest)
        return self._opened().starts[-1] if known is None else known

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
        **options: int,
    ) -> "Scan":
        """Describe rows to read; nothing is read before the result is asked for them.

        Args:
            columns: names and nested paths, or a dict of names and SQL expressions.
            where: a predicate, as SQL text or an Arrow expression.
            limit: the most rows to return.
            offset: how many rows to leave out first.
            with_row_id: add the column ``_rowid``.
            with_row_address: add the column ``_rowaddr``.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.
            fragments: read only these fragments of the version, by id or as values of
                :attr:`fragments`, in the order given.
            include_deleted: also return rows that are deleted but still in the data files.
                Their ``_rowid`` and ``_rowaddr`` are null, so ``with_row_id`` must be true.
                Rows of fragments that the version no longer has are not returned.
            use_indices: let scalar indices narrow the rows that are compared with ``where``.
            options: fields of :class:`lancetable.scan.request.ScanOptions`, such as
                ``batch_rows``, ``strict``, ``memory_bytes`` and ``threads``.
        """
        from lancetable.scan.request import ScanRequest, parse_columns, parse_options, parse_where
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
            readers = self._opened()
        else:
            from lancetable.scan.fragments import readers_of

            readers = readers_of(self._snapshot, fragments, include_deleted=include_deleted)
        return Scan(readers, request, parse_options(options), self._plans)

    def take(
        self,
        offsets: "Numbers | None" = None,
        *,
        row_ids: "Numbers | None" = None,
        row_addresses: "Numbers | None" = None,
        columns: "ColumnsArgument" = None,
    ) -> "pa.Table":
        """Return single rows in the order given, by running number, row id or row address.

        Raises:
            InputError: there is no such live row, or not exactly one way to name rows is used.
        """
        if (offsets is None) + (row_ids is None) + (row_addresses is None) != 2:
            raise InputError("give exactly one of offsets, row_ids and row_addresses")
        taker = self._taker(columns)
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
        """Return rows chosen at random, in table order; all of them when there are not more."""
        if rows < 0:
            raise InputError(f"a sample cannot have {rows} rows")
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
        """Return the blobs of single rows as files, None where there is none.

        Args:
            column: the blob column, or the path to it.
            offsets: running numbers of the rows; or give ``row_ids`` or ``row_addresses``.
            row_ids: row ids of the rows.
            row_addresses: addresses of the rows.
            allow_external: follow blobs that point at files outside the table. Only for tables
                whose writer you trust.
        """
        from lancetable.format.schema.project import resolve
        from lancetable.fragment.blobs import blob_field
        from lancetable.scan.take import open_blobs

        field = blob_field(resolve(self._snapshot.manifest.schema, column))
        rows = self.take(
            offsets, row_ids=row_ids, row_addresses=row_addresses, columns=[column, "_rowaddr"]
        )
        return open_blobs(self._opened(), field, rows, allow_external=allow_external)

    def _opened(self) -> "Readers":
        if self._readers is None:
            from lancetable.fragment.readers import Readers

            self._readers = Readers(self._snapshot)
        return self._readers

    def _taker(self, columns: "ColumnsArgument") -> "Taker":
        """Return what takes rows; that of all columns is found without a look at them."""
        found = self._takers.get(None) if columns is None else None
        if found is None:
            from lancetable.scan.plan import planned
            from lancetable.scan.request import ScanRequest, parse_columns
            from lancetable.scan.take import Taker

            selection = parse_columns(columns)
            request = ScanRequest(selection.columns, selection.expressions)
            plan = planned(self._plans, self._snapshot.manifest.schema, request)
            found = Taker(plan, self._opened())
            if columns is None:
                self._takers[None] = found
        return found

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        from lancetable.table.repr import as_text

        return as_text(self._portrait())

    def _repr_html_(self) -> str:
        from lancetable.table.repr import as_html

        return as_html(self._portrait())

    def _portrait(self) -> "Portrait":
        from lancetable.table.repr import Portrait

        return Portrait(
            uri=self.uri,
            version=self.version,
            branch=self.branch,
            timestamp=self.timestamp,
            rows=self.count(),
            fragments=len(self.fragments),
            size=self.size,
            indices=sorted({segment.name for segment in self.indices}),
            schema=self.schema,
        )
