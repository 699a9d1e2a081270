"""How does long work show that it goes on: a bar on the error stream, when that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Told = Callable[[int, int], None]


@contextmanager
def bar(what: str, *, is_quiet: bool = False) -> Iterator[Told]:
    """Give a function that is told how much of how much is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if is_quiet or not console.is_terminal:
        yield lambda _done, _total: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield told
