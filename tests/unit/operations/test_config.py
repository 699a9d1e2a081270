"""Settings and notes: of the table, of its schema and of its columns."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ConflictError, InputError, SchemaError

TABLE = pa.table({"a": [1, 2], "s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int64())]))})


@pytest.fixture
def table(tmp_path):
    return lt.create_table(tmp_path / "t", TABLE)


def test_settings_are_set_and_removed(table):
    assert table.config.update({"a": "1", "b": "2"}, commit="settings").version == 2
    assert table.config.update({"a": None, "c": "3"}).version == 3
    assert table.config == {"b": "2", "c": "3"}
    table.config.update({"only": "one"}, replace_all=True)
    assert lt.open_table(table.uri).config == {"only": "one"}
    assert table.count() == 2


def test_notes_about_the_table(table):
    table.metadata.update({"owner": "me"})
    table.metadata.update({"owner": None, "team": "us"})
    assert lt.open_table(table.uri).metadata == {"team": "us"}


def test_metadata_of_schema_and_columns(table):
    table.schema_metadata.update({"k": "v"})
    table.columns.update_metadata({"a": {"unit": "m"}, "s.x": {"unit": "s"}})
    schema = lt.open_table(table.uri).schema
    assert schema.metadata == {b"k": b"v"}
    assert schema.field("a").metadata == {b"unit": b"m"}
    assert schema.field("s").type.field("x").metadata == {b"unit": b"s"}
    table.columns.update_metadata({"a": {"other": "x"}}, replace_all=True)
    assert table.schema.field("a").metadata == {b"other": b"x"}


@pytest.mark.parametrize("entries", [{"a": 1}, {1: "a"}, {"": "a"}])
def test_keys_and_values_are_text(table, entries):
    with pytest.raises(InputError, match="text"):
        table.config.update(entries)
    assert table.refresh().version == 1


def test_an_unknown_column_is_named(table):
    with pytest.raises(SchemaError, match=r"'s\.y'"):
        table.columns.update_metadata({"s.y": {"k": "v"}})


def test_writers_of_other_keys_do_not_disturb_each_other(table):
    other = lt.open_table(table.uri)
    other.config.update({"theirs": "1"})
    table.config.update({"ours": "2"})
    assert table.config == {"theirs": "1", "ours": "2"}


def test_writers_of_the_same_key_conflict(table):
    other = lt.open_table(table.uri)
    other.config.update({"key": "1"})
    with pytest.raises(ConflictError):
        table.config.update({"key": "2"})
    assert lt.open_table(table.uri).config == {"key": "1"}


@pytest.mark.parametrize(
    ("column", "entries", "text"),
    [
        ("s", {"lance-encoding:packed": "true"}, "packed defines how values are stored"),
        ("a", {"lance-encoding:blob": "true"}, "blob defines how values are stored"),
        ("a", {"ARROW:extension:name": "lance.json"}, "extension:name defines how values"),
    ],
)
def test_notes_cannot_change_what_stored_values_mean(table, column, entries, text):
    rows = table.scan().to_arrow()
    with pytest.raises(SchemaError, match=text):
        table.columns.update_metadata({column: entries})
    again = lt.open_table(table.uri)
    assert (again.version, again.scan().to_arrow()) == (1, rows)


def test_notes_that_make_values_what_they_are_stay(tmp_path):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "x": "y"})
    data = pa.table([pa.array([b"1"], pa.large_binary())], schema=pa.schema([field]))
    table = lt.create_table(tmp_path / "t", data)
    with pytest.raises(SchemaError, match="blob defines how"):
        table.columns.update_metadata({"b": {"x": "z"}}, replace_all=True)
    with pytest.raises(SchemaError, match="blob defines how"):
        table.columns.update_metadata({"b": {"lance-encoding:blob": None}})
    table.columns.update_metadata({"b": {"x": None}})
    assert table.scan(blobs="bytes").to_arrow().to_pylist() == [{"b": b"1"}]


@pytest.mark.parametrize(
    ("knob", "good"),
    [
        ("compression", "zstd, lz4, fsst, none"),
        ("compression-level", "a whole number from 1 to 22"),
        ("structural-encoding", "miniblock, fullzip"),
        ("rle-threshold", "a number from 0 to 1"),
        ("dict-divisor", "a whole number from 1"),
        ("bss", "off, on, auto"),
        ("packed", "true, false"),
        ("blob", "true, false"),
    ],
)
def test_wishes_for_the_encoding_are_refused_with_the_good_ones(tmp_path, table, knob, good):
    name = f"lance-encoding:{knob}"
    if knob not in {"packed", "blob"}:
        with pytest.raises(InputError, match=good):
            table.columns.update_metadata({"a": {name: "99x"}})
        assert table.refresh().version == 1
    schema = pa.schema([pa.field("a", pa.int64(), metadata={name: "99x"})])
    with pytest.raises(InputError, match=good):
        lt.create_table(tmp_path / "other", schema=schema)
    with pytest.raises(InputError, match=good):
        table.overwrite(pa.table([[1]], schema=schema))
