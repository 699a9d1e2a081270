"""Indices of a table by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lancetable.errors import IndexNotFoundError
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.named import Named, UnknownNameError

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.format.manifest.model import IndexSegment
    from lancetable.index.specs import SpecArgument
    from lancetable.operations.index.create import IndexResult
    from lancetable.operations.index.optimize import OptimizeMode, OptimizeResult
    from lancetable.operations.results import WriteResult
    from lancetable.operations.run.runner import Runner


class UnknownIndexError(IndexNotFoundError, UnknownNameError):
    """There is no such index."""

    __str__ = Exception.__str__


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index of a table."""

    name: str
    columns: tuple[str, ...]
    kind: str
    """The name of the message that describes it, such as ``BTreeIndexDetails``."""
    segments: "tuple[IndexSegment, ...]"
    rows_covered: int = 0
    """Live rows of the fragments that the index describes."""
    rows_uncovered: int = 0
    """Live rows that are scanned."""
    bytes: int = 0
    created_at: datetime | None = None
    unusable: str | None = None
    """Why predicates are not answered with it; None when they are."""


@explaining
class Indices(Named[IndexInfo]):
    """The indices of a table by name, those of the format itself included."""

    __slots__ = ("_handle",)
    _unknown = UnknownIndexError

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _all(self) -> dict[str, IndexInfo]:
        snapshot = self._handle.snapshot
        grouped: dict[str, list[IndexSegment]] = {}
        for segment in snapshot.indices():
            grouped.setdefault(segment.name, []).append(segment)
        names = {field.id: field.name for field in snapshot.manifest.schema.walk()}
        return {name: self._info(name, segments, names) for name, segments in grouped.items()}

    def _info(
        self, name: str, segments: "Sequence[IndexSegment]", names: dict[int, str]
    ) -> IndexInfo:
        from lancetable.commit.reuse import load_reuse
        from lancetable.format.manifest.indices.kinds import message_name
        from lancetable.fragment.counts import live_rows
        from lancetable.index.registry import unusable
        from lancetable.operations.index.segments import described

        snapshot = self._handle.snapshot
        reuse = load_reuse(snapshot, snapshot.indices())
        known: set[int] = set()
        for segment in segments:
            known |= described(segment, snapshot, reuse)
        rows = {one.id: live_rows(one) or 0 for one in snapshot.manifest.fragments}
        covered = sum(count for id_, count in rows.items() if id_ in known)
        times = [one.created_at for one in segments if one.created_at is not None]
        reasons = [reason for reason in map(unusable, segments) if reason is not None]
        return IndexInfo(
            name,
            tuple(names.get(one, str(one)) for one in segments[0].fields),
            message_name(segments[0]),
            tuple(segments),
            covered,
            sum(rows.values()) - covered,
            sum(file.size for one in segments for file in one.files),
            max(times, default=None),
            reasons[0] if reasons else None,
        )

    def create(  # noqa: PLR0913 - each has a default
        self,
        column: str,
        spec: "SpecArgument",
        *,
        name: str | None = None,
        replace: bool = False,
        train: bool = True,
        fragments: Sequence[int] | None = None,
        segments: int = 1,
        memory_bytes: int | str = "1GB",
        runner: "Runner | None" = None,
        commit: "CommitOptions | str | None" = None,
    ) -> "IndexResult":
        """Create an index on a column.

        Args:
            column: a column, or the path of a nested one such as ``at.city``.
            spec: the kind, such as ``BTree()``; a name such as ``"btree"`` has the defaults.
            name: by default the column's with ``_idx``.
            replace: replace an index of the same name.
            train: False for an index that covers nothing until it is optimized.
            fragments: ids of the fragments to cover; by default all.
            segments: how many segments are built in parallel.
            memory_bytes: about the most memory of the build; larger sorts use local files.
            runner: where the steps run; by default threads of this process.
            commit: options of the commit, or its message.

        Raises:
            SchemaError: there is no such column, or the kind does not take its type.
            InputError: there is no such kind or fragment.
            ExistsError: there is an index of that name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.index.specs import parse_spec
        from lancetable.operations.index.create import IndexOptions, create_index
        from lancetable.operations.run.runner import THREADS
        from lancetable.options import parse_options

        given = {
            "name": name,
            "replace": replace,
            "train": train,
            "fragments": fragments,
            "segments": segments,
            "memory_bytes": memory_bytes,
        }
        options = parse_options(IndexOptions, given)
        settled, runs = CommitOptions.of(commit), runner or THREADS
        kind = parse_spec(spec)
        done = create_index(self._handle.snapshot, column, kind, options, settled, runs)
        return self._handle.done(done)

    def optimize(
        self,
        names: Sequence[str] | None = None,
        mode: "OptimizeMode" = "auto",
        *,
        dry_run: bool = False,
        runner: "Runner | None" = None,
        commit: "CommitOptions | str | None" = None,
    ) -> "OptimizeResult":
        """Cover new fragments, and merge segments.

        Args:
            names: the indices; by default all.
            mode: ``append`` adds a segment for uncovered fragments, ``auto`` also merges it with
                segments that are not much larger, ``merge`` makes one of all, ``rebuild`` reads all
                data again.
            dry_run: change nothing, and return what would be done.
            runner: where the steps run; by default threads of this process.
            commit: options of the commit, or its message.

        Raises:
            IndexNotFoundError: there is no index of a name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.index.optimize import OptimizeOptions, optimize_indices
        from lancetable.operations.run.runner import THREADS

        options = OptimizeOptions(names, mode, dry_run)
        settled, runs = CommitOptions.of(commit), runner or THREADS
        return self._handle.done(optimize_indices(self._handle.snapshot, options, settled, runs))

    def drop(self, name: str, *, commit: "CommitOptions | str | None" = None) -> "WriteResult":
        """Drop an index; its files stay until a cleanup.

        Raises:
            IndexNotFoundError: there is no index of that name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.index.create import drop_index

        done = drop_index(self._handle.snapshot, name, CommitOptions.of(commit))
        return self._handle.done(done)

    def list(self) -> list[IndexInfo]:
        """Return all indices."""
        return [*self._all().values()]
