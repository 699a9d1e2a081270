"""The keyword arguments of operations are the fields of their option classes.

``python -m tests.architecture.test_settings`` writes the module of keyword arguments again.
"""

import typing
from datetime import timedelta
from pathlib import Path

from lancetable.fragment.write.writer import WriteOptions
from lancetable.operations.check.model import CheckOptions
from lancetable.operations.cleanup.options import CleanupOptions
from lancetable.operations.compact.options import CompactOptions
from lancetable.operations.index.create import IndexOptions
from lancetable.operations.index.optimize import OptimizeOptions
from lancetable.options import Declared, choices, declared, is_list
from lancetable.scan.request import ScanOptions

MODULE = Path(__file__).parents[2] / "src" / "lancetable" / "table" / "settings.py"
CLASSES = {
    "CheckSettings": CheckOptions,
    "CleanupSettings": CleanupOptions,
    "CompactSettings": CompactOptions,
    "IndexSettings": IndexOptions,
    "OptimizeSettings": OptimizeOptions,
    "ScanSettings": ScanOptions,
    "WriteSettings": WriteOptions,
}
HEAD = '''\
"""Keyword arguments of operations, generated from their option classes.

Run ``python -m tests.architecture.test_settings`` after a change of an option class.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict

from lancetable.fragment.write.progress import ProgressCallback
'''


def _type(one: Declared) -> str:
    if one.name == "progress":
        return "bool | ProgressCallback"
    if choices(one.kind):
        text = f"Literal[{', '.join(f'{each!r}' for each in choices(one.kind))}]".replace("'", '"')
    elif is_list(one.kind):
        text = f"Sequence[{typing.get_args(one.kind)[0].__name__}]"
    else:
        text = "timedelta" if one.kind is timedelta else typing.cast("type", one.kind).__name__
    text = f"{text} | str" if one.rule.unit else text
    return f"{text} | None" if one.is_optional else text


def rendered() -> str:
    """Return the text of the module."""
    parts = [HEAD]
    for name, kind in CLASSES.items():
        lines = [
            f"class {name}(TypedDict, total=False):",
            f'    """Fields of :class:`lancetable.{kind.__name__}`."""',
            "",
            *(f"    {one.name}: {_type(one)}" for one in declared(kind)),
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def test_keyword_arguments_follow_the_option_classes() -> None:
    assert MODULE.read_text("utf-8") == rendered()


if __name__ == "__main__":
    MODULE.write_text(rendered(), "utf-8")
