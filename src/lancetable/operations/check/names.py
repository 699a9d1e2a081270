"""Check the names of a table: version hint, tags and branches."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lancetable.commit import refs
from lancetable.commit.branch.branching import Leftover, leftovers
from lancetable.commit.snapshot import shown
from lancetable.commit.versions import read_hint
from lancetable.errors import CorruptError, LanceTableError
from lancetable.format.manifest.names import HINT
from lancetable.operations.check.model import DAMAGE, Problem
from lancetable.operations.cleanup.retention import Line, Numbered
from lancetable.store import Store, TableLocation

_JSON = ".json"


def hint_problems(line: Line, found: Sequence[Numbered]) -> Iterator[Problem]:
    """Yield what is wrong with the hint of a line."""
    path = shown(line.store, HINT)
    if not line.store.exists(HINT):
        return
    hinted = read_hint(line.store)
    latest = max((one.info.version for one in found if not one.is_detached), default=0)
    if hinted is None:
        consequence = "opening the table takes a listing until the next commit"
        yield Problem("hint", path, "it names no version", consequence, line.branch)
    elif hinted > latest:
        yield Problem(
            "manifest",
            path,
            f"the hint names version {hinted}, but the newest manifest is that of {latest}",
            f"what the versions after {latest} changed is not visible any more",
            line.branch,
            tuple(range(latest + 1, hinted + 1)) if hinted - latest < 1000 else (hinted,),
        )


def tag_problems(location: TableLocation, lines: Sequence[Line]) -> Iterator[Problem]:
    """Yield tags that cannot be read or lead nowhere."""
    store = location.open()
    stores = {line.branch: line.store for line in lines}
    for path, name in _names(store, refs.TAGS):
        place = shown(store, path)
        try:
            tag = refs.read_tag(store, name)
        except LanceTableError as error:
            consequence = f"tag {name!r} cannot be used"
            is_damage = isinstance(error, DAMAGE)
            yield Problem("tag", place, str(error), consequence, is_damage=is_damage)
            continue
        held = stores.get(tag.branch)
        if held is None:
            message = f"it names branch {tag.branch!r}, which is not there"
        elif not _has_version(held, tag.version):
            message = f"it names version {tag.version}, which is not there"
        else:
            continue
        yield Problem("tag", place, message, f"tag {name!r} leads nowhere", tag.branch)


def readable_lines(location: TableLocation) -> tuple[list[Line], list[Problem]]:
    """Return the histories of a table, and what is wrong with the files that name them."""
    store = location.open()
    lines, problems = [Line(None, store)], []
    for path, name in _names(store, refs.BRANCHES):
        try:
            refs.read_branch(store, name)
        except LanceTableError as error:
            consequence = f"branch {name!r} is not listed, and its beginning is not known"
            problem = Problem("branch", shown(store, path), str(error), consequence, name)
            problems.append(replace(problem, is_damage=isinstance(error, DAMAGE)))
            if not refs.is_branch_name(name):
                continue
        lines.append(Line(name, location.child(refs.branch_folder(name)).open()))
    left = _leftovers(location)
    problems.extend(_interrupted(store, leftover) for leftover in left)
    known = {*(line.branch for line in lines), *(leftover.name for leftover in left)}
    for name in _folders(store):
        if name not in known:
            problems.append(
                Problem(
                    "branch",
                    shown(store, refs.branch_path(name)),
                    "the file is missing",
                    f"the versions in {refs.TREE}/{name} belong to no branch that is listed",
                    name,
                )
            )
            lines.append(Line(name, location.child(refs.branch_folder(name)).open()))
    return lines, problems


def _interrupted(store: Store, leftover: Leftover) -> Problem:
    what = "deletion" if leftover.is_deleted else "creation"
    return Problem(
        "branch",
        shown(store, refs.branch_path(leftover.name)),
        f"the file is missing, as the {what} of the branch was interrupted",
        f"no row is lost; a cleanup removes {refs.branch_folder(leftover.name)}",
        leftover.name,
        is_damage=False,
    )


def _leftovers(location: TableLocation) -> list[Leftover]:
    try:
        return leftovers(location)
    except CorruptError:
        return []  # The damaged file of a branch is reported separately.


def _folders(store: Store) -> list[str]:
    """Return the branches whose folders hold versions."""
    found = set()
    for entry in store.list(refs.TREE):
        name, mark, _ = entry.path.removeprefix(f"{refs.TREE}/").partition("/_versions/")
        if mark and refs.is_branch_name(name):
            found.add(name)
    return sorted(found)


def _names(store: Store, folder: str) -> list[tuple[str, str]]:
    found = []
    for entry in store.list(folder):
        stem = entry.path.removeprefix(f"{folder}/")
        if stem.endswith(_JSON) and "/" not in stem:
            name = stem.removesuffix(_JSON).replace("%2F", "/").replace("%2f", "/")
            found.append((entry.path, name))
    return sorted(found)


def _has_version(store: Store, version: int) -> bool:
    from lancetable.operations.cleanup.retention import manifests_of  # noqa: PLC0415

    try:
        return any(one.info.version == version for one in manifests_of(store))
    except LanceTableError:
        return True
