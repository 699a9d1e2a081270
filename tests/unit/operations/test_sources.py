"""Everything that holds rows becomes a schema and batches."""

import datetime as dt

import pyarrow as pa
import pyarrow.dataset as pds
import pytest

import lancetable as lt
from lancetable.errors import InputError
from lancetable.operations.input.sources import ROWS_AT_A_TIME, read_source

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", None, "z"]})
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]


class OnlyStream:
    """What other libraries offer: nothing but the protocol."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class OnlyArray:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


def all_rows(source):
    return [row for batch in source.batches for row in batch.to_pylist()]


def polars_frame():
    return pytest.importorskip("polars").DataFrame(ROWS)


def a_scan(tmp_path):
    return lt.create_table(tmp_path / "t", TABLE).scan()


@pytest.mark.parametrize(
    "make",
    [
        lambda _: TABLE,
        lambda _: TABLE.to_batches()[0],
        lambda _: TABLE.to_reader(max_chunksize=2),
        lambda _: pds.dataset(TABLE),
        lambda _: pds.dataset(TABLE).scanner(),
        lambda _: OnlyStream(),
        lambda _: OnlyArray(),
        lambda _: TABLE.to_batches(max_chunksize=1),
        lambda _: iter(TABLE.to_batches(max_chunksize=1)),
        lambda _: (TABLE.slice(place, 1) for place in range(3)),
        lambda _: polars_frame(),
        lambda _: polars_frame().lazy(),
        lambda _: ROWS,
        lambda _: iter(ROWS),
        lambda _: tuple(ROWS),
        lambda _: {"a": [1, 2, 3], "b": ["x", None, "z"]},
        a_scan,
        lambda path: lt.create_table(path / "t", TABLE),
    ],
)
def test_rows_are_read(make, tmp_path):
    source = read_source(make(tmp_path))
    assert source.schema.names == ["a", "b"]
    assert all_rows(source) == ROWS


def test_a_pandas_frame_is_read_without_its_notes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "when": [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]})
    source = read_source(frame)
    assert source.schema.metadata is None
    assert source.schema.names == ["a", "when"]
    assert all_rows(source)[0]["a"] == 1


def test_the_names_of_an_index_are_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    assert set(read_source(frame).schema.names) == {"a", "key"}


def test_python_values_take_the_types_of_the_table():
    wanted = pa.schema([("a", pa.int16()), ("v", pa.list_(pa.float32(), 2))])
    source = read_source([{"a": 1, "v": [1, 2], "new": "x"}], wanted)
    assert source.schema.field("a").type == pa.int16()
    assert source.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert source.schema.field("new").type == pa.string()
    assert not source.is_typed


def test_a_key_inside_a_dict_is_not_lost():
    wanted = pa.schema(
        [("s", pa.struct([("x", pa.int8())])), ("l", pa.list_(pa.struct([("y", pa.int8())])))]
    )
    source = read_source([{"s": {"x": 1, "extra": 2}, "l": [{"y": 1, "z": "q"}]}], wanted)
    assert all_rows(source) == [{"s": {"x": 1, "extra": 2}, "l": [{"y": 1, "z": "q"}]}]
    assert source.schema.field("s").type.field("x").type == pa.int8()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1.5, pa.int32()),
        (True, pa.float32()),
        (dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), pa.timestamp("us")),
        (dt.datetime(2026, 1, 1, 5, tzinfo=dt.UTC).replace(tzinfo=None), pa.date32()),
        (5, pa.timestamp("us")),
        ([1.5], pa.list_(pa.int8())),
        ({"x": 1.5}, pa.struct([("x", pa.int8())])),
    ],
)
def test_values_that_a_type_would_change_are_not_changed(tmp_path, value, wanted):
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("c", wanted)]))
    with pytest.raises(lt.SchemaError, match="column 'c"):
        table.append([{"c": value}])
    assert table.refresh().version == 1


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (dt.time(1, 2, 3, 4), pa.time32("s")),
        (dt.timedelta(microseconds=5), pa.duration("s")),
        (1e300, pa.float32()),
        (2**60, pa.float32()),
        (300, pa.int8()),
        (b"\xff", pa.string()),
    ],
)
def test_values_outside_a_type_are_refused(tmp_path, value, wanted):
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("c", wanted)]))
    with pytest.raises(InputError, match="column 'c'"):
        table.append([{"c": value}])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (5, pa.int8()),
        (5, pa.float16()),
        (0.5, pa.float32()),
        (float("inf"), pa.float32()),
        (5, pa.decimal128(5, 2)),
        (dt.date(2026, 1, 1), pa.date64()),
        (dt.timedelta(seconds=5), pa.duration("s")),
        ([1, None], pa.list_(pa.int8())),
        ([0.5, 1], pa.list_(pa.float32(), 2)),
        ([("k", 1)], pa.map_(pa.string(), pa.int8())),
        ("text", pa.dictionary(pa.int8(), pa.string())),
        ("text", pa.large_string()),
        (b"ab", pa.binary(2)),
    ],
)
def test_values_take_the_type_of_their_column(tmp_path, value, wanted):
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("c", wanted)]))
    table.append([{"c": value}, {"c": None}])
    assert table.scan().to_arrow()["c"].to_pylist() == [value, None]
    assert table.schema.field("c").type == wanted


def test_columns_of_later_dicts_count_too():
    assert all_rows(read_source([{"a": 1}, {"b": 2}])) == [
        {"a": 1, "b": None},
        {"a": None, "b": 2},
    ]


def test_many_dicts_of_an_iterator_become_several_batches():
    source = read_source({"a": n} for n in range(ROWS_AT_A_TIME + 5))
    batches = list(source.batches)
    assert [batch.num_rows for batch in batches] == [ROWS_AT_A_TIME, 5]


def test_later_dicts_have_the_types_of_the_first():
    def rows():
        yield from ({"a": 1} for _ in range(ROWS_AT_A_TIME))
        yield {"a": 1.5}

    with pytest.raises(InputError, match="held int64 in the first rows and double"):
        all_rows(read_source(rows()))


def test_a_stream_is_read_once():
    source = read_source(TABLE.to_reader())
    assert not source.is_replayable
    assert len(all_rows(source)) == 3
    with pytest.raises(InputError, match="cannot be read again"):
        source.open()


def test_a_table_is_read_as_often_as_needed():
    source = read_source(TABLE)
    assert source.is_replayable
    assert source.rows == 3
    assert all_rows(source) == all_rows(source) == ROWS


@pytest.mark.parametrize("data", [None, "data.parquet", b"bytes", 5, 1.5, object()])
def test_what_holds_no_rows_is_refused_with_what_does(data):
    with pytest.raises(InputError, match="give an Arrow table"):
        read_source(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "give a schema"),
        (iter(()), "give a schema"),
        ([{}], "no columns"),
        ([{"a": 1}, 5], "not a batch|dict"),
        (iter([{"a": 1}, 5]), "give dicts only"),
        ([5], "not a batch"),
        ({"a": [1], "b": [1, 2]}, "different lengths"),
        ([{"a": 1}, {"a": "x"}], "column 'a' cannot hold"),
        (pa.array([1, 2]), "no rows of named columns"),
    ],
)
def test_unusable_rows_are_refused(data, text):
    with pytest.raises(InputError, match=text):
        read_source(data)


def test_a_value_outside_its_type_names_column_and_type():
    with pytest.raises(InputError, match="column 'a' of type int8"):
        read_source([{"a": 1000}], pa.schema([("a", pa.int8())]))


def test_batches_of_another_schema_are_refused_with_both():
    other = pa.record_batch({"a": ["text"]})
    source = read_source(iter([TABLE.to_batches()[0], other]))
    with pytest.raises(InputError, match=r"batch 2 has other columns.*a string after a int32"):
        all_rows(source)


def test_an_error_of_the_iterator_is_passed_on():
    def rows():
        yield TABLE.to_batches()[0]
        raise KeyError("from the caller")

    source = read_source(rows())
    with pytest.raises(KeyError, match="from the caller"):
        all_rows(source)
