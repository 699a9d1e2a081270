"""One data frame used by several queries, or several times by one query, always gives its rows."""

from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

import pyarrow as pa
import pytest
from pyspark.sql import datasource

import lancetable
from lancetable.spark import LanceTable, register
from lancetable.spark.source import LanceSource

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
ROWS = 1000


@contextmanager
def push_down(session, value):
    """Switch Spark's push-down of filters to Python sources on or off."""
    before = session.conf.get(PUSH_DOWN)
    session.conf.set(PUSH_DOWN, value)
    try:
        yield session
    finally:
        session.conf.set(PUSH_DOWN, before)


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A table of two fragments with a key of ten values."""
    path = str(tmp_path_factory.mktemp("shared") / "t")
    rows = pa.table({"id": range(ROWS), "k": [n % 10 for n in range(ROWS)]})
    table = lancetable.create_table(path, rows.slice(0, 600))
    table.append(rows.slice(600))
    return path


@pytest.fixture
def session(spark):
    with push_down(spark, "true"):
        yield spark


@pytest.fixture
def frame(session, uri):
    return session.read.format("lance").load(uri)


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_filter_ends_with_its_query(either, uri, value):
    with push_down(either, value):
        frame = either.read.format("lance").load(uri)
        assert frame.where("id < 5").count() == 5
        assert frame.count() == ROWS


def test_a_filtered_frame_joins_the_whole_one(frame):
    some = frame.where("k = 1")
    assert some.join(frame, "id").count() == 100
    assert frame.join(some.select("id"), "id", "left_anti").count() == 900


def test_branches_of_a_union_keep_their_filters(frame):
    first, second = (frame.where(f"k < {n}").selectExpr("count(*)") for n in (1, 3))
    assert sorted(row[0] for row in first.unionAll(second).collect()) == [100, 300]
    assert frame.where("k = 1").unionAll(frame).count() == 100 + ROWS


def test_subqueries_of_a_view_keep_their_filters(session, uri):
    session.sql(f"create or replace temporary view shared using lance options (path '{uri}')")
    found = session.sql(
        "select count(*), (select count(*) from shared where k = 1),"
        " (select max(id) from shared where id < 7) from shared"
    )
    assert tuple(found.collect()[0]) == (ROWS, 100, 6)
    assert session.table("shared").count() == ROWS


def test_a_cached_frame_keeps_all_rows(frame):
    assert frame.where("k = 2").count() == 100
    cached = frame.cache()
    try:
        assert cached.count() == ROWS
        assert cached.where("k = 3").count() == 100
    finally:
        cached.unpersist()


def test_changes_keep_all_rows(session, uri):
    changes = session.read.format("lance").option("changes", "feed").load(uri)
    assert changes.where("id < 5").count() == 5
    assert changes.count() == ROWS


@pytest.mark.parametrize("value", ["true", "false"])
def test_registering_leaves_push_down_as_it_is(either, value):
    with push_down(either, value):
        assert PUSH_DOWN not in register(either)
        assert either.conf.get(PUSH_DOWN) == value


def test_readers_hand_every_filter_back(uri):
    filters = [datasource.EqualTo(("id",), 7), datasource.IsNotNull(("k",))]
    for options in ({"path": uri}, {"path": uri, "changes": "feed"}):
        source = LanceSource(options)
        reader = source.reader(source.schema())
        before = vars(reader).copy()
        assert list(reader.pushFilters(filters)) == filters
        assert vars(reader) == before


def test_a_table_gives_chosen_rows_and_columns(session, uri):
    table = LanceTable.forPath(session, uri)
    chosen = table.toDF(columns=["id"], where="k = 1 or id = 0")
    assert chosen.columns == ["id"]
    assert chosen.where("id < 5").count() == 2
    assert chosen.count() == 101
    assert table.toDF(columns=["k", "id"]).columns == ["k", "id"]
    assert table.toDF().columns == ["id", "k"]


def test_columns_with_odd_names_can_be_chosen(spark, tmp_path):
    path = str(tmp_path / "t")
    lancetable.create_table(path, pa.table({"a,b": [1], "e": [{"f": 3}]}))
    chosen = LanceTable.forPath(spark, path).toDF(columns=["`a,b`", "e.f"])
    assert [tuple(row) for row in chosen.collect()] == [(1, 3)]


def test_a_frame_reads_one_version_beside_a_writer(session, tmp_path):
    path = str(tmp_path / "t")
    table = lancetable.create_table(path, pa.table({"id": [0]}))
    is_over = Event()

    def write():
        while not is_over.wait(0.05):
            table.append(pa.table({"id": [table.version]}))

    writer = Thread(target=write)
    writer.start()
    try:
        frame = session.read.format("lance").load(path)
        count = frame.count()
        assert frame.unionAll(frame.where("id >= 0")).count() == 2 * count
        assert frame.join(frame.select("id"), "id", "left_anti").count() == 0
        assert frame.count() == count
    finally:
        is_over.set()
        writer.join()
    assert session.read.format("lance").load(path).count() > count


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_moments_do_not_depend_on_the_zone_of_the_session(session, tmp_path, zone):
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    rows = pa.table(
        {
            "a": pa.array([moment], pa.timestamp("us", "UTC")),
            "b": pa.array([moment], pa.timestamp("ms", "Europe/Berlin")),
            "n": pa.array([datetime(2024, 7, 1, 12)], pa.timestamp("us")),  # noqa: DTZ001
        }
    )
    lancetable.create_table(path, rows)
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = session.read.format("lance").load(path)
        found = frame.selectExpr("unix_micros(a)", "unix_micros(b)", "cast(n as string)").collect()
        frame.where("a = timestamp'2024-07-01 12:00:00Z'").write.format("lance").mode(
            "append"
        ).save(copy)
    finally:
        session.conf.set("spark.sql.session.timeZone", before)
    micros = int(moment.timestamp()) * 1_000_000
    assert tuple(found[0]) == (micros, micros, "2024-07-01 12:00:00")
    assert lancetable.open_table(copy).scan().to_arrow() == rows
