"""Commands that show, clone and restore a table."""

from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import (
    Columns,
    Json,
    Kernels,
    Limit,
    Message,
    Where,
    opens,
    split_columns,
)
from lancetable.cli.show import Yes, confirm

if TYPE_CHECKING:
    import pyarrow as pa

    from lancetable.format.manifest.model import DataFile, Fragment
    from lancetable.table import Table


@opens("version", "tag", "branch", "as_of")
def info(
    table: "Table",
    *,
    json: Json = False,
    _kernels: Kernels = False,
) -> None:
    """Rows, versions, fragments, size, indices and settings of a table."""
    row = _info(table)
    if json:
        show.as_json(row)
    else:
        row["bytes"] = show.size(table.size)
        title = str(row.pop("uri"))
        show.as_pairs(row, title=title)


@opens("version", "tag", "branch", "as_of")
def schema(
    table: "Table",
    *,
    json: Json = False,
) -> None:
    """The columns of a table with their types."""
    found = table.schema
    fields = [_field(field) for field in found]
    if json:
        show.as_json({"fields": fields, "metadata": _metadata(found.metadata)})
    else:
        show.as_table(fields, title=f"{len(fields)} columns")


@opens("version", "tag", "branch", "as_of")
def head(
    table: "Table",
    *,
    limit: Limit = 10,
    columns: Columns = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """The first rows of a table."""
    found = table.scan(columns=split_columns(columns), where=where, limit=limit).to_arrow()
    rows = found.to_pylist()
    if json:
        show.as_json(rows)
    else:
        numbers = [field.name for field in found.schema if _is_number(field.type)]
        show.as_table(rows, title=f"{len(rows)} rows", numbers=numbers)


@opens("branch")
def versions(table: "Table", *, json: Json = False) -> None:
    """The versions of a table, oldest first."""
    tags: dict[int, list[str]] = {}
    for name, tag in sorted(table.tags.items()):
        if tag.branch == table.branch:
            tags.setdefault(tag.version, []).append(name)
    rows: list[dict[str, object]] = [
        {
            "version": entry.version,
            "timestamp": entry.timestamp,
            "operation": entry.operation,
            "tags": tags.get(entry.version, []),
            "manifest": entry.path,
            "bytes": entry.size,
        }
        for entry in table.versions()
    ]
    if json:
        show.as_json(rows)
    else:
        show.as_table(rows, title=f"{len(rows)} versions", numbers=("version", "bytes"))


@opens("version", "tag", "branch", "as_of")
def fragments(
    table: "Table",
    *,
    json: Json = False,
) -> None:
    """The fragments of a table with their rows and files."""
    rows = [
        {
            "fragment": fragment.id,
            "rows": fragment.physical_rows - _deleted(fragment),
            "deleted": _deleted(fragment),
            "files": len(fragment.files),
            "bytes": sum(file.size or 0 for file in fragment.files),
        }
        for fragment in table.fragments
    ]
    if json:
        show.as_json(rows)
    else:
        show.as_table(rows, title=f"{len(rows)} fragments", numbers=list(rows[0]) if rows else ())


@opens("version", "tag", "branch", "as_of")
def files(
    table: "Table",
    *,
    json: Json = False,
) -> None:
    """The data and deletion files of a table."""
    from lancetable.format.manifest.names import deletion_path

    rows: list[dict[str, object]] = []
    for fragment in table.fragments:
        rows.extend(_data_file(fragment, file) for file in fragment.files)
        if fragment.deletion_file is not None:
            rows.append(
                {
                    "fragment": fragment.id,
                    "kind": "deletion",
                    "path": deletion_path(fragment.id, fragment.deletion_file),
                    "version": None,
                    "fields": [],
                    "bytes": None,
                    "base": fragment.deletion_file.base_id,
                }
            )
    if json:
        show.as_json(rows)
    else:
        numbers = ("fragment", "bytes")
        show.as_table(rows, title=f"{len(rows)} files", numbers=numbers, whole=("path",))


def _info(table: "Table") -> dict[str, object]:
    fragments = table.fragments
    files = [file for fragment in fragments for file in fragment.files]
    return {
        "uri": table.uri,
        "version": table.version,
        "branch": table.branch,
        "timestamp": table.timestamp,
        "rows": table.count(),
        "deleted": sum(_deleted(fragment) for fragment in fragments),
        "columns": len(table.schema),
        "fragments": len(fragments),
        "files": len(files),
        "bytes": table.size,
        "file_versions": sorted({_version(file) for file in files}),
        "tags": {name: tag.version for name, tag in table.tags.items()},
        "branches": sorted(table.branches),
        "indices": [one.summary for one in table.indices.list() if not one.is_system],
        "metadata": dict(table.metadata),
        "config": dict(table.config),
    }


def _data_file(fragment: "Fragment", file: "DataFile") -> dict[str, object]:
    return {
        "fragment": fragment.id,
        "kind": "data",
        "path": f"data/{file.path}",
        "version": _version(file),
        "fields": file.fields,
        "bytes": file.size,
        "base": file.base_id,
    }


def _field(field: "pa.Field") -> dict[str, object]:
    return {
        "name": field.name,
        "type": str(field.type),
        "nullable": field.nullable,
        "metadata": _metadata(field.metadata),
    }


def _metadata(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (metadata or {}).items()
    }


def _deleted(fragment: "Fragment") -> int:
    return fragment.deletion_file.deleted_rows if fragment.deletion_file else 0


def _version(file: "DataFile") -> str:
    return file.version_text


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


File = Annotated[str, typer.Argument(metavar="FILE", help="Path of a data file.")]


def pages(path: File, *, json: Json = False) -> None:
    """The pages of a data file and how each is encoded."""
    from lancetable.file import open_file

    file = open_file(path)
    rows = [page._asdict() for page in file.pages()]
    if json:
        show.as_json({"path": path, "version": file.version, "rows": file.rows, "pages": rows})
        return
    title = f"{path}: version {file.version}, {file.rows} rows, {len(rows)} pages"
    show.as_table(rows, title=title, numbers=("column", "page", "rows"))


Target = Annotated[str, typer.Argument(metavar="TARGET", help="Where the clone will be.")]
Deep = Annotated[bool, typer.Option("--deep", help="Copy all files instead of referring to them.")]
Wanted = Annotated[int, typer.Argument(metavar="VERSION", help="The version to go back to.")]


@opens("version", "tag", "branch", "as_of")
def clone(
    table: "Table",
    target: Target,
    *,
    deep: Deep = False,
    json: Json = False,
) -> None:
    """Create a table that starts with a version of another."""
    made = table.clone(target, deep=deep)
    row = {"uri": made.uri, "version": made.version, "rows": made.count(), "deep": deep}
    if json:
        show.as_json(row)
    else:
        show.as_pairs(row, title="cloned")


@opens("branch")
def restore(
    table: "Table",
    version: Wanted,
    *,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Make an older version the latest; the versions in between stay."""
    confirm(f"restoring version {version} as a new version {table.version + 1}", yes=yes)
    result = table.restore(version, commit=message)
    row = {"uri": table.uri, "restored": version, "version": result.version, "rows": result.rows}
    if json:
        show.as_json(row)
    else:
        show.as_pairs(row, title="restored")
