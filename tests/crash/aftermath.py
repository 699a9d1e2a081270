"""What must hold of a table whatever happened to its last writer."""

from pathlib import Path
from typing import Any

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.store import Store, TableLocation


def state(table: lt.Table) -> tuple[Any, ...]:
    """Return all that a version holds, without the order of rows."""
    rows = table.scan().to_arrow().to_pylist()
    fields = [(one.name, str(one.type), one.nullable, one.metadata) for one in table.schema]
    indices = [
        (one.name, one.rows_covered, len(one.segments))
        for one in table.indices.list()
        if not one.name.startswith("__lance_")
    ]
    return fields, sorted(map(repr, rows)), dict(table.config), dict(table.metadata), indices


def referenced(table: lt.Table) -> set[str]:
    """Return the paths of all files that a version names."""
    manifest = table._snapshot.manifest
    found = {table._snapshot.manifest_path}
    if manifest.transaction_file:
        found.add(f"_transactions/{manifest.transaction_file}")
    for fragment in manifest.fragments:
        found.update(f"data/{file.path}" for file in fragment.files)
        if fragment.deletion_file is not None:
            gone = fragment.deletion_file
            suffix = "arrow" if gone.kind.name == "ARROW" else "bin"
            found.add(f"_deletions/{fragment.id}-{gone.read_version}-{gone.id}.{suffix}")
    for segment in table._snapshot.indices():
        found.update(f"_indices/{segment.uuid}/{file.path}" for file in segment.files)
    return found


def paths(store: Store) -> set[str]:
    """Return all files of a table but the hint, which may be late."""
    return {entry.path for entry in store.list("") if "hint" not in entry.path}


def check_whole(location: TableLocation, newest: int = 1000) -> lt.Table:
    """Check that the newest versions can be opened and that every file they name is there."""
    table = lt.Table(location, load(location))
    have = paths(location.open())
    for info in table.versions(detail=False)[-newest:]:
        old = lt.Table(location, load(location, version=info.version))
        missing = referenced(old) - have
        assert not missing, f"version {info.version} lacks {sorted(missing)}"
    assert table.scan().to_arrow().num_rows == table.count()
    for where in ("id = 12", "id > 4 and id < 7", "id is null") if table.indices.list() else ():
        plain = table.scan(where=where, use_indices=False).to_arrow()
        assert table.scan(where=where).to_arrow() == plain, where
    return table


def files_below(folder: Path) -> set[str]:
    """Return all files of a folder but the hint."""
    return {
        str(one.relative_to(folder))
        for one in folder.rglob("*")
        if one.is_file() and "hint" not in one.name
    }
