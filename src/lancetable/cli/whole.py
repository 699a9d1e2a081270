"""The commands that make a whole table out of one of its versions: clone and restore."""

from typing import Annotated

import typer

from lancetable.cli import show
from lancetable.cli.ask import Yes, confirm
from lancetable.cli.options import AsOf, Branch, Json, Message, Pick, Tag, Uri, Version

Target = Annotated[str, typer.Argument(metavar="TARGET", help="Where the clone will be.")]
Deep = Annotated[bool, typer.Option("--deep", help="Copy all files instead of referring to them.")]
Wanted = Annotated[int, typer.Argument(metavar="VERSION", help="The version to go back to.")]


def clone(  # noqa: PLR0913 - each has a default
    uri: Uri,
    target: Target,
    *,
    deep: Deep = False,
    version: Version = None,
    tag: Tag = None,
    branch: Branch = None,
    as_of: AsOf = None,
    json: Json = False,
) -> None:
    """Make a new table that begins with a version of another."""
    made = Pick(version, tag, branch, as_of).open(uri).clone(target, deep=deep)
    row = {"uri": made.uri, "version": made.version, "rows": made.count(), "deep": deep}
    if json:
        show.as_json(row)
    else:
        show.as_pairs(row, title="cloned")


def restore(
    uri: Uri,
    version: Wanted,
    *,
    branch: Branch = None,
    message: Message = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Make an older version the latest; the versions in between stay."""
    table = Pick(branch=branch).open(uri)
    confirm(f"restoring version {version} as a new version {table.version + 1}", yes=yes)
    result = table.restore(version, commit_message=message)
    row = {"uri": uri, "restored": version, "version": result.version, "rows": result.rows}
    if json:
        show.as_json(row)
    else:
        show.as_pairs(row, title="restored")
