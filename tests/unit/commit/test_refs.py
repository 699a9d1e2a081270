"""Tags and branches from their files."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.commit.refs import (
    branches,
    is_branch_name,
    is_tag_name,
    read_branch,
    read_tag,
    tags,
)
from lancetable.errors import CorruptError, InputError, RefNotFoundError
from lancetable.store import TableLocation
from lancetable.store.memory import MemoryStore

TAG = {
    "branch": None,
    "version": 2,
    "createdAt": "2026-01-02T03:04:05.123456789Z",
    "updatedAt": "2026-01-02T03:04:06Z",
    "manifestSize": 99,
    "metadata": {"who": "me"},
}
BRANCH = {"parentBranch": "dev", "parentVersion": 3, "createAt": 1_700_000_000, "manifestSize": 5}


def store(**files):
    return MemoryStore({path: json.dumps(content).encode() for path, content in files.items()})


def test_a_tag():
    found = read_tag(store(**{"_refs/tags/v1.json": TAG}), "v1")
    assert (found.version, found.branch, found.manifest_size) == (2, None, 99)
    assert found.created_at == datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    assert found.metadata == {"who": "me"}


def test_a_tag_of_an_old_release():
    found = read_tag(store(**{"_refs/tags/v1.json": {"version": 2, "manifestSize": 9}}), "v1")
    assert (found.version, found.created_at, found.metadata) == (2, None, {})


def test_a_branch_with_a_slash():
    found = read_branch(store(**{"_refs/branches/a%2Fb.json": BRANCH}), "a/b")
    assert (found.parent_branch, found.parent_version) == ("dev", 3)
    assert found.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_tag_that_is_not_there():
    with pytest.raises(RefNotFoundError, match="'v2'; existing: 'v1'"):
        read_tag(store(**{"_refs/tags/v1.json": TAG}), "v2")


@pytest.mark.parametrize("name", ["", ".a", "a.", "a..b", "a/b", "x.lock", "a b", "../x", "ä"])
def test_names_no_tag_can_have(name):
    assert not is_tag_name(name)
    with pytest.raises(InputError, match="not a valid tag name"):
        read_tag(store(), name)


@pytest.mark.parametrize("name", ["main", "", "/", "a/", "/a", "a//b", "a/../b", "a\\b", "b.lock"])
def test_names_no_branch_can_have(name):
    assert not is_branch_name(name)


def test_names_that_can_be():
    assert is_tag_name("main")
    assert is_tag_name("v1.0-rc_2")
    assert is_branch_name("team/feature.1")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"nope", b"{}", b"\xff", b"[" * 100_000),
        *(b'{"version": "2"}', b'{"version": true}', b'{"version": -1}', b'{"version": 1e3}'),
        *(b'{"version": 2, "branch": "../x"}', b'{"version": 2, "branch": 7}'),
        *(b'{"version": 2, "createdAt": "soon"}', b'{"version": 99999999999999999999999}'),
    ],
)
def test_damaged_files_are_named(content):
    with pytest.raises(CorruptError, match=r"_refs/tags/t\.json"):
        read_tag(MemoryStore({"_refs/tags/t.json": content}), "t")


@given(st.binary(max_size=40))
def test_any_bytes_are_a_tag_or_damage(content):
    try:
        read_tag(MemoryStore({"_refs/tags/t.json": content}), "t")
    except CorruptError:
        return


def test_all_of_a_table(tmp_path, history):
    assert {name: tag.version for name, tag in tags(TableLocation(history)).items()} == {"t2": 2}
    assert branches(TableLocation(history)) == {}
    folder = tmp_path / "_refs/branches"
    folder.mkdir(parents=True)
    for name in ("b", "a%2Fb"):
        (folder / f"{name}.json").write_text(json.dumps(BRANCH))
    (folder / ".tmpabc").write_text("half")
    assert list(branches(TableLocation(str(tmp_path)))) == ["a/b", "b"]
