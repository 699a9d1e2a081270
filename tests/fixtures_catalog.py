"""Every table and file that must be read, and what must come out.

The same folders are read from two places: the whole collection beside the checkout, when it is
there, and the small copy of it in ``tests/golden``, which is always there.
"""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

import lancetable
from lancetable.errors import LanceTableError
from lancetable.file import open_file
from lancetable.format.manifest.envelope import FOOTER, manifest_message, seal
from lancetable.format.proto import table_pb2
from tests.same import DifferenceError, assert_same_array, assert_same_table

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SHARED = ROOT.parent / "shared" / "fixtures"
PLACEHOLDER = "/lance-fixtures/000000000000"

Check = Callable[[], str]


@dataclass(frozen=True)
class Case:
    """One thing to read. ``check`` returns what was shown, or fails."""

    name: str
    writer: str
    version: str
    covers: str
    check: Check
    is_refusal: bool = False


def cases(root: Path) -> list[Case]:
    """Return all cases below a collection of fixtures, in a fixed order."""
    found = [
        *_file_cases(root / "file"),
        *_table_cases(root / "table"),
        *_release_cases(root / "releases"),
        *_upstream_cases(root / "upstream"),
        *_memwal_cases(root / "memwal"),
    ]
    names = [case.name for case in found]
    if len(set(names)) != len(names):
        raise AssertionError("two cases have one name")
    return found


def load_expected(path: Path) -> pa.Table:
    """Return an expected table, read without a memory map."""
    return pa.ipc.open_file(pa.py_buffer(path.read_bytes())).read_all()


@cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lancetable-fixtures-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _movable(root: Path, names: tuple[str, ...]) -> Path:
    """Copy tables whose manifests hold absolute paths, and make the paths true for the copy."""
    home = Path(tempfile.mkdtemp(dir=_scratch()))
    for name in names:
        shutil.copytree(root / name, home / name)
    for path in home.rglob("*.manifest"):
        data = path.read_bytes()
        if PLACEHOLDER.encode() in data:
            path.write_bytes(_with_base(data, str(home)))
    return home


def _with_base(data: bytes, home: str) -> bytes:
    message = table_pb2.Manifest.FromString(bytes(manifest_message(data)))
    for base in message.base_paths:
        base.path = base.path.replace(PLACEHOLDER, home)
    (position, *_) = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    return seal(data[:position], message.SerializeToString())


# ---- data files


def _file_cases(folder: Path) -> Iterator[Case]:
    if not (folder / "manifest.json").exists():
        return
    for entry in json.loads((folder / "manifest.json").read_text()):
        expected = folder / entry["expected"]
        path = folder / entry["file"]
        pages = [page for page in entry["pages"] if isinstance(page, dict)]
        kinds = sorted({page["encoding"].split(" layers=")[0] for page in pages})
        covers = "; ".join(kinds) or entry.get("note", "")
        name = f"file/{path.relative_to(folder).parent.as_posix()}/{entry['case']}"
        if entry["version"] == "0.1":
            name = f"file/0.1/{entry['case']}"
            check = _table_check(folder / "0.1" / entry["case"], expected)
        else:
            check = _file_check(path, expected)
        yield Case(name, entry["writer"], entry["version"], covers, check)


def _file_check(path: Path, expected_path: Path) -> Check:
    def check() -> str:
        expected = load_expected(expected_path)
        handle = open_file(str(path))
        _agree(handle.rows, expected.num_rows, "rows")
        blobs = [name for name in expected.column_names if _is_blob(expected.schema.field(name))]
        found = handle.read()
        if blobs:
            found = _with_payloads(found, blobs, path.read_bytes())
        assert_same_table(found, expected)
        if blobs:
            return "rows and payload bytes"
        wanted = _some_rows(expected.num_rows)
        assert_same_table(handle.take(wanted), expected.take(pa.array(wanted, pa.int64())))
        for name in expected.column_names[:8]:
            column = handle.read([_quoted(name)])
            assert_same_array(column.column(0), expected.column(name), name)
        return "rows, taken rows, single columns"

    return check


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_blob(field: pa.Field) -> bool:
    return bool((field.metadata or {}).get(b"lance-encoding:blob") == b"true")


def _with_payloads(table: pa.Table, names: list[str], data: bytes) -> pa.Table:
    """Replace descriptors by the bytes of the same file that they describe."""
    for name in names:
        values: list[bytes | None] = []
        for row in table.column(name).to_pylist():
            # 2.0 writes a missing blob as an empty one at position 1.
            if row is None or (row["size"] == 0 and row["position"] != 0 and "kind" not in row):
                values.append(None)
            else:
                values.append(data[row["position"] : row["position"] + row["size"]])
        number = table.column_names.index(name)
        table = table.set_column(number, name, pa.array(values, pa.large_binary()))
    return table


def _some_rows(rows: int) -> list[int]:
    """Rows in no order, with repetitions, from everywhere."""
    if not rows:
        return []
    step = max(1, rows // 37)
    picked = [rows - 1, *range(0, rows, step), 0, rows // 2]
    return [row * 7919 % rows if number % 3 else row for number, row in enumerate(picked)]


# ---- tables


def _table_check(
    place: Path | Callable[[], Path],
    expected: Path | Callable[[], pa.Table],
    **wish: object,
) -> Check:
    """Return a check that reads one version of a table in several ways."""

    def check() -> str:
        path = place() if callable(place) else place
        wanted = expected() if callable(expected) else load_expected(expected)
        table = lancetable.open_table(str(path), **wish)  # type: ignore[arg-type]
        _same_rows(table, wanted)
        return "schema, count, rows, row ids and addresses, taken rows"

    return check


def _same_rows(table: lancetable.Table, expected: pa.Table) -> None:
    system = [name for name in expected.column_names if name not in table.schema.names]
    unknown = [name for name in system if not name.startswith("_row")]
    if unknown:
        raise DifferenceError(f"there are no columns {unknown}")
    data_names = [name for name in expected.column_names if name not in system]
    _agree(table.schema.names, data_names, "columns")
    _same_schema(table.schema, expected.select(data_names).schema)
    _agree(table.count(), expected.num_rows, "count")
    if table._snapshot.manifest.fragments.shared_ids():  # type: ignore[attr-defined]
        # Their addresses mean several rows each, so rows get others here.
        addresses = table.scan(["_rowaddr"]).to_arrow()["_rowaddr"].to_pylist()
        _agree(len(set(addresses)), expected.num_rows, "addresses")
        expected, system = expected.select(data_names), []
    names = [*map(_quoted, data_names), *system]
    assert_same_table(table.scan(names).to_arrow(), expected)
    assert_same_table(table.scan().to_arrow(), expected.select(data_names))
    batches = list(table.scan(names, batch_rows=7 + expected.num_rows // 5).to_batches())
    joined = pa.Table.from_batches(batches, schema=table.scan(names).schema)
    assert_same_table(joined, expected)
    wanted = _some_rows(expected.num_rows)
    picked = expected.take(pa.array(wanted, pa.int64()))
    assert_same_table(table.take(wanted, columns=names), picked)
    addressed = expected.column("_rowaddr").to_pylist() if "_rowaddr" in system else [0, 0]
    if len(set(addressed)) == len(addressed):
        addresses = picked.column("_rowaddr").to_pylist()
        assert_same_table(table.take(row_addresses=addresses, columns=names), picked)
        ids = picked.column("_rowid").to_pylist()
        assert_same_table(table.take(row_ids=ids, columns=names), picked)


def _same_schema(found: pa.Schema, expected: pa.Schema) -> None:
    for name in expected.names:
        one, other = found.field(name), expected.field(name)
        _agree(one.nullable, other.nullable, f"nullable of {name}")
        _agree(_notes(one), _notes(other), f"metadata of {name}")
    _agree(found.metadata or {}, expected.metadata or {}, "schema metadata")


def _notes(field: pa.Field) -> dict[bytes, bytes]:
    """Metadata of a field without what says which extension type or encoding it has."""
    hidden = (b"ARROW:extension:", b"lance-encoding:packed", b"lance-encoding:blob")
    return {key: text for key, text in (field.metadata or {}).items() if not key.startswith(hidden)}


def _agree(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise DifferenceError(f"{what}: {found!r}, expected {expected!r}")


def _table_cases(folder: Path) -> Iterator[Case]:
    if not (folder / "manifest.json").exists():
        return
    for entry in json.loads((folder / "manifest.json").read_text())["cases"]:
        yield from _cases_of_table(folder, entry)


def _cases_of_table(folder: Path, entry: dict) -> Iterator[Case]:  # type: ignore[type-arg]
    place = _place(folder, entry)
    writer = entry.get("written_by", entry["oracle"])
    about = (writer, entry["data_storage_version"], entry["description"])
    stem = f"table/{entry['case']}"
    versions = {}
    for version in entry["versions"]:
        branch = version.get("branch")
        name = (
            f"{stem}@{branch} v{version['version']}" if branch else f"{stem} v{version['version']}"
        )
        expected = folder / version["expected"]
        versions[branch, version["version"]] = expected
        wish = {"version": version["version"], "branch": branch}
        yield Case(name, *about, _table_check(place, expected, **wish))
    for tag, text in entry.get("tags", {}).items():
        expected = versions[None, int(text["version"])]
        yield Case(f"{stem} tag {tag}", *about, _table_check(place, expected, tag=tag))
    for branch in sorted({branch for branch, _ in versions if branch}):
        newest = max(number for name, number in versions if name == branch)
        check = _table_check(place, versions[branch, newest], branch=branch)
        yield Case(f"{stem} branch {branch}", *about, check)
    payloads = folder / f"{entry['case']}.v1.all_binary.arrow"
    if payloads.exists():
        yield Case(f"{stem} payloads", *about, _payload_check(place, payloads))
    if "detached_version" in entry:
        expected = folder / f"{entry['case']}.detached.expected.arrow"
        check = _table_check(place, expected, version=entry["detached_version"])
        yield Case(f"{stem} detached", *about, check)
    if "config" in entry:
        yield Case(f"{stem} settings", *about, _settings_check(place, entry))
    if entry["case"] == "legacy_0_25_2_rowids":
        check = _refusal(place, "is deleted, but", scan=True, version=4)
        yield Case(f"{stem} v4", *about, check, is_refusal=True)


def _place(folder: Path, entry: dict) -> Callable[[], Path]:  # type: ignore[type-arg]
    names = (entry["path"], *entry.get("aux_paths", ()))

    def place() -> Path:
        if entry["case"] in {"branches", "shallow_clone", "deep_clone", "multi_base"}:
            return _movable(folder, names) / str(entry["path"])
        return folder / str(entry["path"])

    return place


def _payload_check(place: Callable[[], Path], path: Path) -> Check:
    def check() -> str:
        expected = load_expected(path)
        table = lancetable.open_table(str(place()))
        names = [name for name in expected.column_names if not name.startswith("_row")]
        found = table.scan(names, blobs="bytes").to_arrow()
        assert_same_table(found, expected.select(names))
        for name in names:
            if expected.schema.field(name).type == pa.large_binary():
                _same_payloads(table, name, expected.column(name).to_pylist())
        return "payload bytes, by scan and as files"

    return check


def _same_payloads(table: lancetable.Table, name: str, expected: list[bytes | None]) -> None:
    files = table.blobs(name, list(range(len(expected))))
    _agree([None if file is None else file.read() for file in files], expected, f"blobs of {name}")


def _settings_check(place: Callable[[], Path], entry: dict) -> Check:  # type: ignore[type-arg]
    def check() -> str:
        table = lancetable.open_table(str(place()))
        _agree(dict(table.config), entry["config"], "config")
        _agree(dict(table.metadata), entry["table_metadata"], "metadata")
        return "config and table metadata"

    return check


def _refusal(place: Path | Callable[[], Path], words: str, *, scan: bool, **wish: object) -> Check:
    """Return a check that a table is refused with one clear error, at open or at scan."""

    def check() -> str:
        path = place() if callable(place) else place
        try:
            table = lancetable.open_table(str(path), **wish)  # type: ignore[arg-type]
        except LanceTableError as cause:
            if scan or words not in str(cause):
                raise DifferenceError(f"opening failed: {cause}") from cause
            return f"refused: {_shown(cause, path)}"
        try:
            table.scan().to_arrow()
        except LanceTableError as cause:
            if words not in str(cause):
                raise DifferenceError(f"the scan failed otherwise: {cause}") from cause
            return f"opens; scan refused: {_shown(cause, path)}"
        raise DifferenceError("read, but must be refused")

    return check


def _shown(cause: LanceTableError, path: Path) -> str:
    """The message without the place of the checkout."""
    return str(cause).replace(f"{path}/", "").replace(f"{path.parent}/", "")


# ---- releases


def _release_cases(folder: Path) -> Iterator[Case]:
    if not (folder / "SUMMARY.json").exists():
        return
    for entry in json.loads((folder / "SUMMARY.json").read_text()):
        yield from _cases_of_release(folder, entry)


def _cases_of_release(folder: Path, entry: dict) -> Iterator[Case]:  # type: ignore[type-arg]
    place = folder / entry["v"] / entry["name"]
    stem = entry["name"].removesuffix(".lance")
    name = f"releases/{entry['v']}/{stem}"
    writer = entry["v"].replace("-", " ")
    expected = folder / "expected" / entry["v"]
    if "err" in entry:
        yield _unread_release(folder, entry["v"], stem, name, writer)
        return
    covers = _covers(stem, entry)
    for version in entry["versions"]:
        stored = expected / f"{stem}__v{version}.arrow"
        newest = expected / f"{stem}__v{max(entry['versions'])}.arrow"
        if stored.exists():
            check = _table_check(place, stored, version=version)
        elif stem.startswith("idx_"):
            # Building an index leaves the rows alone.
            check = _table_check(place, newest, version=version)
        else:
            check = _table_check(place, _by_oracle(place, version), version=version)
        yield Case(f"{name} v{version}", writer, entry["storage"], covers, check)
    if stem == "blob_v1":
        check = _legacy_blob_check(place)
        yield Case(f"{name} payloads", writer, entry["storage"], covers, check)
    for tag in sorted((place / "_refs" / "tags").glob("*.json")):
        version = json.loads(tag.read_text())["version"]
        check = _table_check(place, expected / f"{stem}__v{version}.arrow", tag=tag.stem)
        yield Case(f"{name} tag {tag.stem}", writer, entry["storage"], covers, check)


def _covers(stem: str, entry: dict) -> str:  # type: ignore[type-arg]
    known = {
        "history": "append, delete, add column, update, merge, tag",
        "stable_row_ids": "stable row ids, delete, compaction",
        "blob_v1": "blob column, descriptions",
    }
    if stem in known:
        return known[stem]
    if stem.startswith("idx_"):
        return f"rows of a table with an index: {stem.removeprefix('idx_')}"
    kind = "16 primitive columns" if stem.startswith("prim") else "nested columns"
    return f"{kind}, {entry['frags']} fragments"


def _unread_release(folder: Path, release: str, stem: str, name: str, writer: str) -> Case:
    """Return the case of a table that pylance 14 cannot read."""
    place = folder / release / f"{stem}.lance"
    if stem.endswith("_v2_2"):
        sibling = folder / "expected" / release / f"{stem.replace('_v2_2', '_v2_1')}__v1.arrow"
        covers = "2.2 before it was stable: 16-bit chunk words; compared with the 2.1 sibling"
        return Case(f"{name} v1", writer, "2.2", covers, _table_check(place, sibling))
    covers = "blob metadata on a 0.1 table, where the bytes lie in the column itself"
    return Case(f"{name} v1", writer, "0.1", covers, _legacy_blob_check(place))


def _legacy_blob_check(place: Path) -> Check:
    def check() -> str:
        table = lancetable.open_table(str(place))
        _agree(table.count(), 3, "count")
        _agree(table.scan(["id"]).to_arrow().column("id").to_pylist(), [0, 1, 2], "ids")
        return _release_payloads(table)

    return check


def _release_payloads(table: lancetable.Table) -> str:
    """Compare with what each release was given: three bytes, nothing, three thousand bytes."""
    expected = [b"foo", None, b"x" * 3000]
    found = table.scan(["blob"], blobs="bytes").to_arrow().column("blob").to_pylist()
    _agree(found, expected, "payloads")
    _same_payloads(table, "blob", expected)
    return "payload bytes, by scan and as files"


def _by_oracle(place: Path, version: int) -> Callable[[], pa.Table]:
    """Return what pylance reads now, for versions without a stored expectation."""

    def read() -> pa.Table:
        import lance

        dataset = lance.dataset(str(place), version=version)
        return dataset.to_table(with_row_id=True, with_row_address=True)

    return read


# ---- tables of the Lance repository

_UPSTREAM = {
    "0.27.0/legacy_fts_index": "full-text index of the oldest layout beside the rows",
    "0.36.0/btree_in_index_pkg.lance": "index details of another protobuf package",
    "historical_datasets/0.13.0_string_encoding.lance": "early 2.0 strings and binary",
    "v0.10.5/corrupt_schema": "duplicate field ids after adding and dropping columns",
    "v0.15.0/v1_no_files.lance": "storage version not recorded, no files",
    "v0.15.0/v1_with_files.lance": "storage version not recorded, 0.1 files",
    "v0.15.0/v2_no_files.lance": "storage version not recorded, no files",
    "v0.15.0/v2_with_files.lance": "storage version not recorded, 2.0 files",
    "v0.16.0/wrong_data_version_can_fix.lance": "manifest and files disagree on the version",
    "v0.16.0/wrong_data_version_no_fix.lance": "files of several versions, a fragment id twice",
    "v0.18.2/index_no_details.lance": "index without details",
    "v0.20.0/old_btree_bitmap_indices.lance": "old index layouts beside the rows",
    "v0.21.0/bad_index_fragment_bitmap": "overlapping fragment bitmaps of index deltas",
    "v0.27.1/pq_in_schema": "vector index with its codebook in schema metadata",
    "v0.30.0_pre_created_at/index_without_created_at": "manifests only: the data file is missing",
    "v0.5.9/dataset_with_fragments": "manifests only: the data files are missing",
    "v0.5.9/no_fragments": "empty table of the first generation",
    "v0.7.5/with_deletions": "deletions without recorded row counts",
    "v0.8.0/migrated_from_v0.7.5": "wrong physical row counts, to be ignored",
    "v0.8.14/corrupt_index": "index whose fragment bitmap cannot be trusted",
}


def _upstream_cases(folder: Path) -> Iterator[Case]:
    summary = folder / "expected" / "summary.json"
    if not summary.exists():
        return
    for entry in json.loads(summary.read_text()):
        yield from _cases_of_upstream(folder, entry)
    lone = next((folder / "test_image_dataset" / "data").glob("*.lance"))
    yield Case(
        "upstream/test_image_dataset",
        "lance before 0.5",
        "0.1",
        "a lone data file without the table that holds its schema",
        _lone_check(lone),
        is_refusal=True,
    )


def _cases_of_upstream(folder: Path, entry: dict) -> Iterator[Case]:  # type: ignore[type-arg]
    name = entry["name"]
    place = folder / name
    writer = "lance " + name.split("/")[0 if name[0] in "0v" else 1].lstrip("v").split("_")[0]
    covers = _UPSTREAM[name]
    for version, found in entry["versions_read"].items():
        title = f"upstream/{name.removesuffix('.lance')} v{version}"
        about = (title, writer, entry["storage"], covers)
        if isinstance(found, str):
            check = _refusal(place, "missing", scan=True, version=int(version))
            yield Case(*about, check, is_refusal=True)
        else:
            stored = folder / "expected" / f"{name.replace('/', '__')}__v{version}.arrow"
            yield Case(*about, _table_check(place, stored, version=int(version)))


def _lone_check(path: Path) -> Check:
    def check() -> str:
        try:
            open_file(str(path))
        except LanceTableError as cause:
            return f"refused: {_shown(cause, path)}"
        raise DifferenceError("read, but a 0.1 file carries no schema")

    return check


# ---- blobs, JSON and bfloat16

_MEMWAL = (
    "bfloat16",
    "blob_v1_2_0",
    "blob_v1_2_1",
    "blob_v2_from_v1_input",
    "blob_v2_small_thresholds",
    "json_column",
)
_VERSIONS = {"blob_v1_2_0": "2.0", "blob_v1_2_1": "2.1"}


def _memwal_cases(folder: Path) -> Iterator[Case]:
    if not (folder / "expected.json").exists():
        return
    stored = json.loads((folder / "expected.json").read_text())
    for name in _MEMWAL:
        if name in stored:
            check = _memwal_check(folder / name, stored[name])
            about = ("pylance 14.0.2", _VERSIONS.get(name, "2.2"), stored[name]["description"])
            yield Case(f"memwal/{name}", *about, check)


def _memwal_check(place: Path, stored: dict) -> Check:  # type: ignore[type-arg]
    def check() -> str:
        table = lancetable.open_table(str(place))
        if "descriptors" in stored:
            return _blob_rows(table, stored)
        column = table.scan().to_arrow().columns[-1].combine_chunks()
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if "storage_hex" in stored:
            found = [None if value is None else value.hex() for value in column.to_pylist()]
            _agree(found, stored["storage_hex"], "values")
            return "stored bytes"
        _agree(column.to_pylist(), stored["rendered"], "documents")
        return "rendered text"

    return check


def _blob_rows(table: lancetable.Table, stored: dict) -> str:  # type: ignore[type-arg]
    _agree(table.scan(["id", "b"]).to_arrow().to_pylist(), stored["descriptors"], "descriptors")
    sizes = [row["b"] and row["b"]["size"] for row in stored["descriptors"]]
    sizes = stored.get("payload_sizes", sizes)
    payloads = table.scan(["b"], blobs="bytes").to_arrow().column("b").to_pylist()
    _agree([None if value is None else len(value) for value in payloads], sizes, "sizes")
    for value, start in zip(payloads, stored.get("payload_first_bytes", ()), strict=False):
        if start is not None:
            _agree(value[: len(start)], start.encode(), "payload")
    _same_payloads(table, "b", payloads)
    return "descriptions, payloads by scan and as files"
