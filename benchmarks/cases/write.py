"""How fast are tables written and changed?

Every repeat works on a copy of its own: data files are linked, manifests too, only the hint is
copied, as it is the one file that is ever written again.
"""

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from subprocess import Popen

import pyarrow as pa

from benchmarks.cases.base import Case, Subject, Unit
from benchmarks.child import finish_child, start_child

WRITTEN_ROWS = 2_000_000
WRITTEN_VECTORS = 100_000
UPSERTED = 100_000
WRITERS = 4
APPENDS = 50

# Every writer has everything loaded, and one row written, before the clock starts.
_WRITER = """
import sys
import pyarrow as pa
from benchmarks.peers.base import load_peer
peer, uri, appends = sys.argv[1:]
table = load_peer(peer).open(uri)
for number in range(int(appends) + 1):
    table.append(pa.table({"id": pa.array([number], pa.int64()), "val": [0.5]}))
    if number == 0:
        print("ready", flush=True)
        sys.stdin.readline()
print("done", flush=True)
"""
_CREWS: dict[str, list[Popen[str]]] = {}


def _link(source: str, target: str) -> None:
    if source.endswith(".json"):
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def copied(subject: Subject) -> Subject:
    """Return the subject on a copy of its table, open."""
    # Beside the original, as links do not reach other disks.
    folder = tempfile.mkdtemp(prefix="copy-", dir=Path(subject.uri).parent)
    uri = f"{folder}/table"
    shutil.copytree(subject.uri, uri, copy_function=_link)
    return subject._replace(uri=uri, table=subject.peer.open(uri))


def empty(subject: Subject) -> Subject:
    """Return the subject with a place for a new table; its data is loaded before the clock."""
    _data(subject.uri)
    return subject._replace(uri=f"{vacant(subject).uri}?{subject.uri}")


def vacant(subject: Subject) -> Subject:
    """Return the subject with a place for a new table."""
    folder = tempfile.mkdtemp(prefix="copy-", dir=Path(subject.uri).parent)
    return subject._replace(uri=f"{folder}/table")


def removed(subject: Subject) -> None:
    """Remove the copy."""
    shutil.rmtree(Path(subject.uri.partition("?")[0]).parent)


@cache
def _data(uri: str) -> pa.Table:
    """Return the rows that are written, read once by the reference implementation."""
    import lance

    rows = WRITTEN_VECTORS if "vectors" in Path(uri).name else WRITTEN_ROWS
    return lance.dataset(uri).to_table(limit=rows)


def create(subject: Subject) -> int:
    """Write a new table from memory."""
    uri, _, source = subject.uri.partition("?")
    subject.peer.create(uri, _data(source))
    return subject.peer.open(uri).count()


def size(subject: Subject) -> int:
    """Return the bytes of the data files of a new table, or of all files where it has no folder."""
    uri, _, source = subject.uri.partition("?")
    subject.peer.create(uri, _data(source))
    folder = Path(uri, "data") if Path(uri, "data").exists() else Path(uri).parent
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def append_tiny(subject: Subject) -> int:
    """Append one row."""
    subject.table.append(pa.table({"id": pa.array([7], pa.int64()), "val": [0.5]}))
    return 1


def with_writers(subject: Subject) -> Subject:
    """Return the subject on a copy, with several processes that wait for a sign to append to it."""
    subject = copied(subject)
    crew = [
        start_child(_WRITER, subject.peer.name, subject.uri, str(APPENDS)) for _ in range(WRITERS)
    ]
    _CREWS[subject.uri] = crew
    _heard(crew, "ready")
    return subject


def writers(subject: Subject) -> int:
    """Let several processes append to one table at the same time."""
    crew = _CREWS[subject.uri]
    for child in crew:
        if child.stdin is not None:
            child.stdin.write("go\n")
            child.stdin.flush()
    _heard(crew, "done")
    return subject.peer.open(subject.uri).count()


def without_writers(subject: Subject) -> None:
    """Wait for the processes to end, and remove the copy."""
    for child in _CREWS.pop(subject.uri):
        finish_child(child)
    removed(subject)


def _heard(crew: list[Popen[str]], word: str) -> None:
    """Wait until all processes said a word."""
    for child in crew:
        if child.stdout is None or child.stdout.readline().strip() != word:
            finish_child(child)
            raise RuntimeError(f"a writer ended before it was {word}")


def delete(subject: Subject) -> int:
    """Delete one row in a hundred."""
    subject.table.delete("id % 100 = 7")
    return subject.peer.open(subject.uri).count()


def update(subject: Subject) -> int:
    """Update one row in a hundred."""
    subject.table.update({"val": "val * 2"}, "id % 100 = 7")
    return subject.peer.open(subject.uri).count()


def upsert(subject: Subject) -> int:
    """Merge rows of which every second one is there already."""
    subject.table.upsert(_upserted(), "id")
    return subject.peer.open(subject.uri).count()


@cache
def _upserted() -> pa.Table:
    import numpy as np

    from benchmarks.rows import SEED, columns

    rng = np.random.default_rng(SEED + 1)
    made = columns(rng, 0, UPSERTED)
    ids = rng.choice(9_000_000, UPSERTED, replace=False)
    made["id"] = pa.array(np.where(np.arange(UPSERTED) % 2, ids, ids + 1_000_000_000))
    return pa.table(made)


def add_column(subject: Subject) -> int:
    """Add a column computed from another."""
    subject.table.add_column("twice", "val * 2")
    return subject.peer.open(subject.uri).count()


def _case(name: str, title: str, table: str, run: object, target: float) -> Case:
    return Case(
        name, title, table, run, target, repeats=6, prepare=copied, settle=removed, is_change=True
    )  # type: ignore[arg-type]


CASES = (
    Case(
        "write_mixed",
        "write 2M rows, 5 columns",
        "rows",
        create,
        2,
        repeats=6,
        prepare=empty,
        settle=removed,
    ),
    Case(
        "write_vectors",
        "write 100k vectors",
        "vectors",
        create,
        2.5,
        repeats=6,
        prepare=empty,
        settle=removed,
    ),
    Case(
        "write_size",
        "size of 2M rows, 5 columns",
        "rows",
        size,
        0.98,
        unit=Unit.BYTES,
        repeats=1,
        prepare=empty,
        settle=removed,
    ),
    Case(
        "append_tiny",
        "append 1 row",
        "single",
        append_tiny,
        5,
        repeats=12,
        calls=11,
        prepare=copied,
        settle=removed,
        is_change=True,
    ),
    _case("append_versions", "append 1 row, many versions", "versions", append_tiny, 3),
    Case(
        "writers_4",
        "4 processes, 50 appends each",
        "single",
        writers,
        4,
        repeats=6,
        prepare=with_writers,
        settle=without_writers,
        is_change=True,
    ),
    _case("delete_percent", "delete 1 %", "rows", delete, 3),
    _case("update_percent", "update 1 %", "rows", update, 3),
    _case("upsert_100k", "upsert 100k rows", "rows", upsert, 3),
    _case("add_column", "add a computed column", "rows", add_column, 3),
)
