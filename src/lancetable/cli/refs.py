"""The commands for the names of versions: tags and branches."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import Branch, Json, Message, Pick, Tag, Uri, Version
from lancetable.cli.show import Yes, confirm
from lancetable.errors import InputError

if TYPE_CHECKING:
    from lancetable.commit.refs import BranchInfo, TagInfo

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


def list_tags(uri: Uri, *, json: Json = False) -> None:
    """The tags of a table."""
    rows = [_tag_row(tag) for tag in Pick().open(uri).tags.list()]
    _show(rows, "tags", ("version",), json=json)


def create_tag(
    uri: Uri,
    name: Name,
    *,
    version: Version = None,
    branch: Branch = None,
    note: Notes = None,
    json: Json = False,
) -> None:
    """Give a version a name; the latest unless one is given."""
    made = Pick().open(uri).tags.create(name, version, branch=branch, metadata=_notes(note))
    _show([_tag_row(made)], "tag created", ("version",), json=json)


def move_tag(
    uri: Uri, name: Name, *, version: Version = None, branch: Branch = None, json: Json = False
) -> None:
    """Let a tag name another version; the latest unless one is given."""
    moved = Pick().open(uri).tags.move(name, version, branch=branch)
    row = {**_tag_row(moved.after), "was": moved.before.version}
    _show([row], "tag moved", ("version", "was"), json=json)


def delete_tag(uri: Uri, name: Name, *, yes: Yes = False, json: Json = False) -> None:
    """Remove a tag; the version it names stays until a cleanup."""
    table = Pick().open(uri)
    confirm(f"deleting tag {name!r}", yes=yes)
    _show([_tag_row(table.tags.delete(name))], "tag deleted", ("version",), json=json)


def list_branches(uri: Uri, *, json: Json = False) -> None:
    """The branches of a table, the main one left out."""
    rows = [_branch_row(branch) for branch in Pick().open(uri).branches.list()]
    _show(rows, "branches", ("parent_version",), json=json)


def create_branch(  # noqa: PLR0913 - each has a default
    uri: Uri,
    name: Name,
    *,
    version: Version = None,
    tag: Tag = None,
    branch: Branch = None,
    note: Notes = None,
    json: Json = False,
) -> None:
    """Begin a branch with a version; the latest of the main history unless one is given."""
    table = Pick().open(uri)
    table.branches.create(name, version, tag=tag, branch=branch, metadata=_notes(note))
    _show([_branch_row(table.branches[name])], "branch created", ("parent_version",), json=json)


def delete_branch(uri: Uri, name: Name, *, yes: Yes = False, json: Json = False) -> None:
    """Remove a branch with all its versions."""
    table = Pick().open(uri)
    confirm(f"deleting branch {name!r} with all its versions", yes=yes)
    gone = table.branches.delete(name)
    rows = [] if gone is None else [_branch_row(gone)]
    _show(rows, "branch deleted", ("parent_version",), json=json)


def fast_forward(
    uri: Uri,
    name: Name,
    *,
    branch: Branch = None,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Bring everything a branch did to the main history, as one version."""
    table = Pick(branch=branch).open(uri)
    confirm(f"publishing branch {name!r} as version {table.version + 1}", yes=yes)
    done = table.branches.fast_forward(name, commit_message=message)
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


def cherry_pick(  # noqa: PLR0913 - each has a default
    uri: Uri,
    name: Name,
    versions: Annotated[
        list[int] | None, typer.Argument(help="Versions of the branch; all when left out.")
    ] = None,
    *,
    branch: Branch = None,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Replay versions of a branch on the main history, each as a version."""
    table = Pick(branch=branch).open(uri)
    which = "all versions" if not versions else f"versions {', '.join(map(str, versions))}"
    confirm(f"replaying {which} of branch {name!r}", yes=yes)
    done = table.branches.cherry_pick(name, versions or None, commit_message=message)
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


def _notes(texts: list[str] | None) -> dict[str, str]:
    notes = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise InputError(f"--note {text!r} is no note; write it like key=value")
        notes[key] = value
    return notes
