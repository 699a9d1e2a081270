"""Where a table may lead: bases and external blobs, and the credentials that go along."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import CorruptError, InputError, LanceTableError
from lancetable.format.proto import table_pb2
from lancetable.store import TableLocation
from tests.hostile.crafted import (
    SECRET,
    Listener,
    change,
    watched,
    with_base,
    with_blob,
    with_descriptor,
)

ROWS = pa.table({"a": [1, 2, 3]})
SECRETS = {
    "aws_access_key_id": "AKIAEXAMPLE",
    "aws_secret_access_key": "hidden",
    "aws_region": "us-east-1",
    "azure_storage_token": "hidden",
    "google_storage_token": "hidden",
    "token": "hidden",
}


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "id_rsa"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "t.lance"
    lt.create_table(place, ROWS)
    return place


FOREIGN = [
    "http://127.0.0.1:{port}/t",
    "s3://bucket/t",
    "gs://bucket/t",
    "az://box/t",
    "abfss://box@account.dfs.core.windows.net/t",
    "memory://other/t",
]


@pytest.mark.parametrize("base", FOREIGN)
def test_a_local_table_calls_no_service(
    table: Path, listener: Listener, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{listener.port}")
    with_base(table, base.format(port=listener.port))
    opened = lt.open_table(table, storage_options=SECRETS)
    for read in (lambda: opened.scan().to_arrow(), lambda: opened.take([0])):
        with pytest.raises(InputError, match=r"allow=\["):
            read()
    opened.maintenance.check(level="data")
    assert listener.heard == []


def test_a_place_allowed_by_name_is_called(table: Path, listener: Listener) -> None:
    base = f"http://127.0.0.1:{listener.port}/t"
    with_base(table, base)
    quick = {"max_retries": "0"}
    opened = lt.open_table(table, allow=[base], storage_options=quick)
    with pytest.raises(LanceTableError):
        opened.scan().to_arrow()
    assert len(listener.heard) >= 1
    as_option = {**quick, "allow": f"s3://other/, http://127.0.0.1:{listener.port}"}
    with pytest.raises(LanceTableError, match="credentials do not allow"):
        lt.open_table(table, storage_options=as_option).scan().to_arrow()


def test_the_environment_allows(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_base(table, "memory://other/t")
    monkeypatch.setenv("LANCETABLE_ALLOW", "memory://other/")
    with pytest.raises(lt.FileNotFoundInStoreError):
        lt.open_table(table).scan().to_arrow()


@pytest.mark.parametrize(
    ("own", "base", "is_followed"),
    [
        ("s3://b/t", "s3://b/other", True),
        ("s3://b/t", "s3://c/other", False),
        ("s3://b/t", "gs://b/t/x", False),
        ("s3://b/t", "/etc", False),
        ("s3://b/t", "http://b/t", False),
        ("az://c/t", "abfss://c@mine.dfs.core.windows.net/x", True),
        ("az://c/t", "abfss://c@evil.dfs.core.windows.net/x", False),
        ("abfss://c@mine.dfs.core.windows.net/t", "abfss://c@evil.dfs.core.windows.net/t", False),
        ("http://h/t", "http://h/x", True),
        ("http://h/t", "http://H.evil/x", False),
        ("http://h/t", "https://h/t", False),
        ("/data/t", "/data/other", True),
        ("/data/t", "file:///data/other", True),
    ],
)
def test_bases_of_the_same_store_are_followed(own: str, base: str, is_followed: bool) -> None:
    location = TableLocation(own, {"azure_storage_account_name": "mine"})
    if is_followed:
        location.followed(base, "base path")
        with pytest.raises(InputError, match="allow"):
            TableLocation(own, {**location.options, "confine": "root"}).followed(base, "base path")
    else:
        with pytest.raises(InputError, match="allow"):
            location.followed(base, "base path")
        location.allowing(base).followed(base, "base path")
    location.followed(f"{own}/tree/x", "base path")


@pytest.mark.parametrize(
    ("allowed", "address", "is_followed"),
    [
        ("s3://c/", "s3://c/x", True),
        ("s3://c/x", "s3://c/x/y", True),
        ("s3://c/x", "s3://c/xy", False),
        ("s3://c/x", "s3://c/x/../y", False),
        ("s3://c", "s3://cc/y", False),
        ("*", "gs://any/where", True),
    ],
)
def test_what_a_name_allows(allowed: str, address: str, is_followed: bool) -> None:
    location = TableLocation("/t", allow=(allowed,))
    assert pickle.loads(pickle.dumps(location)) == location
    if is_followed:
        location.followed(address, "base path")
    else:
        with pytest.raises(InputError, match=r"allow|empty part"):
            location.followed(address, "base path")


def payload(table: lt.Table, *, allow_external: bool = False) -> bytes:
    (file,) = table.blobs("b", [0], allow_external=allow_external)
    assert file is not None
    return file.read()


def _given() -> dict[str, str]:
    return {}


def test_credentials_stay_with_their_service_and_account() -> None:
    other = TableLocation("az://c/t", {**SECRETS, "account_name": "mine"}, credentials=_given)
    same = other.elsewhere("abfss://c@mine.dfs.core.windows.net/x")
    assert (same.options, same.credentials) == (other.options, _given)
    evil = other.elsewhere("abfss://c@evil.dfs.core.windows.net/x")
    assert (evil.options, evil.credentials) == ({}, None)
    s3 = other.elsewhere("s3://bucket/x")
    assert set(s3.options) == {"aws_access_key_id", "aws_secret_access_key", "aws_region"}
    assert s3.credentials is None
    assert "hidden" not in other.elsewhere("https://evil.example/x").options.values()


@pytest.mark.parametrize("how", ["absolute", "file", "base", "encoded"])
@pytest.mark.parametrize("confine", ["store", "root"])
def test_an_external_blob_reads_no_file_outside(
    tmp_path: Path, secret: Path, how: str, confine: str
) -> None:
    place = tmp_path / "t.lance"
    uris = {
        "absolute": str(secret),
        "file": f"file://{secret}",
        "encoded": f"file://{secret.parent}/%69d_rsa",
        "base": secret.name,
    }
    with_blob(place, uris[how], base=str(secret.parent) if how == "base" else None)
    table = lt.open_table(place, storage_options={"confine": confine})
    with watched() as seen:
        with pytest.raises(InputError, match=r"external blob .* allow=\["):
            table.blobs("b", [0])
        with pytest.raises(InputError, match="allow"):
            table.scan(blobs="bytes").to_arrow()
    assert not [path for path in seen if str(secret.parent) in path]
    allowed = lt.open_table(place, allow=[str(secret.parent)])
    assert payload(allowed) == SECRET
    assert allowed.scan(blobs="bytes").to_arrow()["b"].to_pylist() == [SECRET]
    assert payload(table, allow_external=True) == SECRET


def test_an_external_blob_inside_the_table_needs_no_name(tmp_path: Path, secret: Path) -> None:
    place = tmp_path / "t.lance"
    with_blob(place, str(place / "own" / "x.bin"))
    (place / "own").mkdir()
    (place / "own" / "x.bin").write_bytes(b"own")
    assert payload(lt.open_table(place)) == b"own"
    (place / "own" / "x.bin").unlink()
    (place / "own").rmdir()
    (place / "own").symlink_to(secret.parent)
    secret.rename(secret.parent / "x.bin")
    with pytest.raises(InputError, match="allow"):
        lt.open_table(place).blobs("b", [0])


@pytest.mark.parametrize("uri", ["relative/x", "~/x", "..", "", "x/", "C:x"])
def test_an_external_blob_without_an_address_is_damage(tmp_path: Path, uri: str) -> None:
    with_blob(tmp_path / "t.lance", uri)
    with pytest.raises(CorruptError, match="not the address of a file"):
        lt.open_table(tmp_path / "t.lance").blobs("b", [0], allow_external=True)


def test_an_inline_blob_needs_a_lance_file(tmp_path: Path, secret: Path) -> None:
    """A base makes a file of the reader the data file of a blob column."""
    place = tmp_path / "t.lance"
    row = {"kind": 0, "position": 0, "size": 8, "blob_id": 0, "blob_uri": ""}
    with_descriptor(place, row, str(secret.parent))

    def point(manifest: table_pb2.Manifest) -> None:
        real = manifest.fragments[0].files[0]
        fake = manifest.fragments[0].files.add()
        fake.CopyFrom(real)
        fake.path, fake.base_id, fake.file_size_bytes = secret.name, 1, 0
        del fake.fields[1:], fake.column_indices[1:]
        files = [fake.SerializeToString(), real.SerializeToString()]
        del manifest.fragments[0].files[:]
        for one in files:
            manifest.fragments[0].files.add().ParseFromString(one)

    change(place, point)
    with pytest.raises(LanceTableError) as caught:
        payload(lt.open_table(place))
    assert "content" not in str(caught.value)


def test_a_clone_made_here_reads_its_source(tmp_path: Path) -> None:
    source = lt.create_table("memory://one/t", ROWS)
    clone = source.clone("memory://two/t")
    assert clone.scan().to_arrow() == ROWS
    clone.append(ROWS)
    assert clone.count() == 6
    assert clone.refresh().scan().to_arrow().num_rows == 6
    with pytest.raises(InputError, match=r"allow=\['memory://one/t'\]"):
        lt.open_table("memory://two/t").scan().to_arrow()
    assert lt.open_table("memory://two/t", allow=["memory://one/"]).scan().to_arrow().num_rows == 6
    local = lt.create_table(tmp_path / "a", ROWS).clone(tmp_path / "b")
    assert lt.open_table(local.uri).scan().to_arrow() == ROWS


def test_bases_named_by_the_caller_are_allowed(tmp_path: Path) -> None:
    table = lt.create_table("memory://one/bases", ROWS)
    table.bases.add({"far": "memory://far/x"})
    table.append(ROWS, target_bases=("far",))
    assert table.refresh().scan().to_arrow().num_rows == 6
    with pytest.raises(InputError, match="allow"):
        lt.open_table("memory://one/bases").append(ROWS, target_bases=("far",))
    made = lt.create_table(tmp_path / "t", ROWS, bases={"m": "memory://m/x"}, target_bases=("m",))
    assert made.scan().to_arrow() == ROWS


@pytest.mark.parametrize("options", [{"confine": "nowhere"}])
def test_an_unknown_confinement_is_refused(table: Path, options: dict[str, str]) -> None:
    with pytest.raises(InputError, match="'store' or 'root'"):
        lt.open_table(table, storage_options=options)
    with pytest.raises(InputError, match="a list of addresses"):
        lt.open_table(table, allow="s3://bucket/")
