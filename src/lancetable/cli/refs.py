"""Commands for tags and branches."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import Branch, Json, Message, Tag, Version, opens, pairs
from lancetable.cli.show import Yes, confirm

if TYPE_CHECKING:
    from lancetable.commit.refs import BranchInfo, TagInfo
    from lancetable.table import Table

tag_app = typer.Typer(
    help="List, create, move and delete tags.", no_args_is_help=True, rich_markup_mode=None
)
branch_app = typer.Typer(
    help="List, create, publish and delete branches.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the tag or branch.")]
Notes = Annotated[
    list[str] | None,
    typer.Option("--note", help="A note kept with it, as key=value; may be repeated."),
]


@opens()
def list_tags(table: "Table", *, json: Json = False) -> None:
    """The tags of a table."""
    rows = [_tag_row(tag) for tag in table.tags.list()]
    _show(rows, "tags", ("version",), json=json)


@opens()
def create_tag(
    table: "Table",
    name: Name,
    *,
    version: Version = None,
    branch: Branch = None,
    note: Notes = None,
    json: Json = False,
) -> None:
    """Create a tag for a version; by default the latest."""
    made = table.tags.create(name, version, branch=branch, metadata=pairs(note, "--note"))
    _show([_tag_row(made)], "tag created", ("version",), json=json)


@opens()
def move_tag(
    table: "Table",
    name: Name,
    *,
    version: Version = None,
    branch: Branch = None,
    json: Json = False,
) -> None:
    """Move a tag to another version; by default the latest."""
    moved = table.tags.move(name, version, branch=branch)
    row = {**_tag_row(moved.after), "was": moved.before.version}
    _show([row], "tag moved", ("version", "was"), json=json)


@opens()
def delete_tag(table: "Table", name: Name, *, yes: Yes = False, json: Json = False) -> None:
    """Remove a tag; the version it names stays until a cleanup."""
    confirm(f"deleting tag {name!r}", yes=yes)
    _show([_tag_row(table.tags.delete(name))], "tag deleted", ("version",), json=json)


@opens()
def list_branches(table: "Table", *, json: Json = False) -> None:
    """The branches of a table, the main one left out."""
    rows = [_branch_row(branch) for branch in table.branches.list()]
    _show(rows, "branches", ("parent_version",), json=json)


@opens()
def create_branch(  # noqa: PLR0913 - each has a default
    table: "Table",
    name: Name,
    *,
    version: Version = None,
    tag: Tag = None,
    branch: Branch = None,
    note: Notes = None,
    json: Json = False,
) -> None:
    """Create a branch at a version; by default the latest of the main branch."""
    table.branches.create(name, version, tag=tag, branch=branch, metadata=pairs(note, "--note"))
    _show([_branch_row(table.branches[name])], "branch created", ("parent_version",), json=json)


@opens()
def delete_branch(table: "Table", name: Name, *, yes: Yes = False, json: Json = False) -> None:
    """Remove a branch with all its versions."""
    confirm(f"deleting branch {name!r} with all its versions", yes=yes)
    gone = table.branches.delete(name)
    rows = [] if gone is None else [_branch_row(gone)]
    _show(rows, "branch deleted", ("parent_version",), json=json)


@opens("branch")
def fast_forward(
    table: "Table",
    name: Name,
    *,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Publish everything a branch did as one version of the main history."""
    confirm(f"publishing branch {name!r} as version {table.version + 1}", yes=yes)
    done = table.branches.fast_forward(name, commit=message)
    row: dict[str, object] = {
        "branch": name,
        "version": done.version,
        "branch_versions": list(done.branch_versions),
        "operation": done.operation,
        "added": done.effect.rows_added,
        "removed": done.effect.rows_removed,
        "updated": done.effect.rows_updated,
        "files": done.files,
        "indices_left": list(done.indices_left),
    }
    _show([row], "published", ("version", "added", "removed", "updated", "files"), json=json)


@opens("branch")
def cherry_pick(
    table: "Table",
    name: Name,
    versions: Annotated[
        list[int] | None, typer.Argument(help="Versions of the branch; all when left out.")
    ] = None,
    *,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Replay versions of a branch on the main history, each as a version."""
    which = "all versions" if not versions else f"versions {', '.join(map(str, versions))}"
    confirm(f"replaying {which} of branch {name!r}", yes=yes)
    done = table.branches.cherry_pick(name, versions or None, commit=message)
    rows: list[dict[str, object]] = [
        {"branch": name, "branch_version": one.branch_version, "version": one.version}
        for one in done.picks
    ]
    _show(rows, "picked", ("branch_version", "version"), json=json)


TAG_COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_tags,
    "create": create_tag,
    "move": move_tag,
    "delete": delete_tag,
}
BRANCH_COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_branches,
    "create": create_branch,
    "delete": delete_branch,
    "fast-forward": fast_forward,
    "cherry-pick": cherry_pick,
}


def _show(
    rows: list[dict[str, object]], title: str, numbers: tuple[str, ...], *, json: bool
) -> None:
    if json:
        show.as_json(rows)
    else:
        show.as_table(rows, title=title, numbers=numbers)


def _tag_row(tag: "TagInfo") -> dict[str, object]:
    return {
        "tag": tag.name,
        "version": tag.version,
        "branch": tag.branch,
        "created_at": tag.created_at,
        "updated_at": tag.updated_at,
        "metadata": dict(tag.metadata),
    }


def _branch_row(branch: "BranchInfo") -> dict[str, object]:
    return {
        "branch": branch.name,
        "parent": branch.parent_branch or "main",
        "parent_version": branch.parent_version,
        "created_at": branch.created_at,
        "metadata": dict(branch.metadata),
    }
