"""Read tags and branches, which name versions.

A tag is a file ``_refs/tags/{name}.json``, a branch a file ``_refs/branches/{name}.json`` with
``%2F`` for a slash, and a table of its own in ``tree/{name}``. Both files are kept at the root of
the main table.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from lancetable.commit.snapshot import shown
from lancetable.errors import (
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    RefNotFoundError,
)
from lancetable.format.manifest.names import MAX_VERSION
from lancetable.store import Store, TableLocation, spread

REFS = "_refs"
TAGS = f"{REFS}/tags"
BRANCHES = f"{REFS}/branches"
TREE = "tree"
MAIN = "main"

MOST_BYTES = 1024 * 1024
"""The largest file of a tag or a branch that is read."""
_SUFFIX = ".json"
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_Info = TypeVar("_Info")


class TagInfo(NamedTuple):
    """A name for one version; ``branch`` is ``None`` for the main history."""

    name: str
    version: int
    branch: str | None
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int | None
    metadata: Mapping[str, str]


class BranchInfo(NamedTuple):
    """A separate history that starts from a version of its parent."""

    name: str
    parent_branch: str | None
    parent_version: int
    created_at: datetime | None
    manifest_size: int | None
    metadata: Mapping[str, str]
    identifier: tuple[tuple[int, str], ...] = ()
    """The versions at which it and its parents start, each with a random id; empty in old files."""


def tags(location: TableLocation) -> dict[str, TagInfo]:
    """Return all tags of a table by name.

    Raises:
        CorruptError: the file of a tag is damaged.
    """
    return _all(location.open(), TAGS, is_tag_name, read_tag)


def branches(location: TableLocation) -> dict[str, BranchInfo]:
    """Return all branches of a table but the main one, by name.

    Raises:
        CorruptError: the file of a branch is damaged.
    """
    return _all(location.open(), BRANCHES, is_branch_name, read_branch)


def _all(
    store: Store, folder: str, is_name: Callable[[str], bool], read: Callable[[Store, str], _Info]
) -> dict[str, _Info]:
    names = []
    for entry in store.list(folder):
        stem = entry.path.removeprefix(f"{folder}/").removesuffix(_SUFFIX)
        name = stem.replace("%2F", "/").replace("%2f", "/")
        if entry.path.endswith(_SUFFIX) and "/" not in stem and is_name(name):
            names.append(name)
    names.sort()
    infos = spread(lambda name: read(store, name), names, store.width)
    return dict(zip(names, infos, strict=True))


def read_tag(store: Store, name: str) -> TagInfo:
    """Return one tag.

    Raises:
        InputError: the name is not a valid tag name.
        RefNotFoundError: there is no such tag.
        CorruptError: its file is damaged.
    """
    record = _Record.read(store, tag_path(name))
    if record is None:
        raise _missing("tag", name, _names(store, TAGS, is_tag_name))
    return TagInfo(
        name,
        record.version("version"),
        record.branch("branch"),
        record.time("createdAt"),
        record.time("updatedAt"),
        record.size("manifestSize"),
        record.texts("metadata"),
    )


def read_branch(store: Store, name: str) -> BranchInfo:
    """Return one branch.

    Raises:
        InputError: the name is not a valid branch name.
        RefNotFoundError: there is no such branch.
        CorruptError: its file is damaged.
    """
    record = _Record.read(store, branch_path(name))
    if record is None:
        raise missing_branch(store, name)
    return BranchInfo(
        name,
        record.branch("parentBranch"),
        record.version("parentVersion"),
        record.time("createAt"),
        record.size("manifestSize"),
        record.texts("metadata"),
        record.chain("identifier"),
    )


def tag_path(name: str) -> str:
    """Return the path of the file of a tag.

    Raises:
        InputError: the name is not a valid tag name.
    """
    if not is_tag_name(name):
        raise InputError(f"{name!r} is not a valid tag name: use letters, digits, '.', '-' and '_'")
    return f"{TAGS}/{name}{_SUFFIX}"


def branch_path(name: str) -> str:
    """Return the path of the file of a branch.

    Raises:
        InputError: the name is not a valid branch name.
    """
    check_branch_name(name)
    return f"{BRANCHES}/{name.replace('/', '%2F')}{_SUFFIX}"


def branch_folder(name: str) -> str:
    """Return the folder of a branch below the main table.

    Raises:
        InputError: the name is not a valid branch name.
    """
    check_branch_name(name)
    return f"{TREE}/{name}"


def check_branch_name(name: str) -> None:
    """Check the name of a branch.

    Raises:
        InputError: the name is not a valid branch name.
    """
    if not is_branch_name(name):
        raise InputError(
            f"{name!r} is not a valid branch name: use letters, digits, '.', '-' and '_', and "
            "single slashes between parts"
        )


def missing_branch(store: Store, name: str) -> RefNotFoundError:
    """Return the error for a missing branch, which lists the existing ones."""
    return _missing("branch", name, [MAIN, *_names(store, BRANCHES, is_branch_name)])


def _missing(kind: str, name: str, known: list[str]) -> RefNotFoundError:
    shown_names = ", ".join(repr(other) for other in known[:20]) or "none"
    return RefNotFoundError(f"there is no {kind} {name!r}; existing: {shown_names}")


def _names(store: Store, folder: str, is_name: Callable[[str], bool]) -> list[str]:
    stems = (entry.path.rpartition("/")[2].removesuffix(_SUFFIX) for entry in store.list(folder))
    return sorted(name for stem in stems if is_name(name := stem.replace("%2F", "/")))


def is_tag_name(name: str) -> bool:
    """Say whether a name is a valid tag name."""
    return _is_word(name) and name[0] != "." and name[-1] != "."


def is_branch_name(name: str) -> bool:
    """Say whether a name is a valid branch name."""
    return name != MAIN and all(_is_word(part) and part != "." for part in name.split("/"))


def _is_word(part: str) -> bool:
    return bool(_WORD.fullmatch(part)) and ".." not in part and not part.endswith(".lock")


class _Record:
    """The JSON object of a tag or branch file, with checked fields."""

    def __init__(self, path: str, content: Mapping[str, object]) -> None:
        self._path = path
        self._content = content

    @classmethod
    def read(cls, store: Store, path: str) -> "_Record | None":
        """Return the object in a file, ``None`` when there is no file."""
        import json  # noqa: PLC0415 - not needed to open a version

        try:
            content = json.loads(store.read(path, most=MOST_BYTES))
        except FileNotFoundInStoreError:
            return None
        except (ValueError, RecursionError) as cause:
            raise CorruptError(f"not a JSON object: {cause}", path=shown(store, path)) from None
        if not isinstance(content, dict):
            raise CorruptError("not a JSON object", path=shown(store, path))
        return cls(shown(store, path), content)

    def _wrong(self, key: str, expected: str) -> CorruptError:
        found = repr(self._content.get(key))[:80]
        return CorruptError(f"{key!r} must be {expected}, found {found}", path=self._path)

    def version(self, key: str) -> int:
        """Return a version number."""
        value = self._content.get(key)
        if type(value) is not int or not 0 <= value <= MAX_VERSION:
            raise self._wrong(key, "a version number")
        return value

    def branch(self, key: str) -> str | None:
        """Return the name of a branch, ``None`` for the main one."""
        value = self._content.get(key)
        if value is None or value == MAIN:
            return None
        if not isinstance(value, str) or not is_branch_name(value):
            raise self._wrong(key, "the name of a branch")
        return value

    def size(self, key: str) -> int | None:
        """Return a number of bytes."""
        value = self._content.get(key)
        return value if type(value) is int and value > 0 else None

    def time(self, key: str) -> datetime | None:
        """Return a time, written as text or as seconds since 1970."""
        value = self._content.get(key)
        try:
            if isinstance(value, str):
                time = datetime.fromisoformat(value)
                return time if time.tzinfo else time.replace(tzinfo=UTC)
            if type(value) is int:
                return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            raise self._wrong(key, "a time") from None
        return None

    def texts(self, key: str) -> Mapping[str, str]:
        """Return a mapping of texts."""
        value = self._content.get(key)
        if not isinstance(value, dict):
            return {}
        return {str(name): str(text) for name, text in value.items()}

    def chain(self, key: str) -> tuple[tuple[int, str], ...]:
        """Return the pairs of a version and a random id that identify a branch."""
        value = self._content.get(key)
        pairs = value.get("version_mapping") if isinstance(value, dict) else None
        if not isinstance(pairs, list):
            return ()
        try:
            return tuple((int(version), str(name)) for version, name in pairs)
        except (TypeError, ValueError):
            raise self._wrong(key, "a list of versions and names") from None
