"""The command line: inspect tables and data files, and manage versions."""

import sys

__all__ = ["main"]

WIDTH = 80
"""How wide the overview is; a narrower terminal gets it from typer, which breaks its lines."""


def main() -> None:
    """Run the command line of this process."""
    if sys.argv[1:] in (["-h"], ["--help"]) and _terminal_width() >= WIDTH:
        from lancetable.cli.overview import OVERVIEW

        sys.stdout.write(OVERVIEW)
        return
    from lancetable.cli.app import app

    app()


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns
