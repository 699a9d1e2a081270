"""Tables written by Spark: rows, types and versions, and what is left when something fails."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import lancetable
from lancetable.commit.transaction import Append, Merge, Overwrite, Update
from lancetable.errors import ConflictError, UnknownOutcomeError
from lancetable.operations.rows import new_fragments
from lancetable.spark.options import parse_options
from lancetable.spark.types import to_spark
from lancetable.spark.write.plan import TaskRows, plan_writing
from lancetable.spark.write.writer import LanceMessage, LanceWriter


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def write(frame, path, mode="append", **options):
    frame.write.format("lance").mode(mode).options(**options).save(path)


def values(path, column="id"):
    return sorted(lancetable.open_table(path).scan([column]).to_arrow()[column].to_pylist())


def data_files(path):
    return sorted(file.name for file in (Path(path) / "data").glob("*"))


def test_append_makes_a_table_and_adds_to_it(spark, path):
    write(spark.range(0, 100, 1, 3), path)
    table = lancetable.open_table(path)
    assert table.schema == pa.schema([("id", pa.int64())])
    assert len(table.fragments) == 3
    write(spark.range(100, 150), path, commitMessage="more")
    table.refresh()
    assert table.version == 2
    assert isinstance(table._snapshot.transaction().operation, Append)
    assert table._snapshot.transaction().properties == {"__lance_commit_message": "more"}
    assert values(path) == list(range(150))


def test_overwrite_replaces_rows_and_columns_but_keeps_types(spark, path):
    schema = pa.schema([("id", pa.uint32()), ("v", pa.list_(pa.float16(), 2))])
    lancetable.create_table(path, pa.Table.from_pylist([{"id": 1, "v": [1, 2]}], schema))
    frame = spark.range(3).select("id", F.array(F.lit(1.5).cast("float"), F.lit(2).cast("float")))
    write(frame.toDF("id", "v"), path, "overwrite")
    table = lancetable.open_table(path)
    assert (table.version, table.schema) == (2, schema)
    assert isinstance(table._snapshot.transaction().operation, Overwrite)
    assert table.scan().to_arrow().to_pylist()[2] == {"id": 2, "v": [1.5, 2.0]}
    write(spark.range(2), path, "overwrite", overwriteSchema="true")
    assert lancetable.open_table(path).schema == pa.schema([("id", pa.int64())])
    assert lancetable.open_table(path, version=1).count() == 1


def test_hints_make_fixed_size_lists(spark, path):
    frame = spark.range(4).select("id", F.array(F.col("id").cast("float")).alias("v"))
    write(frame, path, types="v=float32[1], id=uint64", storageVersion="2.2", maxRowsPerFile="1")
    table = lancetable.open_table(path)
    assert table.schema == pa.schema([("id", pa.uint64()), ("v", pa.list_(pa.float32(), 1))])
    assert len(table.fragments) == 4
    assert table._snapshot.manifest.data_format == "2.2"
    # A frame that was read remembers the types, so a copy has them too.
    copy = f"{path}-copy"
    write(spark.read.format("lance").load(path).where("id > 1"), copy)
    assert lancetable.open_table(copy).schema == table.schema
    assert values(copy) == [2, 3]


def test_types_of_the_table_are_kept_on_append(spark, path):
    schema = pa.schema(
        [
            ("u", pa.uint64()),
            ("b", pa.uint8()),
            ("h", pa.float16()),
            ("t", pa.time32("s")),
            ("w", pa.timestamp("ns", "Europe/Berlin")),
            ("d", pa.dictionary(pa.int8(), pa.string())),
            ("x", pa.binary(2)),
            ("l", pa.large_list(pa.uint16())),
        ]
    )
    lancetable.create_table(path, schema=schema)
    frame = spark.sql(
        "select cast(18446744073709551615 as decimal(20,0)) u, cast(255 as smallint) b, "
        "cast(1.5 as float) h, time'01:02:03' t, timestamp'2024-01-01 00:00:00' w, 'a' d, "
        "x'0102' x, array(1, 65535) l"
    )
    write(frame, path)
    table = lancetable.open_table(path)
    assert table.schema == schema
    (row,) = table.scan().to_arrow().to_pylist()
    assert (row["u"], row["b"], row["h"], row["d"]) == (2**64 - 1, 255, 1.5, "a")
    assert (row["x"], row["l"], str(row["t"])) == (b"\x01\x02", [1, 65535], "01:02:03")
    back = spark.read.format("lance").load(path)
    assert back.collect() == frame.collect()


def test_values_that_do_not_fit_fail_and_leave_nothing(spark, path):
    lancetable.create_table(path, schema=pa.schema([("id", pa.uint8())]))
    with pytest.raises(Exception, match=r"LANCE_INPUT.*column 'id'"):
        write(spark.range(0, 300, 1, 2), path)
    assert lancetable.open_table(path).version == 1
    assert values(path) == []


def test_columns_that_do_not_fit_are_named_before_any_row(spark, path):
    write(spark.range(3), path)
    with pytest.raises(Exception, match=r"(?s)LANCE_SCHEMA.*'more'.*mergeSchema=true"):
        write(spark.range(3).withColumn("more", F.lit(1)), path)
    with pytest.raises(Exception, match=r"(?s)LANCE_SCHEMA.*'id'"):
        write(spark.sql("select 'a' id"), path)
    assert len(data_files(path)) == len(lancetable.open_table(path).fragments)


def test_merge_schema_adds_columns_and_rows_together(spark, path):
    write(spark.range(2), path)
    more = spark.sql("select 7L id, named_struct('a', 1) s, array(cast(1 as float)) v")
    write(more, path, mergeSchema="true", types="v=float32[1]")
    table = lancetable.open_table(path)
    assert table.version == 2
    assert isinstance(table._snapshot.transaction().operation, Merge)
    assert table.schema.field("v").type == pa.list_(pa.float32(), 1)
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": 0, "s": None, "v": None},
        {"id": 1, "s": None, "v": None},
        {"id": 7, "s": {"a": 1}, "v": [1.0]},
    ]


def test_replace_where_replaces_some_rows(spark, path):
    write(spark.range(10), path)
    write(spark.range(100, 103), path, "overwrite", replaceWhere="id >= 3")
    table = lancetable.open_table(path)
    assert isinstance(table._snapshot.transaction().operation, Update)
    assert values(path) == [0, 1, 2, 100, 101, 102]
    with pytest.raises(Exception, match=r"mode\('overwrite'\)"):
        write(spark.range(1), path, replaceWhere="id > 1")


def test_replace_where_refuses_rows_that_do_not_match(spark, path):
    write(spark.range(10), path)
    before = data_files(path)
    # Four tasks, of which two have rows that do not match, and one has an unknown answer.
    rows = spark.range(-2, 6, 1, 4).selectExpr("if(id = 5, null, id) as id")
    with pytest.raises(Exception, match=r"LANCE_INPUT\] 3 of the new rows .*'id >= 0'.* id = -2;"):
        write(rows, path, "overwrite", replaceWhere="id >= 0")
    assert data_files(path) == before
    assert lancetable.open_table(path).version == 1
    write(rows, path, "overwrite", replaceWhere="id >= 0", replaceWhereCheck="false")
    assert lancetable.open_table(path).count() == 8
    for _ in range(2):
        write(spark.range(3), path, "overwrite", replaceWhere="id >= 0")
    assert lancetable.open_table(path).count() == 6
    for where in ("_rowaddr = 0", "nowhere = 1"):
        with pytest.raises(Exception, match="LANCE_"):
            write(spark.range(3), path, "overwrite", replaceWhere=where)
    assert lancetable.open_table(path).version == 4


def replaced_beside_a_swap(spark, path, where=None):
    """Replace the rows of k = 1 while another writer swaps names and deletes where it is asked."""
    lancetable.create_table(path, pa.table({"id": [1, 2, 3], "k": [1, 1, 2]}))

    def rows(batches):
        table = lancetable.open_table(path)
        for old, new in (("k", "old"), ("id", "k"), ("old", "id")):
            table.columns.rename(old, new)
        if where is not None:
            table.delete(where)
        yield from batches

    source = spark.range(9, 10, 1, 1).selectExpr("id", "bigint(1) as k")
    frame = source.mapInArrow(rows, "id bigint, k bigint")
    write(frame, path, "overwrite", replaceWhere="k = 1")


def test_replace_where_lands_as_if_before_a_rename_meanwhile(spark, path):
    replaced_beside_a_swap(spark, path)
    table = lancetable.open_table(path)
    assert table.version == 5
    assert table.scan().to_arrow().to_pylist() == [{"k": 3, "id": 2}, {"k": 9, "id": 1}]


def test_replace_where_does_not_search_again_by_names_that_changed(spark, path):
    with pytest.raises(Exception, match=r"LANCE_CONFLICT\] another writer renamed columns"):
        replaced_beside_a_swap(spark, path, "k = 1")
    table = lancetable.open_table(path)
    assert table.version == 5
    assert table.scan().to_arrow().to_pylist() == [{"k": 2, "id": 1}, {"k": 3, "id": 2}]
    assert len(data_files(path)) == 1


def test_replace_where_is_refused_if_its_version_is_gone_after_a_rename(path):
    table = lancetable.create_table(path, pa.table({"id": [1, 2]}))
    plan = planned(path, overwrite=True, replaceWhere="id = 2")
    message = task(plan, [2])
    table.columns.rename("id", "other")
    max((Path(path) / "_versions").glob("*.manifest")).unlink()
    with pytest.raises(ConflictError, match="another writer renamed columns"):
        LanceWriter(plan).commit([message])
    assert values(path, "other") == [1, 2]
    assert len(data_files(path)) == 1


def test_a_write_with_a_mark_is_done_once(spark, path):
    for number, expected in ((1, 3), (1, 3), (2, 6), (1, 6), (2, 6)):
        write(spark.range(3), path, txnAppId="job", txnVersion=number)
        assert lancetable.open_table(path).count() == expected
    write(spark.range(3), path)
    write(spark.range(3), path, txnAppId="job", txnVersion=2)
    write(spark.range(3), path, txnAppId="other", txnVersion=1)
    assert lancetable.open_table(path).count() == 12
    referenced = {f.path for part in lancetable.open_table(path).fragments for f in part.files}
    assert set(data_files(path)) == referenced


def test_nothing_to_write_is_still_a_table(spark, path):
    write(spark.range(0), path)
    assert lancetable.open_table(path).count() == 0
    assert lancetable.open_table(path).schema.names == ["id"]


def test_sql_inserts_into_a_view(spark, path):
    write(spark.range(2), path)
    spark.sql(f"create or replace temporary view target using lance options (path '{path}')")
    spark.sql("insert into target select id + 10 from range(2)")
    assert values(path) == [0, 1, 10, 11]


def test_a_table_can_be_overwritten_from_itself(spark, path):
    write(spark.range(5), path)
    frame = spark.read.format("lance").load(path)
    write(frame.where("id > 2"), path, "overwrite")
    assert values(path) == [3, 4]


@pytest.mark.parametrize("mode", [None, "error", "ignore"])
def test_spark_names_the_modes_that_sources_can_have(either, path, mode):
    """Spark refuses the others, its default among them, before it asks the source."""
    writer = either.range(1).write.format("lance")
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE") as caught:
        (writer if mode is None else writer.mode(mode)).save(path)
    assert '"Append" or "Overwrite" mode' in str(caught.value)
    assert not Path(path).exists()


def test_create_modes(spark, path):
    with pytest.raises(Exception, match="LANCE_TABLE_NOT_FOUND"):
        write(spark.range(1), path, createMode="never")
    write(spark.range(1), path, createMode="error")
    with pytest.raises(Exception, match="LANCE_EXISTS"):
        write(spark.range(1), path, createMode="error")
    with pytest.raises(Exception, match="leave out version"):
        write(spark.range(1), path, version=1)


def planned(path, *columns, overwrite=False, **options):
    schema = to_spark(pa.schema(columns or [("id", pa.int64())]))
    return plan_writing(parse_options({"path": path, **options}), schema, overwrite=overwrite)


def task(plan, numbers):
    return LanceWriter(plan).write(iter([pa.record_batch({"id": pa.array(numbers, pa.int64())})]))


def test_an_abort_removes_exactly_what_tasks_reported(path):
    lancetable.create_table(path, pa.table({"id": [1]}))
    before = data_files(path)
    plan = planned(path)
    writer = LanceWriter(plan)
    message = task(plan, [2])
    stray = task(plan, [3])
    writer.abort([message, None])
    assert data_files(path) == sorted([*before, stray.written.fragments[0].files[0].path])


def test_after_a_tried_commit_an_abort_touches_nothing(path):
    lancetable.create_table(path, pa.table({"id": [1]}))
    plan = planned(path)
    writer, messages = LanceWriter(plan), [task(plan, [2]), LanceMessage(TaskRows())]
    writer.commit(messages)
    writer.abort(messages)
    assert values(path) == [1, 2]


def test_an_unknown_outcome_keeps_the_files(path, monkeypatch):
    lancetable.create_table(path, pa.table({"id": [1]}))
    plan = planned(path)
    writer, messages = LanceWriter(plan), [task(plan, [2])]

    def lost(*_, **__):
        raise UnknownOutcomeError("the answer was lost")

    monkeypatch.setattr(new_fragments, "commit", lost)
    with pytest.raises(UnknownOutcomeError, match="LANCE_UNKNOWN_OUTCOME"):
        writer.commit(messages)
    writer.abort(messages)
    assert messages[0].written.fragments[0].files[0].path in data_files(path)


def test_other_appends_do_not_disturb_a_write(path):
    table = lancetable.create_table(path, pa.table({"id": [1]}))
    plan = planned(path)
    message = task(plan, [2])
    table.append(pa.table({"id": [3]}))
    table.delete("id = 1")
    LanceWriter(plan).commit([message])
    assert values(path) == [2, 3]


def test_a_table_that_was_replaced_meanwhile_is_a_conflict(path):
    table = lancetable.create_table(path, pa.table({"id": [1]}))
    plan = planned(path)
    message = task(plan, [2])
    table.overwrite(pa.table({"other": ["a"]}))
    with pytest.raises(ConflictError):
        LanceWriter(plan).commit([message])
    assert message.written.fragments[0].files[0].path not in data_files(path)
    assert lancetable.open_table(path).version == 2


def test_columns_added_meanwhile_are_no_reason_to_fail_when_growing(path):
    table = lancetable.create_table(path, pa.table({"id": [1]}))
    plan = planned(path, ("id", pa.int64()), ("a", pa.int32()), mergeSchema="true")
    batch = pa.record_batch({"id": pa.array([2]), "a": pa.array([5], pa.int32())})
    message = LanceWriter(plan).write(iter([batch]))
    table.append(pa.table({"id": [3]}))
    LanceWriter(plan).commit([message])
    found = lancetable.open_table(path).scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == [
        {"id": 1, "a": None},
        {"id": 2, "a": 5},
        {"id": 3, "a": None},
    ]


def test_two_writes_that_create_one_table_both_land(path):
    plans = [planned(path), planned(path)]
    messages = [task(plans[0], [1]), task(plans[1], [2])]
    for plan, message in zip(plans, messages, strict=True):
        LanceWriter(plan).commit([message])
    assert values(path) == [1, 2]
