"""How many requests an operation makes, counted by a proxy before a real server.

These are the numbers that docs/storage.md tells.
"""

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.store import ByteRange, Store
from lancetable.store.cloud.fetch import fetch_ranges
from lancetable.store.cloud.settings import Limits
from lancetable.store.wrap import WrappedStore
from tests.servers.moto import Moto
from tests.servers.places import Place
from tests.servers.proxy import Proxy, proxy
from tests.servers.tables import recorded_place
from tests.stores import CountingStore, WrappedLocation

cloud = pytest.mark.cloud
ROWS = 60_000


def five_columns() -> pa.Table:
    """Return rows of five columns, enough for several chunks of each."""
    draw = np.random.default_rng(0)
    columns = {
        "id": np.arange(ROWS),
        "a": draw.random(ROWS),
        "b": draw.integers(0, 1000, ROWS),
        "text": [f"name {number % 5000} of {number}" for number in range(ROWS)],
        "f": draw.random(ROWS).astype(np.float32),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return five_columns()


@cloud
def test_opening_the_latest_version_takes_two_requests(
    via: Place, between: Proxy, data: pa.Table
) -> None:
    table = lt.create_table(via.uri, data.slice(0, 100), storage_options=via.options)
    for _ in range(3):
        table.append(data.slice(0, 10))
    between.seen.clear()
    # As another process would: what this one wrote it knows.
    stranger = {**via.options, "user_agent": "somebody else"}
    opened = lt.open_table(via.uri, storage_options=stranger)
    assert opened.count() == 130
    assert [(one.method, "list-type" in one.path) for one in between.seen] == [
        ("GET", True),
        ("GET", False),
    ]
    for options in (stranger, via.options):
        between.seen.clear()
        assert lt.open_table(via.uri, storage_options=options).count() == 130
        assert len(between.seen) == 1
    between.seen.clear()
    assert lt.open_table(via.uri, version=2, storage_options=via.options).version == 2
    assert len(between.seen) == 1


@cloud
def test_an_append_takes_four_requests(via: Place, between: Proxy, data: pa.Table) -> None:
    table = lt.create_table(via.uri, data.slice(0, 100), storage_options=via.options)
    between.seen.clear()
    table.append(data.slice(0, 1000))
    made = [(one.method, one.path.rpartition(".")[2]) for one in between.seen]
    assert len(made) == 4
    assert [name for method, name in made if method == "PUT"] == ["lance", "txn", "manifest"]
    # The look for newer versions and the transaction file are under way together.
    assert {made[1][0], made[2][0]} == {"GET", "PUT"}


@cloud
def test_creating_a_table_takes_five_requests(via: Place, between: Proxy, data: pa.Table) -> None:
    lt.create_table(via.fresh("first").uri, data.slice(0, 9), storage_options=via.options)
    assert len(between.seen) == 9
    between.seen.clear()
    lt.create_table(via.uri, data.slice(0, 9), storage_options=via.options)
    assert len(between.seen) == 5


@cloud
def test_an_append_through_dynamodb(
    moto_server: Moto, via: Place, between: Proxy, data: pa.Table
) -> None:
    place = recorded_place(moto_server, via)
    with proxy(moto_server.port) as recorded:
        options = {**place.options, "dynamodb_endpoint": recorded.endpoint}
        table = lt.create_table(place.uri, data.slice(0, 9), storage_options=options)
        between.seen.clear()
        recorded.seen.clear()
        table.append(data.slice(0, 9))
        made = [one.method for one in between.seen]
        # The manifest of the version before is compared while the transaction is on its way.
        assert sorted(made[1:3]) == ["GET", "PUT"]
        assert made[:1] + made[3:] == ["PUT", "PUT", "PUT", "DELETE"]
        assert len(recorded.seen) == 3


@cloud
def test_a_missing_table_takes_one_request(via: Place, between: Proxy) -> None:
    with pytest.raises(lt.TableNotFoundError):
        lt.open_table(via.uri, storage_options=via.options)
    assert len(between.seen) == 1


def test_a_take_takes_three_rounds(data: pa.Table) -> None:
    lt.create_table("memory://requests/take", data)
    counting: list[CountingStore] = []

    def count(inner: Store) -> Store:
        counting.append(CountingStore(inner))
        return counting[-1]

    place = WrappedLocation("memory://requests/take", wrap=count)
    table = lt.Table(place, load(place))
    rows = list(range(0, ROWS, ROWS // 100))[:100]
    found = table.take(rows)
    assert found.equals(data.take(rows))
    rounds = sum(one.counts["read_ranges"] for one in counting)
    assert rounds <= 3
    opened = sum(one.counts["open"] for one in counting)
    assert opened == 1


class Meeting(WrappedStore):
    """Answers the first range of each file only when all files were asked for one."""

    def __init__(self, inner: Store, files: int) -> None:
        super().__init__(inner)
        self.barrier = threading.Barrier(files, timeout=20)
        self.seen: set[str] = set()

    def call(self, verb, path, action):
        if verb == "read_ranges" and path not in self.seen:
            self.seen.add(path)
            self.barrier.wait()
        return action()


@pytest.mark.parametrize("ask", ["take", "scan", "count"])
def test_fragments_are_read_at_the_same_time(data: pa.Table, ask: str) -> None:
    uri = f"memory://requests/fragments-{ask}"
    lt.create_table(uri, data, max_rows_per_file=ROWS // 6)
    meeting: list[Meeting] = []

    def meet(inner: Store) -> Store:
        meeting[:] = meeting or [Meeting(inner, 6)]
        return meeting[0]

    place = WrappedLocation(uri, wrap=meet)
    table = lt.Table(place, load(place))
    if ask == "take":
        rows = list(range(0, ROWS, ROWS // 60))
        assert table.take(rows).equals(data.take(rows))
    elif ask == "scan":
        assert table.scan().to_arrow().equals(data)
    else:
        assert table.count("a >= 0") == ROWS
    assert len(meeting[0].seen) == 6


class Recorder:
    """A client that remembers which ranges it was asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def get_range(self, key: str, *, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        return self.content[start:end]


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        ([(0, 10), (12, 20)], [(0, 20)]),
        ([(0, 10), (40, 50)], [(0, 10), (40, 50)]),
        ([(40, 50), (0, 10), (45, 60)], [(0, 10), (40, 60)]),
        ([(0, 250)], [(0, 84), (84, 168), (168, 250)]),
        ([(0, 90), (95, 130)], [(0, 90), (95, 130)]),
        ([(5, 5), (7, 9)], [(7, 9)]),
        ([], []),
        ([(0, 150), (60, 90), (140, 160)], [(0, 80), (80, 160)]),
    ],
)
def test_ranges_are_merged_and_divided(
    wanted: Sequence[tuple[int, int]], asked: Sequence[tuple[int, int]]
) -> None:
    content = bytes(range(256))
    client = Recorder(content)
    limits = Limits(merge_gap_bytes=10, request_bytes=100)
    ranges = [ByteRange(start, stop) for start, stop in wanted]
    found = fetch_ranges(client, "x", ranges, limits, "x")
    assert [bytes(view) for view in found] == [content[start:stop] for start, stop in wanted]
    assert sorted(client.asked) == list(asked)


def test_an_object_that_is_too_short_is_called_damaged() -> None:
    with pytest.raises(lt.CorruptError, match="ends before byte 300"):
        fetch_ranges(Recorder(bytes(256)), "x", [ByteRange(200, 300)], Limits(), "x")


@cloud
def test_a_file_that_was_cut_is_called_damaged(s3: Place, data: pa.Table) -> None:
    table = lt.create_table(s3.uri, data, storage_options=s3.options)
    store = s3.open()
    path = f"data/{table.fragments[0].files[0].path}"
    content = store.read(path)
    for kept in (len(content) // 2, len(content) - 1, 0):
        store.put(path, content[:kept])
        with pytest.raises(lt.CorruptError, match=r"\.lance"):
            lt.open_table(s3.uri, storage_options=s3.options).scan().to_arrow()
    store.delete(path)
    with pytest.raises(lt.FileNotFoundInStoreError, match="version 1 needs this data file"):
        lt.open_table(s3.uri, storage_options=s3.options).scan().to_arrow()
