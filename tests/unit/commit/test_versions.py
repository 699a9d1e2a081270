"""Finding the manifest that is asked for, with as little reading as possible."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from lancetable.commit import list_versions, load
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import (
    CorruptError,
    InputError,
    RefNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancetable.format.manifest.envelope import seal
from lancetable.format.manifest.names import HINT, Scheme, manifest_path
from lancetable.format.proto import table_pb2, transaction_pb2
from lancetable.store import TableLocation
from lancetable.store.memory import MemoryStore

START = datetime(2026, 1, 1, tzinfo=UTC)


class CountingStore(MemoryStore):
    """A store in memory that remembers what was asked of it."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def read(self, path, *, most=None):
        self.calls.append(f"read {path}")
        return super().read(path, most=most)

    def open(self, path, **more):
        self.calls.append(f"open {path}")
        return super().open(path, **more)

    def exists(self, path):
        self.calls.append(f"exists {path}")
        return super().exists(path)

    def list(self, prefix):
        self.calls.append(f"list {prefix}")
        return super().list(prefix)


class Place(TableLocation):
    """A table in memory, with its branches."""

    stores: dict[str, CountingStore]

    def __init__(self):
        super().__init__("memory:t")
        self.stores = {"": CountingStore()}

    def open(self):
        return self.stores[""]

    def child(self, path):
        below = Place()
        below.stores[""] = self.stores.setdefault(path, CountingStore())
        return below

    def write(self, version, scheme=Scheme.V2, *, named=None, folder="", **more):
        message = table_pb2.Manifest(version=version, **more)
        if "timestamp" not in more:
            seconds = int((START + timedelta(hours=version)).timestamp()) if version < 10**6 else 0
            message.timestamp.seconds = seconds
        store = self.stores.setdefault(folder, CountingStore())
        path = manifest_path(named or version, scheme)
        store.objects[path] = seal(b"", message.SerializeToString())

    def hint(self, content):
        self.stores[""].objects[HINT] = content


@pytest.fixture
def place():
    return Place()


def calls_of_load(place, **wish):
    place.open().calls.clear()
    load(place, **wish)
    return [call.partition(" ")[0] for call in place.open().calls]


def test_a_right_hint_saves_the_listing(place):
    for version in range(1, 6):
        place.write(version)
    place.hint(b'{"version":5}')
    assert load(place).version == 5
    assert calls_of_load(place) == ["read", "read", "exists"]


@pytest.mark.parametrize("scheme", [Scheme.V1, Scheme.V2])
def test_a_low_hint_is_followed_upwards(place, scheme):
    for version in range(1, 12):
        place.write(version, scheme)
    place.hint(b'{"version": 8}\n')
    assert load(place).version == 11
    assert "list" not in calls_of_load(place)


@pytest.mark.parametrize(
    "hint", [b"", b"{", b'{"version":99}', b'{"version":-3}', b'{"version":0}', b"\xff", b"[1]"]
)
def test_a_wrong_hint_is_harmless(place, hint):
    for version in (9, 10):
        place.write(version, Scheme.V1)
    place.hint(hint)
    assert load(place).version == 10


def test_a_hint_far_too_low_ends_in_a_listing(place):
    for version in range(1, 300):
        place.write(version)
    place.hint(b'{"version":1}')
    assert load(place).version == 299
    assert "list" in calls_of_load(place)


def test_without_a_hint_the_folder_is_listed(place):
    for version in (9, 10):
        place.write(version, Scheme.V1)
    place.open().objects["_versions/11.manifest#1"] = b"half"
    place.open().objects["_versions/.tmp12.manifest"] = b"half"
    assert load(place).version == 10


def test_a_version_by_number(place):
    place.write(1)
    place.write(2)
    assert load(place, version=1).version == 1
    assert calls_of_load(place, version=1) == ["read"]


def test_a_detached_version_is_opened_by_its_number_only(place):
    detached = 2**63 + 12345
    place.write(1)
    place.write(detached, Scheme.DETACHED)
    assert load(place).version == 1
    assert load(place, version=detached).version == detached


def test_a_version_that_was_cleaned_away(place):
    for version in (1, 4, 5, 6, 9):
        place.write(version)
    with pytest.raises(VersionNotFoundError, match=r"version 3;.*1, 4 to 6, 9"):
        load(place, version=3)


@pytest.mark.parametrize("version", [0, -1, 2**64, "1", 1.5])
def test_what_is_no_version(place, version):
    place.write(1)
    with pytest.raises(InputError, match="give a whole number from 1"):
        load(place, version=version)


def test_two_naming_schemes_are_refused(place):
    place.write(1, Scheme.V1)
    place.write(2, Scheme.V2)
    with pytest.raises(CorruptError, match="two naming schemes"):
        load(place)


def test_no_table(place):
    with pytest.raises(TableNotFoundError, match="_versions"):
        load(place)
    with pytest.raises(TableNotFoundError, match="_versions"):
        load(place, version=3)
    with pytest.raises(TableNotFoundError, match="_versions"):
        load(place, branch="dev")


def test_the_name_must_tell_the_truth(place):
    place.write(3, named=4)
    with pytest.raises(CorruptError, match=r"version 4.*version 3"):
        load(place)


@pytest.mark.parametrize(
    ("hours", "version"), [(1, 1), (1.5, 1), (2, 2), (7, 7), (7.9, 7), (100, 20)]
)
def test_a_version_by_time(place, hours, version):
    for number in range(1, 21):
        place.write(number)
    moment = START + timedelta(hours=hours)
    assert load(place, as_of=moment).version == version
    assert load(place, as_of=moment.isoformat()).version == version
    assert load(place, as_of=moment.astimezone().replace(tzinfo=None)).version == version


@pytest.fixture
def tokyo(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_a_time_without_offset_is_local_time(place):
    for number in range(1, 21):
        place.write(number)
    assert load(place, as_of=datetime(2026, 1, 1, 12)).version == 3  # noqa: DTZ001
    assert load(place, as_of="2026-01-01T12:00:00").version == 3
    assert load(place, as_of="2026-01-01T12:00:00Z").version == 12
    assert load(place, as_of=datetime.max).version == 20  # noqa: DTZ901
    with pytest.raises(VersionNotFoundError):
        load(place, as_of=datetime.min)  # noqa: DTZ901
    with pytest.raises(VersionNotFoundError):
        load(place, as_of="2026-01-01")


def test_a_clock_that_went_back(place):
    hours = [1, 2, 9, 3, 4, 5, 6, 7]
    for number, hour in enumerate(hours, 1):
        at = int((START + timedelta(hours=hour)).timestamp())
        place.write(number, timestamp={"seconds": at})
    for moment in range(1, 10):
        expected = max(number for number, hour in enumerate(hours, 1) if hour <= moment)
        assert load(place, as_of=START + timedelta(hours=moment)).version == expected


def test_few_manifests_are_read_for_a_late_time(place):
    for number in range(1, 101):
        place.write(number)
    assert calls_of_load(place, as_of=START + timedelta(hours=97)).count("open") <= 7


def test_a_time_before_the_first_version(place):
    place.write(1)
    with pytest.raises(VersionNotFoundError, match="the oldest one, 1, is from 2026-01-01"):
        load(place, as_of=START)


def test_a_text_that_is_no_time(place):
    place.write(1)
    with pytest.raises(InputError, match="not a time"):
        load(place, as_of="yesterday")


def test_wishes_that_contradict_each_other(place):
    place.write(1)
    with pytest.raises(InputError, match="one of"):
        load(place, version=1, as_of=START)
    with pytest.raises(InputError, match="branch"):
        load(place, tag="t", branch="b")


def test_a_branch_has_its_own_versions(place):
    place.write(1)
    place.write(1, folder="tree/feature/x", branch="feature/x")
    place.write(2, folder="tree/feature/x", branch="feature/x")
    found = load(place, branch="feature/x")
    assert (found.version, found.branch) == (2, "feature/x")
    assert load(place, branch="feature/x", version=1).version == 1
    assert load(place, branch="main").branch is None


def test_a_branch_that_is_not_there(place):
    place.write(1)
    place.open().objects["_refs/branches/a%2Fb.json"] = b"{}"
    with pytest.raises(RefNotFoundError, match="'dev'; existing: 'main', 'a/b'"):
        load(place, branch="dev")


@pytest.mark.parametrize("branch", ["../x", "/x", "a//b", "a/../b", "x.lock", "", "a b", "."])
def test_a_name_no_branch_can_have(place, branch):
    place.write(1)
    with pytest.raises(InputError, match="not a valid branch name"):
        load(place, branch=branch)


def test_a_tag_names_branch_and_version(place):
    place.write(1)
    place.write(2)
    place.write(2, folder="tree/dev", branch="dev")
    objects = place.open().objects
    objects["_refs/tags/main.json"] = json.dumps({"branch": None, "version": 1}).encode()
    objects["_refs/tags/v.2.json"] = json.dumps({"branch": "dev", "version": 2}).encode()
    assert load(place, tag="main").version == 1
    assert load(place, tag="v.2").branch == "dev"


def test_versions_are_listed_without_being_read(place):
    for version in (3, 1, 2):
        place.write(version)
    snapshot = load(place)
    place.open().calls.clear()
    assert [info.version for info in list_versions(snapshot)] == [1, 2, 3]
    assert place.open().calls == ["list _versions"]


def test_versions_in_detail(place):
    transaction = transaction_pb2.Transaction(uuid="u")
    transaction.create_index.SetInParent()
    place.open().objects["_transactions/0-u.txn"] = transaction.SerializeToString()
    place.write(1, transaction_file="0-u.txn", writer_version={"library": "w", "version": "1"})
    place.write(2, transaction_file="gone.txn")
    first, second = list_versions(load(place), detail=True)
    assert first.timestamp == START + timedelta(hours=1)
    assert first.operation == "CreateIndex"
    assert first.writer is not None
    assert first.writer.library == "w"
    assert second.operation is None


def test_the_golden_history(history):
    snapshot = load(TableLocation(history))
    assert isinstance(snapshot, Snapshot)
    infos = list_versions(snapshot, detail=True)
    assert [info.version for info in infos] == [1, 2, 3, 4, 5, 6]
    times = [info.timestamp for info in infos if info.timestamp is not None]
    assert len(times) == len(infos)
    assert times == sorted(times)
    for info in infos:
        assert load(TableLocation(history), as_of=info.timestamp).version == info.version
