"""Indices of a table by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from lancetable.errors import IndexNotFoundError, InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle, reporting
from lancetable.table.named import Named, UnknownNameError

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.fragment.write.progress import ProgressCallback
    from lancetable.index.specs import SpecArgument
    from lancetable.operations.index.create import IndexResult
    from lancetable.operations.index.describe import IndexInfo
    from lancetable.operations.index.optimize import OptimizeResult
    from lancetable.operations.results import WriteResult
    from lancetable.operations.run.runner import Runner
    from lancetable.table.settings import IndexSettings, OptimizeSettings


class UnknownIndexError(IndexNotFoundError, UnknownNameError):
    """There is no such index."""

    __str__ = Exception.__str__


@explaining
class Indices(Named["IndexInfo"]):
    """The indices of a table by name, those of the format itself included."""

    __slots__ = ("_handle",)
    _unknown = UnknownIndexError

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _all(self) -> dict[str, "IndexInfo"]:
        from lancetable.operations.index.describe import describe_indices

        return describe_indices(self._handle.snapshot)

    def create(
        self,
        column: str,
        spec: "SpecArgument",
        *,
        progress: "bool | ProgressCallback" = False,
        runner: "Runner | None" = None,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[IndexSettings]",
    ) -> "IndexResult":
        """Create an index on a column.

        Args:
            column: a column, or the path of a nested one such as ``at.city``.
            spec: the kind, such as ``BTree()``; a name such as ``"btree"`` has the defaults.
            progress: called with the number of rows read; True shows a bar.
            runner: where the steps run; by default threads of this process.
            commit: options of the commit, or its message.
            **options: fields of :class:`lancetable.IndexOptions`, such as ``name``, ``replace``,
                ``fragments`` and ``memory_bytes``.

        Raises:
            SchemaError: there is no such column, or the kind does not take its type.
            InputError: there is no such kind or fragment.
            ExistsError: there is an index of that name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.index.specs import parse_spec
        from lancetable.operations.index.create import IndexOptions, create_index
        from lancetable.operations.results import RunOptions
        from lancetable.options import parse_options

        settled = parse_options(IndexOptions, options)
        kind, how = parse_spec(spec), CommitOptions.of(commit)
        with reporting(progress, "building the index") as callback:
            run = RunOptions(runner, how, callback)
            return self._handle.done(
                create_index(self._handle.snapshot, column, kind, settled, run)
            )

    def optimize(
        self,
        names: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        progress: "bool | ProgressCallback" = False,
        runner: "Runner | None" = None,
        commit: "CommitOptions | str | None" = None,
        **options: "Unpack[OptimizeSettings]",
    ) -> "OptimizeResult":
        """Cover new fragments, and merge segments.

        Args:
            names: the indices; by default all.
            dry_run: change nothing, and return what would be done; ``explain()`` says why.
            progress: called with the number of rows read; True shows a bar.
            runner: where the steps run; by default threads of this process.
            commit: options of the commit, or its message.
            **options: fields of :class:`lancetable.OptimizeOptions`: ``mode`` is ``append``, which
                adds a segment for uncovered fragments, ``auto``, which also merges small segments,
                ``merge``, which makes one of all, or ``rebuild``, which reads all data again.

        Raises:
            IndexNotFoundError: there is no index of a name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.index import optimize
        from lancetable.operations.results import RunOptions
        from lancetable.options import parse_options

        if isinstance(names, str):
            raise InputError(f"names is a list; write [{names!r}]")
        settled = parse_options(optimize.OptimizeOptions, options)
        if dry_run:
            return optimize.foresee_optimize(self._handle.snapshot, names, settled)
        how = CommitOptions.of(commit)
        with reporting(progress, "optimizing indices") as callback:
            run = RunOptions(runner, how, callback)
            return self._handle.done(
                optimize.optimize_indices(self._handle.snapshot, names, settled, run)
            )

    def prewarm(self, name: str) -> None:
        """Read an index into memory, as far as there is room for what is kept of indices.

        Raises:
            IndexNotFoundError: there is no index of that name.
            InputError: it is not used.
        """
        from lancetable.operations.index.prewarm import prewarm_index

        prewarm_index(self._handle.snapshot, name)

    def recall(
        self,
        name: str,
        sample: int = 100,
        *,
        limit: int = 10,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
    ) -> float:
        """Measure which share of the nearest rows of some vectors a vector index finds.

        Args:
            name: the index.
            sample: how many vectors of the table are looked for.
            limit: how many rows are wanted for each.
            nprobes: as in a search.
            refine_factor: as in a search.
            ef: as in a search.

        Raises:
            IndexNotFoundError: there is no index of that name.
            InputError: it is not an index of vectors.
        """
        from lancetable.errors import InputError
        from lancetable.scan.vector_request import VectorOptions
        from lancetable.scan.vectors.recall import measure_recall

        info = self[name]
        if info.kind != "vector":
            raise InputError(f"{name!r} is an index of kind {info.kind!r}; recall is for vectors")
        options = VectorOptions(nprobes, refine_factor, ef)
        return measure_recall(self._handle.opened(), info.columns[0], sample, limit, options)

    def drop(self, name: str, *, commit: "CommitOptions | str | None" = None) -> "WriteResult":
        """Drop an index; its files stay until a cleanup.

        Raises:
            IndexNotFoundError: there is no index of that name.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.index.create import drop_index

        done = drop_index(self._handle.snapshot, name, CommitOptions.of(commit))
        return self._handle.done(done)

    def list(self) -> "list[IndexInfo]":
        """Return all indices."""
        return [*self._all().values()]
