"""Functions on text."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.functions.signature import (
    Function,
    Kernel,
    Kind,
    by_row,
    function,
    kernel_or_rows,
    listed,
)

_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE, "g": 0}
_LONGEST = 1 << 28
_WORD = re.compile(r"[^\W_]+")


def _unary(kernel: Callable[[pa.Array], pa.Array]) -> Kernel:
    return lambda arguments: kernel(arguments[0])


def _text(arguments: Sequence[pa.Array], index: int) -> str:
    return str(arguments[index].as_py())


def _length(values: pa.Array) -> pa.Array:
    if pt.is_binary(values.type) or pt.is_large_binary(values.type):
        return pc.binary_length(values).cast(pa.int32())
    return pc.utf8_length(values).cast(pa.int32())


def _substr(text: str, start: int, length: int | None = None) -> str:
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise ExpressionError("substr takes a length that is not negative")
    # SQL counts the characters before the first, which do not exist.
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _substr_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    start = arguments[1].as_py() - 1
    if len(arguments) == 2:
        return pc.utf8_slice_codeunits(arguments[0], max(start, 0))
    length = arguments[2].as_py()
    if length < 0:
        raise ExpressionError("substr takes a length that is not negative")
    stop = max(start + length, 0)
    return pc.utf8_slice_codeunits(arguments[0], max(start, 0), stop)


def _left(text: str, count: int) -> str:
    return text[:count]


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else (text[-count:] if count < 0 else "")


def _trim(kernel: Callable[..., pa.Array], strip: Callable[[str, str], str]) -> Kernel:
    def fast(arguments: Sequence[pa.Array]) -> pa.Array:
        characters = _text(arguments, 1) if len(arguments) > 1 else " "
        return kernel(arguments[0], characters) if characters else arguments[0]

    return kernel_or_rows(fast, by_row(strip, pa.string()))


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _replace_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    old = _text(arguments, 1)
    return pc.replace_substring(arguments[0], old, _text(arguments, 2)) if old else arguments[0]


def _concat(arguments: Sequence[pa.Array]) -> pa.Array:
    filled = [pc.coalesce(each, pa.scalar("", each.type)) for each in arguments]
    return pc.binary_join_element_wise(*filled, pa.scalar("", filled[0].type))


def _join(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*arguments, pa.scalar("", arguments[0].type))


def _concat_ws(arguments: Sequence[pa.Array]) -> pa.Array:
    # Arrow's join loses the rows that have no parts at all.
    rows = len(arguments[1])
    joined = [
        None if mark is None else str(mark).join(str(part) for part in parts if part is not None)
        for mark, *parts in zip(*(listed(each, rows) for each in arguments), strict=True)
    ]
    return pa.array(joined, arguments[1].type)


def _position(text: str, part: str) -> int:
    return text.find(part) + 1


def _split_part(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise ExpressionError("split_part counts the parts from one, or from -1 backwards")
    parts = text.split(separator) if separator else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _check_length(length: int) -> int:
    if length > _LONGEST:
        raise ExpressionError(f"a text of {length} characters is too long")
    return max(length, 0)


def _lpad(text: str, length: int, fill: str = " ") -> str:
    length = _check_length(length)
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[:length]
    return (fill * (missing // len(fill) + 1))[:missing] + text


def _rpad(text: str, length: int, fill: str = " ") -> str:
    length = _check_length(length)
    missing = length - len(text)
    if missing <= 0 or not fill:
        return text[:length]
    return text + (fill * (missing // len(fill) + 1))[:missing]


def _repeat(text: str, times: int) -> str:
    _check_length(len(text) * max(times, 0))
    return text * max(times, 0)


def _initcap(text: str) -> str:
    return _WORD.sub(lambda word: word.group().capitalize(), text)


def _contains_tokens(text: str, words: str) -> bool:
    return set(_WORD.findall(words)) <= set(_WORD.findall(text))


def _flagged(pattern: str, flags: str) -> str:
    unknown = set(flags) - set(_FLAGS)
    if unknown:
        raise ExpressionError(f"regular expressions have no flag {unknown.pop()!r}; use i, s, m, x")
    kept = "".join(flag for flag in flags if flag in "ism")
    return f"(?{kept}){pattern}" if kept else pattern


@lru_cache(maxsize=256)
def _regex(pattern: str, flags: str = "") -> re.Pattern[str]:
    unknown = set(flags) - set(_FLAGS)
    if unknown:
        raise ExpressionError(f"regular expressions have no flag {unknown.pop()!r}; use i, s, m, x")
    try:
        return re.compile(pattern, sum(_FLAGS[flag] for flag in set(flags)))
    except re.error as cause:
        raise ExpressionError(f"{pattern!r} is not a regular expression: {cause}") from cause


def _regexp_like(text: str, pattern: str, flags: str = "") -> bool:
    return _regex(pattern, flags).search(text) is not None


def _regexp_like_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    pattern = _flagged(_text(arguments, 1), _text(arguments, 2) if len(arguments) > 2 else "")
    try:
        return pc.match_substring_regex(arguments[0], pattern)
    except pa.ArrowInvalid as cause:
        raise ExpressionError(f"{pattern!r} is not a regular expression: {cause}") from cause


def _regexp_replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    template = re.sub(r"\$\{?(\w+)\}?", r"\\g<\1>", replacement)
    return _regex(pattern, flags).sub(template, text, count=0 if "g" in flags else 1)


def _regexp_match(text: str, pattern: str, flags: str = "") -> list[str] | None:
    found = _regex(pattern, flags).search(text)
    if found is None:
        return None
    return [group or "" for group in found.groups()] or [found.group()]


def _starts_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.starts_with(arguments[0], _text(arguments, 1))


def _ends_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.ends_with(arguments[0], _text(arguments, 1))


def _contains_fast(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.match_substring(arguments[0], _text(arguments, 1))


def _digest(name: str) -> Callable[[str | bytes], bytes]:
    def compute(value: str | bytes) -> bytes:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(name, data, usedforsecurity=False).digest()

    return compute


_TEXT, _INT = Kind.TEXT, Kind.INTEGER
_SUBSTR = function(
    kernel_or_rows(_substr_fast, by_row(_substr, pa.string())), _TEXT, _INT, _INT, least=2
)
_BTRIM = function(
    _trim(pc.utf8_trim, lambda text, *c: text.strip(*c or (" ",))), _TEXT, _TEXT, least=1
)
_STRPOS = function(by_row(_position, pa.int32()), _TEXT, _TEXT)
_LENGTH = function(_unary(_length), Kind.BYTES)
_REGEXP_LIKE = function(
    kernel_or_rows(_regexp_like_fast, by_row(_regexp_like, pa.bool_())),
    _TEXT,
    _TEXT,
    _TEXT,
    least=2,
)

TEXT_FUNCTIONS: Mapping[str, Function] = {
    "lower": function(_unary(pc.utf8_lower), _TEXT),
    "upper": function(_unary(pc.utf8_upper), _TEXT),
    "length": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "octet_length": function(
        _unary(lambda values: pc.binary_length(values).cast(pa.int32())), Kind.BYTES
    ),
    "bit_length": function(
        _unary(lambda values: pc.multiply(pc.binary_length(values), 8).cast(pa.int32())), Kind.BYTES
    ),
    "substr": _SUBSTR,
    "substring": _SUBSTR,
    "left": function(by_row(_left, pa.string()), _TEXT, _INT),
    "right": function(by_row(_right, pa.string()), _TEXT, _INT),
    "trim": _BTRIM,
    "btrim": _BTRIM,
    "ltrim": function(
        _trim(pc.utf8_ltrim, lambda text, *c: text.lstrip(*c or (" ",))), _TEXT, _TEXT, least=1
    ),
    "rtrim": function(
        _trim(pc.utf8_rtrim, lambda text, *c: text.rstrip(*c or (" ",))), _TEXT, _TEXT, least=1
    ),
    "replace": function(
        kernel_or_rows(_replace_fast, by_row(_replace, pa.string())), _TEXT, _TEXT, _TEXT
    ),
    "concat": function(_concat, Kind.AS_TEXT, variadic=True),
    "concat_ws": function(_concat_ws, Kind.AS_TEXT, least=2, variadic=True, subject=1),
    "||": function(_join, Kind.AS_TEXT, Kind.AS_TEXT),
    "starts_with": function(
        kernel_or_rows(_starts_fast, by_row(str.startswith, pa.bool_())), _TEXT, _TEXT
    ),
    "ends_with": function(
        kernel_or_rows(_ends_fast, by_row(str.endswith, pa.bool_())), _TEXT, _TEXT
    ),
    "contains": function(
        kernel_or_rows(_contains_fast, by_row(str.__contains__, pa.bool_())), _TEXT, _TEXT
    ),
    "contains_tokens": function(by_row(_contains_tokens, pa.bool_()), _TEXT, _TEXT),
    "strpos": _STRPOS,
    "instr": _STRPOS,
    "split_part": function(by_row(_split_part, pa.string()), _TEXT, _TEXT, _INT),
    "reverse": function(_unary(pc.utf8_reverse), _TEXT),
    "lpad": function(by_row(_lpad, pa.string()), _TEXT, _INT, _TEXT, least=2),
    "rpad": function(by_row(_rpad, pa.string()), _TEXT, _INT, _TEXT, least=2),
    "repeat": function(by_row(_repeat, pa.string()), _TEXT, _INT),
    "initcap": function(by_row(_initcap, pa.string()), _TEXT),
    "ascii": function(by_row(lambda text: ord(text[0]) if text else 0, pa.int32()), _TEXT),
    "regexp_like": _REGEXP_LIKE,
    "regexp_match": function(
        by_row(_regexp_match, pa.list_(pa.string())), _TEXT, _TEXT, _TEXT, least=2
    ),
    "regexp_count": function(
        by_row(lambda text, pattern: len(_regex(pattern).findall(text)), pa.int64()), _TEXT, _TEXT
    ),
    "regexp_replace": function(
        by_row(_regexp_replace, pa.string()), _TEXT, _TEXT, _TEXT, _TEXT, least=3
    ),
    "md5": function(by_row(lambda value: _digest("md5")(value).hex(), pa.string()), Kind.BYTES),
    "sha256": function(by_row(_digest("sha256"), pa.binary()), Kind.BYTES),
}
