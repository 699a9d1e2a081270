"""How does the command line make sure before it does what cannot be undone?"""

import sys
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to go on.")]


def confirm(question: str, *, yes: bool) -> None:
    """Go on when the answer is yes; a program that cannot answer has to say so beforehand."""
    if yes:
        return
    if not sys.stdin.isatty():
        typer.echo(f"error: {question} cannot be undone; pass --yes to do it", err=True)
        raise typer.Exit(1)
    typer.confirm(f"{question}, which cannot be undone. Go on?", abort=True, err=True)
