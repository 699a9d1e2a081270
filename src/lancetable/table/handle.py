"""The version that a table holds, and what is kept open for it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lancetable.errors import InputError
from lancetable.format.manifest.codec import live_rows
from lancetable.store import TableLocation

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.snapshot import Snapshot
    from lancetable.fragment.readers import Readers
    from lancetable.fragment.write.progress import ProgressCallback
    from lancetable.fragment.write.writer import WriteOptions
    from lancetable.operations.results import ChangeOptions, Done, UpdateResult
    from lancetable.scan.plans import Plans
    from lancetable.scan.request import ColumnsArgument
    from lancetable.scan.take import Taker

R = TypeVar("R")


class Handle:
    """One version of a table; a change moves it to the version it made."""

    __slots__ = ("_plans", "_takers", "location", "readers", "searched", "snapshot")

    def __init__(self, location: TableLocation, snapshot: "Snapshot") -> None:
        self.location = location
        self.move(snapshot)

    def move(self, snapshot: "Snapshot") -> None:
        """Hold another version; what was opened of the one before is dropped."""
        self.snapshot = snapshot
        self.readers: Readers | None = None
        self._plans: Plans | None = None
        self._takers: dict[object, Taker] = {}
        self.searched: dict[object, Any] = {}
        """What searches found out about the version."""

    def done(self, done: "Done[R]") -> R:
        """Move to the version that an operation made, and return its result."""
        self.move(done.snapshot)
        return done.result

    def change(
        self,
        recipe: "Callable[[Snapshot, ChangeOptions], Done[R]]",
        commit: "CommitOptions | str | None",
        settings: Mapping[str, object] | None = None,
        *,
        moves_rows: bool = False,
    ) -> R:
        """Run an operation with its options, and move to the version it made.

        ``moves_rows`` is true for operations that rewrite rows of the table.
        """
        from lancetable.commit.options import CommitOptions
        from lancetable.operations.results import ChangeOptions

        with writing(settings or {}) as write:
            if moves_rows and write.target_bases:
                raise InputError(
                    "target_bases is for rows that are created, appended or overwritten; rows "
                    "that are changed stay in the folder of the table"
                )
            return self._run(recipe, ChangeOptions(write, CommitOptions.of(commit)))

    def _run(
        self, recipe: "Callable[[Snapshot, ChangeOptions], Done[R]]", options: "ChangeOptions"
    ) -> R:
        return self.done(recipe(self.snapshot, options))

    def count(self) -> int:
        """Return the number of rows."""
        known = live_rows(self.snapshot.manifest)
        return self.opened().starts[-1] if known is None else known

    def size(self) -> int:
        """Return the bytes of the data files, as far as the manifest records them."""
        fragments = self.snapshot.manifest.fragments
        return sum(file.size or 0 for fragment in fragments for file in fragment.files)

    def opened(self) -> "Readers":
        """Return the readers of the fragments."""
        if self.readers is None:
            from lancetable.fragment.readers import Readers

            self.readers = Readers(self.snapshot)
        return self.readers

    def plans(self) -> "Plans":
        """Return the plans of earlier scans."""
        if self._plans is None:
            from lancetable.scan.plans import Plans

            self._plans = Plans(self.snapshot.manifest.schema)
        return self._plans

    def taker(self, columns: "ColumnsArgument") -> "Taker":
        """Return the reader of single rows; the one for all columns is kept."""
        found = self._takers.get(None) if columns is None else None
        if found is None:
            from lancetable.scan.request import ScanRequest, parse_columns
            from lancetable.scan.take import Taker

            selection = parse_columns(columns)
            request = ScanRequest(selection.columns, selection.expressions)
            plan = self.plans().of(request)
            found = Taker(plan, self.opened())
            if columns is None:
                self._takers[None] = found
        return found


class PreparingHandle(Handle):
    """A handle whose operations write their files and leave the commit to later."""

    __slots__ = ("prepared",)

    prepared: object

    def _run(
        self, recipe: "Callable[[Snapshot, ChangeOptions], Done[R]]", options: "ChangeOptions"
    ) -> R:
        from lancetable.operations.prepared_transaction import prepare_transaction

        change = cast("Callable[..., Done[UpdateResult]]", recipe)
        prepared = prepare_transaction(options, lambda settled: change(self.snapshot, settled))
        self.prepared = prepared
        return cast("R", prepared.result)


@contextmanager
def writing(settings: Mapping[str, object]) -> "Iterator[WriteOptions]":
    """Give the options of a write, with a progress bar while it runs if that was requested."""
    from lancetable.fragment.write.writer import DEFAULT_WRITE, WriteOptions
    from lancetable.options import parse_options

    options = parse_options(WriteOptions, settings) if settings else DEFAULT_WRITE
    if options.progress is not True:
        yield options
        return
    from dataclasses import replace

    with reporting(options.progress, "writing rows") as callback:
        yield replace(options, progress=callback or False)


@contextmanager
def reporting(
    progress: "bool | ProgressCallback", title: str
) -> "Iterator[ProgressCallback | None]":
    """Give the callback of an operation; True is a bar on a terminal, and nothing elsewhere."""
    if not isinstance(progress, bool):
        if not callable(cast("object", progress)):
            raise InputError(f"progress is {progress!r}; give a function or a boolean")
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda now: bar.update(task, completed=now.done, total=now.total)
