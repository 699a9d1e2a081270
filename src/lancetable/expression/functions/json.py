"""Functions on JSON documents.

They work on JSON text, as a scan returns it. A path is ``$.key``, ``$["key"]``, ``$[0]`` or any
sequence of these; ``[*]`` and ``.*`` select all elements or members. Without ``$`` it starts with
a key. ``json_get`` returns JSON text too, so that calls can be nested.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from lancetable.errors import ExpressionError
from lancetable.expression.functions.signature import Function, Kind, by_row, function
from lancetable.format.encoding.jsonb import json_float

_Step: TypeAlias = str | int | None
_ABSENT = object()
_TOKEN = re.compile(
    r"""\s*(?:
        \.\s*(?P<star>\*)
      | \.?\s*(?P<name>[^\s.\[\]"'*$]+)
      | \.?\s*"(?P<quoted>(?:[^"\\]|\\.)*)"
      | \[\s*(?P<index>-?\d{1,9})\s*\]
      | \[\s*(?P<every>\*)\s*\]
      | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
      | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    )\s*""",
    re.VERBOSE,
)


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[_Step, ...]:
    """Parse a path; None means all elements or members."""
    position = 1 if path.startswith("$") else 0
    steps: list[_Step] = []
    while position < len(path):
        found = _TOKEN.match(path, position)
        if found is None:
            raise ExpressionError(f"{path!r} is not a JSON path like '$.a[0].b'")
        kind, text = found.lastgroup, found.group(str(found.lastgroup))
        if kind in {"star", "every"}:
            steps.append(None)
        else:
            steps.append(int(text) if kind == "index" else re.sub(r"\\(.)", r"\1", text))
        position = found.end()
    if path.endswith("."):
        raise ExpressionError(f"{path!r} is not a JSON path like '$.a[0].b'")
    return tuple(steps)


def _load(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError as cause:
        raise ExpressionError("a JSON document is nested too deeply") from cause
    except ValueError as cause:
        raise ExpressionError(f"{text[:40]!r} is not JSON: {cause}") from cause


def _write(value: object) -> str:
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, list):
        return f"[{','.join(_write(each) for each in value)}]"
    if isinstance(value, dict):
        members = (
            f"{json.dumps(key, ensure_ascii=False)}:{_write(each)}" for key, each in value.items()
        )
        return f"{{{','.join(members)}}}"
    return json.dumps(value, ensure_ascii=False)


def _follow(value: object, steps: tuple[_Step, ...]) -> list[object]:
    found = [value]
    for step in steps:
        found = [inner for each in found for inner in _inside(each, step)]
    return found


def _inside(value: object, step: _Step) -> list[object]:
    if step is None:
        if isinstance(value, dict):
            return list(value.values())
        return value if isinstance(value, list) else []
    inner = _member(value, step)
    return [] if inner is _ABSENT else [inner]


def _member(value: object, step: str | int) -> object:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step, _ABSENT)
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return value[step]
    return _ABSENT


def _extract(text: str, path: str) -> str | None:
    steps = _steps(path)
    found = _follow(_load(text), steps)
    if not found:
        return None
    return _write(found if None in steps else found[0])


def _exists(text: str, path: str) -> bool:
    return bool(_follow(_load(text), _steps(path)))


def _child(text: str, key: str) -> object:
    value = _load(text)
    if isinstance(value, list) and re.fullmatch(r"-?\d{1,9}", key):
        return _member(value, int(key))
    return _member(value, key)


def _get(text: str, key: str) -> str | None:
    inner = _child(text, key)
    return None if inner is _ABSENT else _write(inner)


def _as_string(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return None if isinstance(value, list | dict) else _write(value)


def _as_number(value: object) -> float | None:
    if isinstance(value, float | int):
        return value
    if isinstance(value, str):
        try:
            return int(value) if re.fullmatch(r"[+-]?\d{1,19}", value) else float(value)
        except ValueError:
            return None
    return None


def _as_integer(value: object) -> int | None:
    number = _as_number(value)
    if number is None or not math.isfinite(number):
        return None
    # Halves are rounded away from zero; an integer must not pass through a float.
    half = 0.5 if abs(number) < 2**52 else 0
    whole = math.floor(abs(number) + half) * (-1 if number < 0 else 1)
    return int(whole) if -(2**63) <= whole < 2**63 else None


def _as_float(value: object) -> float | None:
    number = _as_number(value)
    return None if number is None else float(number)


def _as_boolean(value: object) -> bool | None:
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return value if isinstance(value, bool) else None


def _getter(convert: Callable[[object], object], result: pa.DataType) -> Function:
    def compute(text: str, key: str) -> object:
        inner = _child(text, key)
        return None if inner is _ABSENT else convert(inner)

    return function(by_row(compute, result), Kind.TEXT, Kind.AS_TEXT)


def _array_contains(text: str, path: str, wanted: str) -> bool:
    return any(
        wanted in {_as_string(each), _write(each)}
        for found in _follow(_load(text), _steps(path))
        if isinstance(found, list)
        for each in found
    )


def _array_length(text: str, path: str) -> int | None:
    found = _follow(_load(text), _steps(path))
    if not found:
        return None
    return len(found[0]) if isinstance(found[0], list) else 0


JSON_FUNCTIONS: Mapping[str, Function] = {
    "json_extract": function(by_row(_extract, pa.string()), Kind.TEXT, Kind.TEXT),
    "json_exists": function(by_row(_exists, pa.bool_()), Kind.TEXT, Kind.TEXT),
    "json_get": function(by_row(_get, pa.string()), Kind.TEXT, Kind.AS_TEXT),
    "json_get_string": _getter(_as_string, pa.string()),
    "json_get_int": _getter(_as_integer, pa.int64()),
    "json_get_float": _getter(_as_float, pa.float64()),
    "json_get_bool": _getter(_as_boolean, pa.bool_()),
    "json_array_contains": function(
        by_row(_array_contains, pa.bool_()), Kind.TEXT, Kind.TEXT, Kind.AS_TEXT
    ),
    "json_array_length": function(by_row(_array_length, pa.int64()), Kind.TEXT, Kind.TEXT),
}
