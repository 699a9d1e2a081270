"""Arguments that several commands share, and the version of a table they name."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

import lancetable
from lancetable.errors import InputError, RefNotFoundError
from lancetable.options import Declared, choices, declared, is_list, split_names

if TYPE_CHECKING:
    from lancetable.table import Table

Uri = Annotated[str, typer.Argument(metavar="TABLE", help="Path or address of the table.")]
Version = Annotated[int | None, typer.Option("--version", "-v", help="Version to open.")]
Tag = Annotated[str | None, typer.Option(help="Tag to open.")]
Branch = Annotated[str | None, typer.Option(help="Branch to open.")]
AsOf = Annotated[
    str | None,
    typer.Option(help="Newest version at this ISO time; local time unless it names an offset."),
]


def _print_kernels(wanted: bool) -> None:  # noqa: FBT001
    if not wanted:
        return
    from lancetable.format.encoding.kernels import compiled

    note = "" if compiled.LIBRARY is None else f" ({compiled.PATH})"
    typer.echo(f"kernels: {compiled.NAME}{note}")
    raise typer.Exit


Kernels = Annotated[
    bool,
    typer.Option(
        "--kernels",
        help="Print which kernels encode and decode, compiled C or NumPy, and leave.",
        callback=_print_kernels,
        is_eager=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print plain JSON for other programs.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="How many rows.")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", "-c", help="Names or nested paths, separated by commas."),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A note for the history.")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="SQL condition on the rows.")]


@dataclass(frozen=True, slots=True)
class Pick:
    """The version of a table that the arguments name."""

    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    as_of: str | None = None

    def open(self, uri: str) -> "Table":
        """Open the table at this version."""
        return lancetable.open_table(
            uri, version=self.version, tag=self.tag, branch=self.branch, as_of=_moment(self.as_of)
        )


def named(uri: str, text: str) -> "Table":
    """Open the version that a text names: a number, a tag, a branch, or a version of a branch."""
    if text.isdigit():
        return lancetable.open_table(uri, version=int(text))
    branch, sign, version = text.rpartition("@")
    if sign and version.isdigit():
        return lancetable.open_table(uri, version=int(version), branch=branch)
    try:
        return lancetable.open_table(uri, tag=text)
    except (InputError, RefNotFoundError):
        return lancetable.open_table(uri, branch=text)


def _moment(text: str | None) -> datetime | None:
    """Turn ISO text into a time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--as-of {text!r} is not a time; write it like 2026-03-01T12:00:00"
        ) from None


def split_columns(text: str | None) -> list[str] | None:
    """Return the names in a text, separated by commas; None when there is no text."""
    return None if text is None else list(split_names(text))


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return the values of a repeated option, each written as key=value."""
    found = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise InputError(f"{option} {text!r} is not valid; write it like key=value")
        found[key] = value
    return found


_PICKED = {"version": Version, "tag": Tag, "branch": Branch, "as_of": AsOf}
Command = Callable[..., None]


def opens(*names: str) -> Callable[[Command], Command]:
    """Open the table of a command, whose first parameter it is.

    The command line gets the address of the table, and those of the options ``version``, ``tag``,
    ``branch`` and ``as_of`` that are named.
    """

    def decorate(command: Command) -> Command:
        _, *rest = inspect.signature(command).parameters.values()
        place = inspect.Parameter("uri", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Uri)
        picked = [_parameter(name, _PICKED[name]) for name in names]

        def run(uri: str, **given: Any) -> None:  # noqa: ANN401 - what typer parsed
            pick = Pick(**{name: given.pop(name) for name in names})
            command(pick.open(uri), **given)

        return _signed(run, command, [place, *rest, *picked])

    return decorate


def offers(kind: type) -> Callable[[Command], Command]:
    """Add the options that a class declares to a command, which gets those that are given."""
    offered = [one for one in declared(kind) if one.rule.in_cli]

    def decorate(command: Command) -> Command:
        own = [
            one
            for one in inspect.signature(command).parameters.values()
            if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]

        def run(*args: Any, **given: Any) -> None:  # noqa: ANN401 - what typer parsed
            options = {one.name: _given(one, given.pop(one.name)) for one in offered}
            command(*args, **given, **{k: v for k, v in options.items() if v is not None})

        added = [_parameter(one.name, _annotation(one)) for one in offered]
        return _signed(run, command, [*own, *added])

    return decorate


def _signed(run: Command, command: Command, parameters: list[inspect.Parameter]) -> Command:
    wraps(command)(run)
    signature = inspect.Signature(sorted(parameters, key=lambda one: one.kind))
    vars(run)["__signature__"] = signature
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    del vars(run)["__wrapped__"]
    return run


def _parameter(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _annotation(one: Declared) -> object:
    """Return the type of an option on the command line, with its help and limits."""
    rule, kind = one.rule, one.kind
    settings: Mapping[str, Any] = {"help": rule.help}
    if is_list(kind):
        return Annotated[list[str] | None, typer.Option(**settings)]
    if choices(kind):
        return Annotated[kind | None, typer.Option(**settings)]  # type: ignore[operator]
    if kind is bool:
        flag = "--" + one.name.replace("_", "-")
        names = flag if one.default is False else f"{flag}/--no-{flag[2:]}"
        return Annotated[bool | None, typer.Option(names, **settings)]
    if rule.unit is not None or kind not in (int, float):
        return Annotated[str | None, typer.Option(**settings)]
    if not rule.is_exclusive:
        settings = {**settings, "min": rule.minimum, "max": rule.maximum}
    return Annotated[kind | None, typer.Option(**settings)]


def _given(one: Declared, value: object) -> object:
    """Return the value of an option; lists may be repeated, and separated by commas."""
    if isinstance(value, list):
        inner = get_args(one.kind)[0]
        return [inner(item) for text in value for item in split_names(text)] or None
    return value
