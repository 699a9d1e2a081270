"""Commands of ``lancetable``, and its error output.

A deliberate error of the library becomes one line on the error stream and exit code 1; anything
else is a defect and keeps its traceback. Only typer is imported at the start; the commands import
what they need when they run.
"""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, ParamSpec

import typer

import lancetable
from lancetable.cli import history, index, refs, table, upkeep
from lancetable.errors import LanceTableError

P = ParamSpec("P")

app = typer.Typer(
    name="lancetable",
    help="Look into Lance tables and their data files, and look after their versions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001
    if wanted:
        typer.echo(f"lancetable {lancetable.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def _with_one_line_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command, with its deliberate errors as one line."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        try:
            command(*args, **options)
        except LanceTableError as error:
            message = " ".join(str(error).split())
            typer.echo(f"error: {message}", err=True)
            raise typer.Exit(1) from None

    return run


for _command in (
    table.info,
    table.schema,
    table.head,
    table.versions,
    table.fragments,
    table.files,
    table.pages,
    history.history,
    history.diff,
    table.clone,
    table.restore,
    upkeep.compact,
    upkeep.changes,
    upkeep.cleanup,
    upkeep.check,
    upkeep.repair,
):
    app.command()(_with_one_line_errors(_command))

for _group, _name, _commands in (
    (index.index_app, "index", index.COMMANDS),
    (refs.tag_app, "tag", refs.TAG_COMMANDS),
    (refs.branch_app, "branch", refs.BRANCH_COMMANDS),
):
    for _verb, _action in _commands.items():
        _group.command(_verb)(_with_one_line_errors(_action))
    app.add_typer(_group, name=_name)
