"""Versions recorded in an external manifest store: the four steps, crashes between them, repair."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.location.external import ExternalLocation, ExternalStore, base_of
from lancetable.commit.location.locate import locate
from lancetable.commit.versions import load
from lancetable.store import Store, TableLocation
from lancetable.store.manifests import KeyValueManifests, ManifestEntry, ManifestStore
from lancetable.store.memory import MemoryStore
from lancetable.store.sqlite import SqliteManifests
from lancetable.store.wrap import WrappedStore
from tests.contracts.test_manifest_store import Pairs
from tests.servers.moto import Moto
from tests.servers.places import Place
from tests.servers.tables import dynamo_table, recorded_place

cloud = pytest.mark.cloud
_T = TypeVar("_T")
ROWS = pa.table({"id": range(10)})
MORE = pa.table({"id": range(10, 15)})


class CrashError(BaseException):
    """The process is gone."""


class CrashingStore(WrappedStore):
    """Dies right after a call."""

    def __init__(self, inner: Store, verb: str) -> None:
        super().__init__(inner)
        self.verb = verb

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        done = action()
        if verb == self.verb and "_versions" in path:
            raise CrashError(verb)
        return done


class CrashingManifests:
    """An external store whose caller dies right after a call."""

    def __init__(self, inner: ManifestStore, verb: str) -> None:
        self.inner = inner
        self.verb = verb

    def _call(self, verb: str, *given: object) -> object:
        done = getattr(self.inner, verb)(*given)
        if verb == self.verb:
            raise CrashError(verb)
        return done

    def __getattr__(self, verb: str) -> object:
        return lambda *given: self._call(verb, *given)


STEPS = [
    ("put", False, "the manifest is staged"),
    ("put_if_absent", True, "the version is recorded"),
    ("copy", False, "the manifest is copied"),
    ("put_if_present", True, "the final name is recorded"),
    ("delete", False, "the staged manifest is removed"),
]


def crash(location: TableLocation, verb: str, *, is_external: bool) -> None:
    """Append rows, and die after one step of the commit."""
    assert isinstance(location, ExternalLocation)
    assert location.manifests is not None
    inner = TableLocation.open(location)
    manifests: ManifestStore = location.manifests
    if is_external:
        manifests = CrashingManifests(manifests, verb)  # type: ignore[assignment]
        store = ExternalStore(inner, manifests, base_of(inner))
    else:
        store = ExternalStore(CrashingStore(inner, verb), manifests, base_of(inner))
    snapshot = load(location)._replace(store=store)
    with pytest.raises(CrashError):
        lt.Table(location, snapshot).append(MORE)


NEXT = ["pylance", "reader", "writer"]
CASES = [
    pytest.param(
        verb,
        is_external,
        who,
        id=f"{step}, then a {who}",
        marks=[] if (number + place) % 3 == 0 or (number, place) == (1, 0) else [pytest.mark.soak],
    )
    for number, (verb, is_external, step) in enumerate(STEPS)
    for place, who in enumerate(NEXT)
]


@cloud
@pytest.mark.oracle
@pytest.mark.parametrize(("verb", "is_external", "next_one"), CASES)
def test_a_crash_after_each_step_is_repaired(
    moto_server: Moto, verb: str, is_external: bool, next_one: str
) -> None:
    place = recorded_place(moto_server)
    lt.create_table(place.uri, ROWS, storage_options=place.options)
    location = locate(place.uri, place.options)
    crash(location, verb, is_external=is_external)
    landed = verb != "put"
    rows = 15 if landed else 10
    if next_one == "pylance":
        import lance

        assert lance.dataset(place.uri, storage_options=place.pylance).count_rows() == rows
    elif next_one == "writer":
        table = lt.open_table(place.uri, version=1, storage_options=place.options)
        table.append(pa.table({"id": [99]}))
        assert table.version == (3 if landed else 2)
        rows += 1
    assert lt.open_table(place.uri, storage_options=place.options).count() == rows
    # Whoever does not know the external store sees the same by now.
    plain = lt.open_table(location.uri, storage_options=place.options)
    assert plain.count() == rows
    kept = [entry.path for entry in TableLocation.open(location).list("_versions")]
    # What was staged and never recorded, or recorded as final before it was removed, may be left.
    staged = [path for path in kept if not path.endswith(".manifest")]
    assert len(staged) <= (1 if verb in {"put", "put_if_present"} else 0), kept


@cloud
@pytest.mark.oracle
def test_both_libraries_share_one_manifest_store(moto_server: Moto) -> None:
    import lance

    place = recorded_place(moto_server)
    lt.create_table(place.uri, ROWS, storage_options=place.options)
    lance.write_dataset(MORE, place.uri, mode="append", storage_options=place.pylance)
    table = lt.open_table(place.uri, storage_options=place.options)
    assert (table.version, table.count()) == (2, 15)
    table.delete("id = 3")
    theirs = lance.dataset(place.uri, storage_options=place.pylance)
    assert (theirs.version, theirs.count_rows()) == (3, 14)
    name = place.uri.rpartition("=")[2]
    items = moto_server.client("dynamodb").scan(TableName=name)["Items"]
    assert sorted(int(item["version"]["N"]) for item in items) == [1, 2, 3]
    folder = place.uri.partition("bucket/")[2].partition("?")[0]
    for item in items:
        assert item["base_uri"]["S"] == folder
        assert item["path"]["S"].startswith(f"{folder}/_versions/")
        assert item["path"]["S"].endswith(".manifest")
        assert set(item) == {"base_uri", "version", "path", "committer", "size"}


@cloud
@pytest.mark.oracle
def test_a_table_that_pylance_left_half_made(moto_server: Moto) -> None:
    """As if pylance had died after step 2: the entry names a staged manifest, the final is gone."""
    import lance

    place = recorded_place(moto_server)
    lance.write_dataset(ROWS, place.uri, storage_options=place.pylance)
    lance.write_dataset(MORE, place.uri, mode="append", storage_options=place.pylance)
    location = locate(place.uri, place.options)
    assert isinstance(location, ExternalLocation)
    assert location.manifests is not None
    inner = TableLocation.open(location)
    base = base_of(inner)
    entry = location.manifests.latest(base)
    assert entry is not None
    path = entry.path.removeprefix(f"{base}/")
    staged = f"{path}-5e0f0c5e-9c5f-4c6a-8f8a-0a2b4b0a7a11"
    inner.copy(path, staged)
    inner.delete(path)
    location.manifests.put_if_present(base, entry._replace(path=f"{base}/{staged}"))
    assert lt.open_table(location.uri, storage_options=place.options).count() == 10
    assert lt.open_table(place.uri, storage_options=place.options).count() == 15
    assert lt.open_table(location.uri, storage_options=place.options).count() == 15
    assert location.manifests.latest(base) == entry
    assert not inner.exists(staged)


@pytest.mark.parametrize("kind", ["sqlite", "pairs"])
def test_other_manifest_stores(tmp_path: Path, kind: str) -> None:
    manifests: ManifestStore = (
        SqliteManifests(str(tmp_path / "m.db")) if kind == "sqlite" else KeyValueManifests(Pairs())
    )
    uri = str(tmp_path / "table")
    table = lt.create_table(uri, ROWS, manifest_store=manifests)
    table.append(MORE)
    table.delete("id = 0")
    again = lt.open_table(uri, manifest_store=manifests)
    assert (again.version, again.count()) == (3, 14)
    assert [info.version for info in again.versions()] == [1, 2, 3]
    with pytest.raises(lt.ExistsError):
        lt.create_table(uri, ROWS, manifest_store=manifests)
    assert lt.open_table(uri).count() == 14
    assert not [entry for entry in (tmp_path / "table/_versions").iterdir() if "-" in entry.name]


def test_a_table_from_before_the_manifest_store(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    lt.create_table(uri, ROWS).append(MORE)
    manifests = SqliteManifests(str(tmp_path / "m.db"))
    table = lt.open_table(uri, manifest_store=manifests)
    assert table.version == 2
    table.append(MORE)
    latest = manifests.latest(uri.lstrip("/"))
    assert latest is not None
    assert latest.version == 3
    assert lt.open_table(uri, manifest_store=manifests).count() == 20


def test_a_lost_answer_of_the_manifest_store(tmp_path: Path) -> None:
    """The entry was made, but the answer was lost: asking finds that it is ours."""

    class Forgetful:
        def __init__(self, inner: ManifestStore) -> None:
            self.inner = inner
            self.is_down = True

        def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
            self.inner.put_if_absent(base, entry)
            if self.is_down:
                raise lt.StoreError("the answer was lost")

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    manifests = Forgetful(SqliteManifests(str(tmp_path / "m.db")))
    manifests.is_down = False
    uri = str(tmp_path / "table")
    table = lt.create_table(uri, ROWS, manifest_store=manifests)  # type: ignore[arg-type]
    manifests.is_down = True
    table.append(MORE)
    assert table.version == 2
    assert lt.open_table(uri).count() == 15


def test_only_one_writer_gets_a_version() -> None:
    inner = MemoryStore()
    stores = [ExternalStore(inner, KeyValueManifests(Pairs()), "t") for _ in range(1)]
    stores[0].put_if_absent("_versions/1.manifest", b"a")
    with pytest.raises(lt.ExistsError):
        stores[0].put_if_absent("_versions/1.manifest", b"b")
    assert set(inner.objects) == {"_versions/1.manifest"}
    stores[0].put_if_absent("_refs/tags/x.json", b"{}")
    assert inner.exists("_refs/tags/x.json")


@cloud
def test_bad_addresses_and_tables_are_explained(moto_server: Moto) -> None:
    place = recorded_place(moto_server)
    with pytest.raises(lt.InputError, match=r"\?ddbTableName=NAME"):
        lt.open_table(place.uri.partition("?")[0], storage_options=place.options)
    missing = place.uri.rpartition("=")[0] + "=nothing"
    with pytest.raises(lt.StoreError, match=r"no such table; create it with the keys base_uri"):
        lt.create_table(missing, ROWS, storage_options=place.options)
    wrong = dynamo_table(moto_server, range_key="number")
    with pytest.raises(lt.InputError, match="needs base_uri"):
        lt.create_table(
            place.uri.rpartition("=")[0] + f"={wrong}", ROWS, storage_options=place.options
        )
    plain = f"s3://{place.uri.partition('://')[2].partition('?')[0]}"
    assert list(Place(plain, place.options).open().list("")) == []
    with pytest.raises(lt.InputError, match="give only one"):
        locate("x", manifest_store=KeyValueManifests(Pairs()), commit_lock=lambda _: _nothing())


def _nothing() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()
