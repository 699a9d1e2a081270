"""The command line: looks into tables and data files, and looks after versions."""

from lancetable.cli.app import app, main

__all__ = ["app", "main"]
