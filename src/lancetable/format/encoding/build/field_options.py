"""Encoding options of one field, set by the user in the field's metadata.

Every key starts with ``lance-encoding:``. A value that means nothing is refused with those that do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lancetable.errors import InputError
from lancetable.format.schema.model import Field

PREFIX = "lance-encoding:"
COMPRESSIONS = ("zstd", "lz4", "fsst", "none")
STRUCTURES = ("miniblock", "fullzip")
_HIGHEST_LEVEL = 22


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """The encoding options of one leaf; ``None`` leaves the choice to the data."""

    compression: str | None = None
    level: int | None = None
    split_bytes: str = "auto"
    run_threshold: float | None = None
    dictionary_divisor: int = 2
    structure: str | None = None


def options_of(field: Field, top: Field) -> FieldOptions:
    """Read the options of a leaf; how pages are laid out is said by the top-level field.

    Raises:
        InputError: a value is not one of those that mean something.
    """
    if not field.metadata and not top.metadata:
        return DEFAULT
    reader = _Reader(field)
    structure = _Reader(top).word("structural-encoding", STRUCTURES)
    return FieldOptions(
        compression=reader.word("compression", COMPRESSIONS),
        level=reader.number("compression-level", _level, "a whole number from 1 to 22"),
        split_bytes=reader.word("bss", ("off", "on", "auto")) or "auto",
        run_threshold=reader.number("rle-threshold", _share, "a number from 0 to 1"),
        dictionary_divisor=reader.number("dict-divisor", _positive, "a whole number from 1") or 2,
        structure=structure,
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _level(text: str) -> int:
    value = int(text)
    if not 1 <= value <= _HIGHEST_LEVEL:
        raise ValueError(text)
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


class _Reader:
    def __init__(self, field: Field) -> None:
        self.name = field.name
        self.metadata: Mapping[str, str] = field.metadata

    def word(self, key: str, allowed: tuple[str, ...]) -> str | None:
        text = self.metadata.get(PREFIX + key)
        if text is None:
            return None
        word = text.strip().lower()
        if word not in allowed:
            raise InputError(
                f"column {self.name!r}: {PREFIX}{key} is {text!r}; use one of {', '.join(allowed)}"
            )
        return word

    def number(self, key: str, parse: Callable[[str], Any], wanted: str) -> Any:  # noqa: ANN401
        text = self.metadata.get(PREFIX + key)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError:
            raise InputError(
                f"column {self.name!r}: {PREFIX}{key} is {text!r}; use {wanted}"
            ) from None


DEFAULT = FieldOptions()
