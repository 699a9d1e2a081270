"""Follow a table as a stream: each micro-batch reads the rows that came with some versions."""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lancetable.commit.versions import list_versions, load
from lancetable.errors import InputError
from lancetable.operations.rows.parts import part_of
from lancetable.scan.plan import plan
from lancetable.spark.errors import all_coded
from lancetable.spark.options import ChangeMode, Options, StreamOptions, TableRef
from lancetable.spark.read.feed import FeedFollower, FeedPartition, FeedReader, FeedUnit
from lancetable.spark.read.partitions import LancePartition, divide
from lancetable.spark.read.reader import PartitionReader
from lancetable.spark.read.versions import Follower, Offset, Position, Unit

if TYPE_CHECKING:
    from lancetable.commit.snapshot import Snapshot
    from lancetable.format.manifest import Fragment


def _limits() -> Any:  # noqa: ANN401 - a module that PySpark 4.1 does not have
    try:
        return import_module("pyspark.sql.streaming.datasource")
    except ImportError:
        return None


_LIMITS: Any = _limits()
_AvailableNow: Any = getattr(_LIMITS, "SupportsTriggerAvailableNow", object)


@all_coded
class LanceStreamReader(DataSourceStreamReader, _AvailableNow):
    """Follows one branch of a table."""

    def __init__(self, options: Options, reader: PartitionReader) -> None:
        place, stream = options.place, options.stream
        if place.version is not None or place.tag is not None or place.as_of is not None:
            raise InputError(
                "a stream reads many versions; use startingVersion, startingTag or "
                "startingTimestamp instead of version, tag and asOf"
            )
        self.options = stream
        self.reader = reader
        self.follower = Follower(place.location, place.branch, stream.changes is ChangeMode.SKIP)
        self.feed: FeedFollower | None = None
        if stream.changes is ChangeMode.FEED:
            self.feed = FeedFollower(self.follower, FeedReader(reader))
        self.last: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a new query begins."""
        latest = self.follower.latest()
        position = first_position(self.follower, self.options, self._last(latest))
        if position.snapshot == latest.version:
            position = position.after(latest)
        return position.offset()

    def latestOffset(  # noqa: N802
        self,
        start: Offset | None = None,
        limit: object = None,
    ) -> Offset:
        """Return where the next micro-batch ends."""
        position = Position(**(start or self.initialOffset()))
        last = self._last(self.follower.check(position))
        units = (self.feed or self.follower).units(position, last)
        wanted = StreamOptions() if _takes_all(limit) else self.options
        return _end(position, units, wanted).offset()

    def getDefaultReadLimit(self) -> Any:  # noqa: ANN401, N802 - PySpark 4.1 has no such class
        """Return how much a micro-batch takes at most."""
        options = self.options
        if options.max_rows_per_trigger is not None:
            return _LIMITS.ReadMaxRows(options.max_rows_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return _LIMITS.ReadMaxBytes(options.max_bytes_per_trigger)
        if options.max_versions_per_trigger is not None:
            return _LIMITS.ReadMaxFiles(options.max_versions_per_trigger)
        return _LIMITS.ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the version that is the last to be read."""
        self.last = self.follower.latest().version

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Return the latest version, for the progress that Spark shows."""
        return Position(self.follower.latest().version).offset()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Divide what is new between two positions."""
        first, last = Position(**start), Position(**end)
        self.follower.check(first, last)
        if self.feed is not None:
            return self.feed.partitions(first, last)
        versions: dict[int, tuple[Snapshot, list[Fragment]]] = {}
        for unit in self.follower.units(first, last.version):
            if unit.end[:2] > last[:2]:
                break
            versions.setdefault(unit.end.version, (unit.part, []))[1].append(unit.fragment)
        return [
            partition
            for snapshot, fragments in versions.values()
            for partition in self._divided(snapshot, fragments)
        ]

    def _divided(self, snapshot: "Snapshot", fragments: "list[Fragment]") -> list[LancePartition]:
        schema = snapshot.manifest.schema
        planned = plan(schema, self.reader.request(schema, snapshot.version))
        return divide(part_of(snapshot, fragments), planned, self.reader.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if isinstance(partition, FeedPartition) and self.feed is not None:
            yield from self.feed.feed.batches(partition.tasks)
        elif isinstance(partition, LancePartition):
            yield from self.reader.batches(partition)

    def _last(self, latest: "Snapshot") -> int:
        return latest.version if self.last is None else self.last


def first_position(follower: Follower, options: StreamOptions, last: int) -> Position:
    """Return where a stream begins: with all rows of the last version, unless options say more.

    Raises:
        InputError: options name several places to begin.
    """
    given = (options.starting_version, options.starting_timestamp, options.starting_tag)
    if sum(one is not None for one in given) > 1:
        raise InputError("give one of startingVersion, startingTimestamp and startingTag")
    if options.starting_version is not None:
        return Position(options.starting_version)
    if options.starting_tag is not None:
        return Position(load(follower.location, tag=options.starting_tag).version + 1)
    if options.starting_timestamp is None:
        return Position(last, snapshot=last)
    infos = list_versions(follower.latest())
    try:
        before = load(
            follower.location, branch=follower.branch, as_of=options.starting_timestamp
        ).version
    except LookupError:
        return Position(infos[0].version)
    return Position(before + 1)


def first_version(place: TableRef, options: StreamOptions) -> int:
    """Return the first version whose changes are read: the first of all if none is named."""
    follower = Follower(place.location, place.branch, skips_changes=False)
    position = first_position(follower, options, 1)
    return 1 if position.snapshot else position.version


def _takes_all(limit: object) -> bool:
    return _LIMITS is not None and isinstance(limit, _LIMITS.ReadAllAvailable)


def _end(
    start: Position, units: Iterator[Unit] | Iterator[FeedUnit], options: StreamOptions
) -> Position:
    """Return the position behind as many units as limits allow, at least one if there is one."""
    end, rows, bytes_ = start, 0, 0
    versions: set[int] = set()
    for unit in units:
        rows += unit.rows
        bytes_ += unit.bytes_
        versions.add(unit.end.version)
        if end != start and _is_over(options, rows, bytes_, len(versions)):
            break
        end = unit.end
    return end


def _is_over(options: StreamOptions, rows: int, bytes_: int, versions: int) -> bool:
    limits = (
        (options.max_rows_per_trigger, rows),
        (options.max_bytes_per_trigger, bytes_),
        (options.max_versions_per_trigger, versions),
    )
    return any(most is not None and used > most for most, used in limits)
