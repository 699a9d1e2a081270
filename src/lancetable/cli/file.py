"""The command that looks at one data file."""

from typing import Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import Json

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
