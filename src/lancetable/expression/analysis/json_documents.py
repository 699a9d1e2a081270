"""Leaves of JSON documents, and the triples by which a query asks for them.

A leaf is a path, a type and a value: ``a.b,str,hello``. The keys of objects make the path, arrays
add nothing to it.
"""

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import CorruptError, InputError
from lancetable.format.encoding.jsonb import jsonb_to_text

TYPES = ("str", "number", "bool", "null")


class Leaf(NamedTuple):
    """One value of a document."""

    document: int
    prefix: str
    """The path and the type, with a comma after each."""
    value: str

    @property
    def is_text(self) -> bool:
        """Whether the value is analysed."""
        return self.prefix.endswith(",str,")


class _Number(str):
    __slots__ = ()


class _Object(list[tuple[str, object]]):
    __slots__ = ()


def leaves(values: pa.Array) -> Iterator[Leaf]:
    """Yield the leaves of documents, texts or as they are stored, in their order.

    Raises:
        CorruptError: a document is damaged.
    """
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    is_text = pt.is_string(values.type) or pt.is_large_string(values.type)
    for number, value in enumerate((values if is_text else jsonb_to_text(values)).to_pylist()):
        if value is not None:
            for prefix, leaf in _walk(_parsed(value), ""):
                yield Leaf(number, prefix, leaf)


def _parsed(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"a JSON document is damaged: {error}") from error


def _walk(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, _Object):
        for key, inner in value:
            yield from _walk(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, path)
    else:
        yield _leaf(value, path)


def _leaf(value: object, path: str) -> tuple[str, str]:
    if isinstance(value, _Number):
        return f"{path},number,", str(value)
    if isinstance(value, str):
        return f"{path},str,", value
    if isinstance(value, bool):
        return f"{path},bool,", "true" if value else "false"
    return f"{path},null,", "null"


def triples(text: str) -> Iterable[Leaf]:
    """Return what a query asks for, each part as a document of its own.

    Raises:
        InputError: a part is not a path, a type and a value.
    """
    found = []
    for number, part in enumerate(text.split(";")):
        pieces = part.split(",", 2)
        if len(pieces) < 3:
            raise InputError(
                f"{part!r} is not a query on JSON documents; give path,type,value, several "
                "separated by semicolons"
            )
        path, kind, value = pieces
        if kind not in TYPES:
            raise InputError(f"{kind!r} is not a type of JSON values; give {', '.join(TYPES)}")
        found.append(Leaf(number, f"{path},{kind},", value))
    return found
