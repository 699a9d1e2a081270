"""Tables are created from rows, from a schema, or from both."""

import pickle
import threading

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ExistsError, InputError, SchemaError, UnsupportedError
from tests.same import assert_same_table

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", None, "z"]})


def files(path):
    return sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.is_file())


def test_rows_come_back(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, commit="first")
    assert table.version == 1
    assert_same_table(table.scan().to_arrow(), TABLE)
    assert_same_table(lt.open_table(tmp_path / "t").scan().to_arrow(), TABLE)
    assert table.scan().to_arrow().schema.field("a").type == pa.int32()


def test_a_schema_alone_makes_an_empty_table(tmp_path):
    table = lt.create_table(tmp_path / "t", schema=TABLE.schema)
    assert (table.version, table.count()) == (1, 0)
    assert table.schema == TABLE.schema
    table.append(TABLE)
    assert table.count() == 3


def test_rows_are_brought_to_a_schema(tmp_path):
    schema = pa.schema([("b", pa.large_string()), ("a", pa.int64()), ("c", pa.float32())])
    table = lt.create_table(tmp_path / "t", TABLE, schema=schema)
    assert table.schema == schema
    assert table.scan().to_arrow().to_pydict() == {
        "b": ["x", None, "z"],
        "a": [1, 2, 3],
        "c": [None] * 3,
    }


def test_neither_rows_nor_schema_is_refused(tmp_path):
    with pytest.raises(InputError, match="give data, a schema, or both"):
        lt.create_table(tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_a_table_that_is_there_is_an_error(tmp_path):
    lt.create_table(tmp_path / "t", TABLE)
    before = files(tmp_path)
    with pytest.raises(ExistsError, match="mode='overwrite'"):
        lt.create_table(tmp_path / "t", TABLE)
    assert files(tmp_path) == before


def test_a_table_that_is_there_can_be_kept(tmp_path):
    lt.create_table(tmp_path / "t", TABLE)
    before = files(tmp_path)
    table = lt.create_table(tmp_path / "t", [{"other": 1}], mode="ignore")
    assert_same_table(table.scan().to_arrow(), TABLE)
    assert files(tmp_path) == before


def test_a_table_that_is_there_can_be_overwritten(tmp_path):
    lt.create_table(tmp_path / "t", TABLE)
    table = lt.create_table(tmp_path / "t", [{"other": 1}], mode="overwrite")
    assert table.version == 2
    assert table.scan().to_arrow().to_pydict() == {"other": [1]}
    assert_same_table(lt.open_table(tmp_path / "t", version=1).scan().to_arrow(), TABLE)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"mode": "replace"}, "error, ignore, overwrite"),
        ({"durability": "always"}, "os, fsync"),
        ({"storage_version": "0.1"}, "read but not written"),
    ],
)
def test_unknown_words_are_refused_with_the_known(tmp_path, wrong, text):
    with pytest.raises(InputError, match=text):
        lt.create_table(tmp_path / "t", TABLE, **wrong)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_table_keeps_its_storage_version(tmp_path, version):
    table = lt.create_table(tmp_path / "t", TABLE, storage_version=version)
    table.append(TABLE)
    lt.open_table(tmp_path / "t").append(TABLE)
    table.refresh()
    versions = {(f.major, f.minor) for fragment in table.fragments for f in fragment.files}
    assert versions == {tuple(map(int, version.split(".")))}
    assert_same_table(table.scan().to_arrow(), pa.concat_tables([TABLE] * 3))
    with pytest.raises(InputError, match="keeps data files"):
        table.append(TABLE, storage_version="2.1" if version != "2.1" else "2.2")


def test_maps_choose_the_version_that_holds_them(tmp_path):
    rows = pa.table({"m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))})
    table = lt.create_table(tmp_path / "t", rows)
    assert table.fragments[0].files[0].minor == 2
    assert_same_table(table.scan().to_arrow(), rows)
    with pytest.raises(SchemaError, match=r"column 'm' needs data files of version 2\.2"):
        lt.create_table(tmp_path / "u", rows, storage_version="2.1")
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (pa.schema([("_rowid", pa.int64())]), "computed by the table"),
        (pa.schema([("a", pa.int64()), ("a", pa.int64())]), "duplicate column"),
        (pa.schema([("s", pa.struct([("x", pa.int8()), ("x", pa.int8())]))]), "two parts"),
        (pa.schema([]), "at least one column"),
        (pa.schema([("a.b", pa.int64())]), "hold no dot"),
        (pa.schema([("", pa.int64())]), "not empty"),
        (pa.schema([("i", pa.month_day_nano_interval())]), "cannot store"),
    ],
)
def test_schemas_that_no_table_can_have_are_refused(tmp_path, schema, text):
    with pytest.raises(SchemaError, match=text):
        lt.create_table(tmp_path / "t", schema=schema)
    assert not (tmp_path / "t").exists()


def test_a_bad_encoding_wish_is_refused_before_anything_is_written(tmp_path):
    wish = {"lance-encoding:compression": "brotli"}
    with pytest.raises(InputError, match="zstd, lz4"):
        lt.create_table(
            tmp_path / "t", schema=pa.schema([pa.field("a", pa.int64(), metadata=wish)])
        )
    assert not (tmp_path / "t").exists()


def test_a_failing_iterator_leaves_no_table(tmp_path):
    def batches():
        yield TABLE.to_batches()[0]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        lt.create_table(tmp_path / "t", batches())
    assert files(tmp_path) == []
    lt.create_table(tmp_path / "t", TABLE)


def test_stable_row_ids(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, stable_row_ids=True)
    table.append(TABLE)
    assert table.scan([], with_row_id=True).to_arrow()["_rowid"].to_pylist() == list(range(6))
    lt.create_table(tmp_path / "u", TABLE)
    with pytest.raises(InputError, match="enable_stable_row_ids"):
        lt.create_table(tmp_path / "u", TABLE, mode="overwrite", stable_row_ids=True)


@pytest.mark.parametrize("mode", ["error", "ignore", "overwrite"])
def test_many_creators_at_once_make_one_table(tmp_path, mode):
    made, refused = [], []
    barrier = threading.Barrier(6)

    def create(number):
        barrier.wait()
        try:
            made.append(lt.create_table(tmp_path / "t", [{"writer": number}] * 3, mode=mode))
        except ExistsError as error:
            refused.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = lt.open_table(tmp_path / "t")
    found = table.scan().to_arrow()["writer"].to_pylist()
    assert len(found) == 3
    assert len(set(found)) == 1
    named = {f"data/{f.path}" for fragment in table.fragments for f in fragment.files}
    on_disk = {name for name in files(tmp_path / "t") if name.startswith("data/")}
    if mode == "error":
        assert (len(made), len(refused)) == (1, 5)
    else:
        assert (len(made), len(refused)) == (6, 0)
    if mode != "overwrite":
        assert on_disk == named
    else:
        assert table.version == 6


def test_durability_goes_with_the_handle(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, durability="fsync")
    table.append(TABLE)
    other = pickle.loads(pickle.dumps(table))
    assert other._handle.location.durability is lt.Durability.FSYNC
    assert other.append(TABLE).version == 3
    opened = lt.open_table(tmp_path / "t", durability=lt.Durability.FSYNC)
    assert opened.count() == 9


def test_blobs_are_written_and_read(tmp_path):
    marked = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = [b"one", None, b"x" * 100_000, b""]
    for version in ("2.1", "2.2"):
        rows = pa.table([pa.array(data, pa.large_binary())], schema=pa.schema([marked]))
        table = lt.create_table(tmp_path / version, rows, storage_version=version)
        table.append(rows)
        table.append([{"b": b"dict"}])
        got = table.scan(blobs="bytes").to_arrow()["b"].to_pylist()
        assert got == [*data, *data, b"dict"]


def test_a_table_of_the_oldest_files_is_read_only(golden, tmp_path):
    import shutil

    found = [path for path in golden.rglob("*.lance") if (path / "_versions").is_dir()]
    old = []
    for path in found:
        try:
            table = lt.open_table(path)
        except lt.LanceTableError:
            continue
        if any(f.major < 2 for fragment in table.fragments for f in fragment.files):
            old.append(path)
    assert old, "there is a golden table of version 0.1"
    shutil.copytree(old[0], tmp_path / "t")
    table = lt.open_table(tmp_path / "t")
    with pytest.raises(UnsupportedError, match="read-only"):
        table.append(table.scan())
