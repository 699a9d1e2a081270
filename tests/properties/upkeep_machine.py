"""Random changes with tags, branches and cleanups in between."""

from datetime import timedelta
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import lancetable as lt
from tests.crash.aftermath import files_below, referenced
from tests.properties.table_machine import TableMachine, _ordered

NOW = timedelta(0)
KNOWN = ("_versions/", "_transactions/", "data/", "_deletions/", "_indices/", "_leases/")


def needed_below(table: lt.Table, folder: Path) -> set[str]:
    """Return the files that a version has in the table's own folder, or in another over bases."""
    bases = {base.id: Path(base.path) for base in table._snapshot.manifest.base_paths}
    own = Path(table._snapshot.store.root)
    found = set()
    for fragment in table.fragments:
        for file in fragment.files:
            root = own if file.base_id is None else bases[file.base_id]
            found.add(root / "data" / file.path)
    found.update(own / path for path in referenced(table) if not path.startswith(("data/", "_del")))
    for fragment in table.fragments:
        gone = fragment.deletion_file
        if gone is not None:
            root = own if gone.base_id is None else bases[gone.base_id]
            name = f"{fragment.id}-{gone.read_version}-{gone.id}.{gone.kind.value}"
            found.add(root / "_deletions" / name)
    for segment in table._snapshot.indices():
        root = own if segment.base_id is None else bases[segment.base_id]
        found.update(one for one in (root / "_indices" / segment.uuid).rglob("*") if one.is_file())
    return {str(path.relative_to(folder)) for path in found if folder in path.parents}


class UpkeepMachine(TableMachine):
    """A table that is tagged, branched off and cleaned up at random."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.branches: dict[str, list[str]] = {}
        self.starts: dict[str, int] = {}

    @rule(data=st.data(), name=st.sampled_from(["red", "blue"]))
    def tag(self, data: st.DataObject, name: str) -> None:
        """Name a version, or take the name away."""
        tags = lt.open_table(self.uri).tags
        if name in self.tags:
            tags.delete(name)
            del self.tags[name]
        else:
            version = data.draw(st.sampled_from(sorted(self.history)))
            tags.create(name, version)
            self.tags[name] = version

    @precondition(lambda self: len(self.branches) < 2)
    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        """Branch off some version, and delete a row there."""
        name = ["dev", "dev/data"][len(self.branches)]
        version = data.draw(st.sampled_from(sorted(self.history)))
        lt.open_table(self.uri, version=version).branches.create(name)
        branch = lt.open_table(self.uri, branch=name)
        if "x" in branch.schema.names:
            branch.delete("x % 2 = 0")
        self.starts[name] = version
        self.branches[name] = _ordered(branch.scan().to_arrow().to_pylist())

    @rule(keep=st.sampled_from([1, 1, 3]), everything=st.booleans())
    def clean_up(self, keep: int, everything: bool) -> None:
        """Remove versions; those that stay are the same as before, and nothing else is left."""
        table = lt.open_table(self.uri)
        before = [info.version for info in table.versions(detail=False)]
        tried = table.maintenance.cleanup(
            older_than=NOW, keep_last=keep, unverified_after=NOW, dry_run=True
        )
        done = table.maintenance.cleanup(
            older_than=NOW, keep_last=keep, unverified_after=NOW, all_branches=everything
        )
        if not everything:
            assert done.removed == tried.removed
        gone = {one.version for one in done.removed_versions if one.branch is None}
        kept = {*before[-keep:], *self.tags.values(), *self.starts.values()}
        assert gone == set(before) - kept
        assert {info.version for info in table.versions(detail=False)} == kept
        for version in gone:
            self.history.pop(version, None)
        self.check_kept()

    def check_kept(self) -> None:
        """Read every version that is left, and compare the files with what they need."""
        folder = Path(self.uri)
        needed = set()
        for info in lt.open_table(self.uri).versions(detail=False):
            table = lt.open_table(self.uri, version=info.version)
            found = table.scan().to_arrow().to_pylist()
            # A compaction makes two versions, of which the model knows the second.
            state = self.history.get(info.version)
            if state is not None:
                assert _ordered(found) == _ordered([row.values for row in state.rows])
            needed |= needed_below(table, folder)
        for name, rows in self.branches.items():
            branch = lt.open_table(self.uri, branch=name)
            assert _ordered(branch.scan().to_arrow().to_pylist()) == rows
            for info in branch.versions(detail=False):
                needed |= needed_below(branch.checkout(info.version), folder)
        have = {path for path in files_below(folder) if path.startswith(KNOWN)}
        assert have == {path for path in needed if path.startswith(KNOWN)}
