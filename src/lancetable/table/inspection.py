"""Describe one version of a table as Arrow tables, for queries on its metadata."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lancetable.commit import refs
from lancetable.commit.history.history import read_history
from lancetable.commit.versions import list_versions
from lancetable.format.manifest.indices.kinds import message_name
from lancetable.format.manifest.names import data_path, deletion_path

if TYPE_CHECKING:
    from lancetable.commit.snapshot import Snapshot
    from lancetable.format.manifest import DeletionFile, Fragment
    from lancetable.operations.index.describe import SegmentInfo

_TIME = pa.timestamp("us", "UTC")
_NOTES = pa.map_(pa.string(), pa.string())
_VERSIONS = {
    "version": pa.uint64(),
    "timestamp": _TIME,
    "operation": pa.string(),
    "writer": pa.string(),
    "tags": pa.list_(pa.string()),
    "path": pa.string(),
    "bytes": pa.int64(),
}
_MANIFEST = {
    "version": pa.uint64(),
    "timestamp": _TIME,
    "writer": pa.string(),
    "tag": pa.string(),
    "reader_flags": pa.uint64(),
    "writer_flags": pa.uint64(),
    "data_format": pa.string(),
    "max_fragment_id": pa.int64(),
    "next_row_id": pa.uint64(),
    "path": pa.string(),
    "auxiliary": pa.map_(pa.string(), pa.binary()),
}
_FRAGMENTS = {
    "fragment": pa.int64(),
    "rows": pa.int64(),
    "physical_rows": pa.int64(),
    "deleted_rows": pa.int64(),
    "files": pa.int64(),
    "bytes": pa.int64(),
}
_FILES = {
    "fragment": pa.int64(),
    "kind": pa.string(),
    "path": pa.string(),
    "base": pa.string(),
    "version": pa.string(),
    "fields": pa.list_(pa.int32()),
    "bytes": pa.int64(),
}
_DELETIONS = {
    "fragment": pa.int64(),
    "path": pa.string(),
    "base": pa.string(),
    "kind": pa.string(),
    "read_version": pa.uint64(),
    "deleted_rows": pa.int64(),
}
_INDICES = {
    "name": pa.string(),
    "uuid": pa.string(),
    "columns": pa.list_(pa.string()),
    "kind": pa.string(),
    "type": pa.string(),
    "index_version": pa.int32(),
    "version": pa.uint64(),
    "fragments": pa.list_(pa.int64()),
    "fragments_covered": pa.list_(pa.int64()),
    "rows_covered": pa.int64(),
    "files": pa.int64(),
    "bytes": pa.int64(),
    "base": pa.string(),
    "created_at": _TIME,
    "unusable": pa.string(),
}
_REFS = {
    "kind": pa.string(),
    "name": pa.string(),
    "branch": pa.string(),
    "version": pa.uint64(),
    "created_at": _TIME,
    "updated_at": _TIME,
    "metadata": _NOTES,
}
_TRANSACTIONS = ("version", "read_version", "uuid", "operation", "message", "properties")

Row = Mapping[str, object]


def _table(rows: Iterable[Row], types: Mapping[str, pa.DataType]) -> pa.Table:
    schema = pa.schema(list(types.items()))
    return pa.Table.from_pylist([dict(row) for row in rows], schema)


class Inspection:
    """The parts of a version, and the names and versions around it."""

    __slots__ = ("_snapshot",)

    def __init__(self, snapshot: "Snapshot") -> None:
        self._snapshot = snapshot

    def versions(self) -> pa.Table:
        """Return the versions of the branch, oldest first."""
        snapshot = self._snapshot
        tags: dict[int, list[str]] = {}
        for tag in refs.tags(snapshot.location).values():
            if tag.branch == snapshot.branch:
                tags.setdefault(tag.version, []).append(tag.name)
        rows = [
            {
                "version": info.version,
                "timestamp": info.timestamp,
                "operation": info.operation,
                "writer": info.writer and info.writer.text,
                "tags": tags.get(info.version, []),
                "path": info.path,
                "bytes": info.size,
            }
            for info in list_versions(snapshot, detail=True)
        ]
        return _table(rows, _VERSIONS)

    def manifest(self) -> pa.Table:
        """Return what the manifest says about the version as a whole, in one row.

        ``tag`` and ``auxiliary`` are what the writer put into the manifest itself; the names that
        versions get later are among the ``refs``.
        """
        snapshot = self._snapshot
        manifest = snapshot.manifest
        row = {
            "version": manifest.version,
            "timestamp": manifest.timestamp,
            "writer": manifest.writer and manifest.writer.text,
            "tag": manifest.tag or None,
            "reader_flags": manifest.reader_flags,
            "writer_flags": manifest.writer_flags,
            "data_format": manifest.data_format or None,
            "max_fragment_id": manifest.max_fragment_id,
            "next_row_id": manifest.next_row_id,
            "path": snapshot.manifest_path,
            "auxiliary": list(snapshot.auxiliary_data().items()),
        }
        return _table([row], _MANIFEST)

    def fragments(self) -> pa.Table:
        """Return the fragments in the order their rows are read."""
        return _table(map(_fragment, self._snapshot.manifest.fragments), _FRAGMENTS)

    def files(self) -> pa.Table:
        """Return the data files and deletion files."""
        rows: list[Row] = []
        for fragment in self._snapshot.manifest.fragments:
            rows.extend(
                {
                    "fragment": fragment.id,
                    "kind": "data",
                    "path": data_path(file.path),
                    "base": self._base(file.base_id),
                    "version": file.version_text,
                    "fields": list(file.fields),
                    "bytes": file.size,
                }
                for file in fragment.files
            )
            if fragment.deletion_file is not None:
                row = self._deletion(fragment, fragment.deletion_file)
                rows.append({name: row.get(name) for name in _FILES} | {"kind": "deletion"})
        return _table(rows, _FILES)

    def deletions(self) -> pa.Table:
        """Return the deletion files."""
        rows = [
            self._deletion(fragment, fragment.deletion_file)
            for fragment in self._snapshot.manifest.fragments
            if fragment.deletion_file is not None
        ]
        return _table(rows, _DELETIONS)

    def indices(self) -> pa.Table:
        """Return the segments of the indices, with what each covers of this version."""
        from lancetable.operations.index.describe import describe_segments

        return _table(map(self._segment, describe_segments(self._snapshot)), _INDICES)

    def refs(self) -> pa.Table:
        """Return tags and branches; the version of a branch is the one it began with."""
        location = self._snapshot.location
        rows: list[Row] = [
            {
                "kind": "tag",
                "name": tag.name,
                "branch": tag.branch,
                "version": tag.version,
                "created_at": tag.created_at,
                "updated_at": tag.updated_at,
                "metadata": list(tag.metadata.items()),
            }
            for tag in refs.tags(location).values()
        ]
        rows += [
            {
                "kind": "branch",
                "name": branch.name,
                "branch": branch.parent_branch,
                "version": branch.parent_version,
                "created_at": branch.created_at,
                "metadata": list(branch.metadata.items()),
            }
            for branch in refs.branches(location).values()
        ]
        return _table(rows, _REFS)

    def transactions(self) -> pa.Table:
        """Return the transactions of the versions up to this one, newest first."""
        return read_history(self._snapshot).to_arrow().select(_TRANSACTIONS)

    def _segment(self, found: "SegmentInfo") -> Row:
        segment = found.segment
        named = segment.fragment_ids
        return {
            "name": segment.name,
            "uuid": segment.uuid,
            "columns": found.columns,
            "kind": found.kind,
            "type": message_name(segment) or None,
            "index_version": segment.index_version,
            "version": segment.dataset_version,
            "fragments": None if named is None else sorted(named),
            "fragments_covered": sorted(found.covered),
            "rows_covered": found.rows_covered,
            "files": len(segment.files),
            "bytes": sum(file.size for file in segment.files),
            "base": self._base(segment.base_id),
            "created_at": segment.created_at,
            "unusable": found.unusable,
        }

    def _base(self, base_id: int | None) -> str | None:
        base = None if base_id is None else self._snapshot.manifest.base_path(base_id)
        return base and base.path

    def _deletion(self, fragment: "Fragment", file: "DeletionFile") -> dict[str, object]:
        return {
            "fragment": fragment.id,
            "path": deletion_path(fragment.id, file),
            "base": self._base(file.base_id),
            "kind": file.kind.value,
            "read_version": file.read_version,
            "deleted_rows": file.deleted_rows,
        }


def _fragment(fragment: "Fragment") -> Row:
    deleted = fragment.deletion_file.deleted_rows if fragment.deletion_file else 0
    return {
        "fragment": fragment.id,
        "rows": fragment.physical_rows - deleted,
        "physical_rows": fragment.physical_rows,
        "deleted_rows": deleted,
        "files": len(fragment.files),
        "bytes": sum(file.size or 0 for file in fragment.files),
    }
