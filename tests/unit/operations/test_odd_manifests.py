"""Versions that other writers could have left: what the specification asks of them."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.envelope import FOOTER, frame
from lancetable.format.proto import table_pb2
from lancetable.format.schema.model import primary_key
from tests.manifests import edit_manifest, manifest_file, read_manifest

ROWS = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", "y", "z"]})


@pytest.fixture
def uri(tmp_path):
    path = str(tmp_path / "t")
    lt.create_table(path, ROWS, storage_version="2.0").append(ROWS)
    return path


def record_as_0_3(message):
    """Record 2.0 files as releases 0.14 to 0.16 did."""
    for fragment in message.fragments:
        for file in fragment.files:
            file.file_major_version, file.file_minor_version = 0, 3


@pytest.mark.parametrize("is_named", [True, False], ids=["data_format", "without"])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("a = 1"),
        lambda table: table.update({"a": "a + 1"}, "a = 2"),
        lambda table: table.columns.add({"c": "a + 1"}),
        lambda table: table.restore(1),
        lambda table: table.append(ROWS),
        lambda table: table.compact(),
    ],
    ids=["delete", "update", "add", "restore", "append", "compact"],
)
def test_files_recorded_as_0_3_are_files_of_2_0(uri, change, is_named):
    for version in (1, 2):
        edit_manifest(uri, record_as_0_3, version)
        if not is_named:
            edit_manifest(uri, lambda message: message.ClearField("data_format"), version)
    table = lt.open_table(uri)
    assert set(table.inspect.files()["version"].to_pylist()) == {"2.0"}
    change(table)
    made = read_manifest(manifest_file(uri))
    assert not made.reader_feature_flags & 256
    assert not made.writer_feature_flags & 256
    versions = {
        (file.file_major_version, file.file_minor_version)
        for fragment in made.fragments
        for file in fragment.files
    }
    assert versions <= {(0, 3), (2, 0)}
    assert set(lt.open_table(uri).inspect.files()["version"].to_pylist()) <= {"2.0", None}


def test_a_column_of_two_fields_is_refused_and_found(uri):
    edit_manifest(uri, lambda one: one.fragments[1].files[0].column_indices.__setitem__(1, 0))
    with pytest.raises(CorruptError, match="fields 0 and 1 both in column 0"):
        lt.open_table(uri).scan().to_arrow()
    problems = lt.check_table(uri, level="metadata").problems
    assert any("both in column 0" in one.message for one in problems)


def test_a_field_without_id_is_refused_and_found(uri):
    edit_manifest(uri, lambda message: setattr(message.fields[1], "id", -1))
    with pytest.raises(CorruptError, match="field 'b' has no id"):
        lt.open_table(uri)
    problems = lt.check_table(uri, level="metadata").problems
    assert any("has no id" in one.message for one in problems)


def test_a_too_low_next_row_id_is_refused_found_and_repaired(tmp_path):
    uri = str(tmp_path / "t")
    lt.create_table(uri, ROWS, stable_row_ids=True).append(ROWS)

    def change(message):
        message.next_row_id = 4
        message.writer_version.library = "lance"
        message.writer_version.version = "1.0.0"

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    with pytest.raises(CorruptError, match=r"next row id is 4.*repair_table"):
        table.append(ROWS)
    with pytest.raises(CorruptError, match="next row id is 4"):
        table.update({"a": "a + 1"}, "a = 1")
    assert any(
        "given out next" in one.message for one in table.maintenance.check(level="files").problems
    )
    table.maintenance.repair().execute()
    table = lt.open_table(uri)
    table.append(ROWS)
    ids = table.scan(columns=["_rowid"]).to_arrow()["_rowid"].to_pylist()
    assert len(set(ids)) == 9


def test_stable_row_ids_for_writers_only_stop_a_write(uri):
    def change(message):
        message.writer_feature_flags |= 2

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    assert table.count() == 6
    with pytest.raises(CorruptError, match="stable row ids"):
        table.append(ROWS)
    assert read_manifest(manifest_file(uri)).writer_feature_flags & 2


def test_a_primary_key_without_metadata_outlives_a_cast(uri):
    def change(message):
        message.fields[0].unenforced_primary_key = True
        message.fields[0].unenforced_primary_key_position = 1

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    table.columns.cast("a", pa.int32())
    for snapshot in (table._snapshot, lt.open_table(uri)._snapshot):
        (key,) = primary_key(snapshot.manifest.schema)
        assert (key.name, key.primary_key_position) == ("a", 1)


def test_row_id_files_are_not_left_behind_by_a_branch_or_a_clone(tmp_path):
    uri = str(tmp_path / "t")
    lt.create_table(uri, ROWS, stable_row_ids=True)

    def change(message):
        data = message.fragments[0].inline_row_ids
        (tmp_path / "t/ids").write_bytes(data)
        external = message.fragments[0].external_row_ids
        external.path, external.size = "ids", len(data)

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    assert table.take(row_ids=[2])["a"].to_pylist() == [3]
    for make in (
        lambda: table.branches.create("b"),
        lambda: table.clone(str(tmp_path / "c")),
        lambda: table.clone(str(tmp_path / "c"), deep=True),
    ):
        with pytest.raises(UnsupportedError, match="row ids in"):
            make()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_nulls_in_a_column_without_nulls_are_refused(tmp_path, version):
    uri = str(tmp_path / "t")
    values = pa.array([{"b": 1}, {"b": None}, {"b": 3}])
    data = pa.table({"a": pa.array([1, None, 3], pa.int64()), "s": values, "c": [1, 2, 3]})
    lt.create_table(uri, data, storage_version=version)

    def change(message):
        for field in message.fields:
            field.nullable = field.name not in {"a", "b"}

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    for read in (
        lambda column: table.scan(columns=[column]).to_arrow(),
        lambda column: table.take([0, 1], columns=[column]),
        lambda column: table.take([1], columns=[column]),
        lambda column: table.take(row_addresses=[1, 0], columns=[column]),
    ):
        for column, path in (("a", "a"), ("s", "s.b")):
            with pytest.raises(CorruptError, match=f"column '{path}' holds a null"):
                read(column)
    assert table.take([0, 2])["a"].to_pylist() == [1, 3]
    assert table.scan(columns=["a"], where="c <> 2").to_arrow()["a"].to_pylist() == [1, 3]
    for column in ("a", "s.b"):
        table.columns.set_nullable(column, nullable=True)
    assert table.scan(columns=["a", "s", "c"]).to_arrow().to_pylist() == data.to_pylist()


def test_data_files_of_another_format_are_not_opened(uri):
    edit_manifest(uri, lambda one: setattr(one.data_format, "file_format", "parquet"))
    with pytest.raises(UnsupportedError, match="format 'parquet'"):
        lt.open_table(uri)


def test_an_unknown_version_of_data_files_stops_writes_but_an_overwrite(uri):
    edit_manifest(uri, lambda message: setattr(message.data_format, "version", "9.9"))
    table = lt.open_table(uri)
    assert table.scan().to_arrow().num_rows == 6
    for change in (
        lambda: table.delete("a = 1"),
        lambda: table.config.update({"key": "value"}),
        lambda: table.columns.drop(["b"]),
    ):
        with pytest.raises(UnsupportedError, match=r"version '9\.9'"):
            change()
    assert table.version == 2


def test_metadata_that_is_not_text_is_kept(uri):
    odd = b"\xff\x00caf\xe9"

    def change(message):
        message.schema_metadata["odd"] = odd
        message.fields[0].metadata["odd"] = odd

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    assert table.schema.metadata[b"odd"] == odd
    assert table.schema.field("a").metadata[b"odd"] == odd
    table.append(table.scan().to_arrow())
    table.columns.add({"c": "a + 1"})
    made = read_manifest(manifest_file(uri))
    assert made.schema_metadata["odd"] == odd
    assert made.fields[0].metadata["odd"] == odd
    assert lt.open_table(uri).scan().to_arrow().schema.metadata[b"odd"] == odd
    repr(table)


def test_the_tag_and_the_auxiliary_data_of_a_manifest_are_shown_and_not_inherited(uri):
    path = manifest_file(uri)
    attached = table_pb2.VersionAuxData(metadata={"key": b"\x00value"}).SerializeToString()
    data = path.read_bytes()
    position, *rest = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    message = read_manifest(path)
    message.tag, message.version_aux_data = "golden", position
    body = message.SerializeToString()
    path.write_bytes(
        data[:position]
        + frame(attached)
        + frame(body)
        + FOOTER.pack(position + len(frame(attached)), *rest)
    )
    table = lt.open_table(uri)
    (row,) = table.inspect.manifest().to_pylist()
    assert row["tag"] == "golden"
    assert row["auxiliary"] == [("key", b"\x00value")]
    table.append(ROWS)
    for latest in (table, lt.open_table(uri)):
        (row,) = latest.inspect.manifest().to_pylist()
        assert (row["tag"], row["auxiliary"]) == (None, [])
    assert read_manifest(manifest_file(uri)).version_aux_data == 0
