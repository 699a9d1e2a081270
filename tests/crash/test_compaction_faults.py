"""The store fails at each call of a compaction that takes care of index segments.

Afterwards the table has its rows, every file that a version names is there, and a proven failure
leaves no data, deletion or index file behind.
"""

import shutil
from pathlib import Path

import pytest

import lancetable as lt
from lancetable.commit.reuse import load_reuse
from lancetable.commit.versions import load
from lancetable.format.manifest.reuse import codec
from lancetable.store.memory import MemoryStore
from tests.conftest import GOLDEN
from tests.crash.aftermath import check_whole, paths, state
from tests.crash.test_store_faults import ArmedStore, Place
from tests.stores import Moment

USUAL = lt.CommitOptions(attempts=3)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The objects of a table with a btree index and a record of moved rows."""
    folder = tmp_path_factory.mktemp("faults") / "t"
    shutil.copytree(GOLDEN / "table" / "defer_remap.lance", folder)
    table = lt.open_table(folder)
    table.append(table.scan().to_arrow().slice(0, 5))
    table.append(table.scan().to_arrow().slice(0, 5))
    table.delete("id = 7")
    return {_name(one, folder): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def index_files(table: lt.Table) -> set[str]:
    """Return the files that the index segments of a version name."""
    found = set()
    for segment in table._snapshot.indices():
        found |= {f"_indices/{segment.uuid}/{file.path}" for file in segment.files}
        if segment.details.find(codec.EXTERNAL_NAME.encode()) >= 0:
            found.add(f"_indices/{segment.uuid}/{codec.EXTERNAL_NAME}")
    return found


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize(
    ("indices", "is_external"), [("reuse", False), ("reuse", True), ("remap", False)]
)
def test_one_call_fails(
    base: dict[str, bytes],
    indices: str,
    is_external: bool,
    moment: Moment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_external:
        monkeypatch.setattr(codec.encode_reuse, "__defaults__", (10,))
    for fail_at in range(400):
        inner = MemoryStore(base)
        before = paths(inner)
        old = lt.Table(Place("memory:", store=inner), load(Place("memory:", store=inner)))
        expected, moved = state(old), len(old.fragments)
        store = ArmedStore(inner, moment)
        place = Place("memory:", store=store)
        handle = lt.Table(place, load(place))
        store.arm(fail_at)
        problem: Exception | None = None
        try:
            handle.compact(indices=indices, deleted_share=0.0, commit=USUAL)  # type: ignore[arg-type]
        except lt.LanceTableError as error:
            problem = error
        what = f"call {fail_at} ({store.failed}), {problem!r}"
        after = check_whole(Place("memory:", store=inner))
        assert state(after) == expected, what
        assert index_files(after) <= paths(inner), what
        load_reuse(after._snapshot, after._snapshot.indices())
        if not store.has_failed:
            assert problem is None
            assert len(after.fragments) < moved
            assert fail_at > 10
            return
        if problem is None:
            assert len(after.fragments) < moved, what
        elif not isinstance(problem, lt.UnknownOutcomeError) and store.failed != ["delete"]:
            # Ids that were reserved for nothing do no harm.
            left = {path for path in paths(inner) - before if not path.startswith(("_v", "_t"))}
            assert not left, f"{what}: {left}"
    raise AssertionError("the compaction never went through")
