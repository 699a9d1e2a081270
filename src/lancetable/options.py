"""Declare, check and parse options.

The options of an operation are the fields of a frozen dataclass, each declared with ``option``.
Validation, keyword arguments, options of the command line and text options of Spark follow from
the fields, so that an option is declared once.
"""

import re
import typing
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from functools import lru_cache
from numbers import Integral, Real
from os import PathLike
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, cast

from lancetable.errors import InputError

Unit = Literal["bytes", "duration"]
Options = TypeVar("Options")

_RULE = "lancetable"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AGE = re.compile(r"(\d+)\s*([smhdw]?)")
_AGES = {"": "days", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Rule:
    """What is declared about an option beside its type and its default."""

    help: str
    unit: Unit | None = None
    minimum: float | None = None
    maximum: float | None = None
    is_exclusive: bool = False
    """True when the minimum itself is not allowed."""
    in_cli: bool = True
    """False for an option that the command line does not offer."""


class Declared(NamedTuple):
    """One option: its name, its type without ``None``, and its rule."""

    name: str
    kind: object
    is_optional: bool
    default: object
    rule: Rule


def option(  # noqa: PLR0913 - each has a default
    default: object = MISSING,
    *,
    help: str,  # noqa: A002 - the word of command lines
    default_factory: Callable[[], object] | None = None,
    unit: Unit | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    is_exclusive: bool = False,
    in_cli: bool = True,
) -> Any:  # noqa: ANN401 - the type of the field
    """Declare an option as a field of a dataclass."""
    rule = Rule(help, unit, minimum, maximum, is_exclusive, in_cli)
    if default_factory is not None:
        return field(default_factory=default_factory, metadata={_RULE: rule})
    return field(default=default, metadata={_RULE: rule})


def declared(kind: type) -> tuple[Declared, ...]:
    """Return the options that a dataclass declares, in order."""
    return _declared(cast("Hashable", kind))


@lru_cache(maxsize=64)
def _declared(key: Hashable) -> tuple[Declared, ...]:
    kind = cast("type", key)
    hints = typing.get_type_hints(kind)
    found = []
    for one in fields(kind):
        rule = one.metadata.get(_RULE)
        if rule is not None:
            type_, is_optional = _without_none(hints[one.name])
            found.append(Declared(one.name, type_, is_optional, one.default, rule))
            if one.default is not MISSING:
                _settled(found[-1], one.default)  # raises when the default is not valid itself
    return tuple(found)


def check_options(options: object) -> None:
    """Validate all options of a frozen dataclass; texts of sizes and durations become numbers.

    Raises:
        InputError: a value has the wrong type or is out of range.
    """
    for one in declared(type(options)):
        given = getattr(options, one.name)
        if given is one.default:  # valid already
            continue
        settled = _settled(one, given)
        if settled is not given:
            object.__setattr__(options, one.name, settled)


def parse_options(kind: type[Options], given: Mapping[str, object]) -> Options:
    """Return options with the given values in place of the defaults.

    Raises:
        InputError: there is no such option, or a value is not valid.
    """
    if given:
        known = {one.name for one in fields(cast("Any", kind))}
        for name in given:
            if name not in known:
                names = ", ".join(one.name for one in declared(kind))
                raise InputError(f"there is no option {name!r}; use one of {names}")
    return kind(**given)


def parse_texts(kind: type[Options], texts: Mapping[str, str]) -> Options:
    """Return options whose values are given as text, such as those of a Spark reader.

    Lists are separated by commas, ``true`` and ``false`` are booleans, sizes and durations may
    have a unit.

    Raises:
        InputError: there is no such option, or a text is not valid.
    """
    rules = {one.name: one for one in declared(kind)}
    return parse_options(
        kind,
        {name: _read(rules[name], text) if name in rules else text for name, text in texts.items()},
    )


def byte_size(value: int | str) -> int:
    """Return a number of bytes, which text may give with a unit: ``256MB``, ``1.5GiB``.

    Raises:
        InputError: the text is not a size.
    """
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise InputError(f"{value!r} is not a size; write it like 256MB or 1GiB")
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** _POWERS[found[2].lower()])


def duration(value: timedelta | str) -> timedelta:
    """Return a duration, which text may give with a unit: ``14d``, ``12h``; days without one.

    Raises:
        InputError: the text is not a duration.
    """
    if not isinstance(value, str):
        return value
    found = _AGE.fullmatch(value.strip())
    if found is None:
        raise InputError(f"{value!r} is not a duration; write it like 14d, 12h, 30m or 0")
    try:
        return timedelta(**{_AGES[found[2]]: int(found[1])})
    except OverflowError:
        raise InputError(f"{value!r} is too long; give a shorter duration") from None


def choices(kind: object) -> tuple[str, ...]:
    """Return the values of a ``Literal``; empty for another type."""
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def is_list(kind: object) -> bool:
    """Return whether an option holds several values."""
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Collection)


def _without_none(kind: object) -> tuple[object, bool]:
    if typing.get_origin(kind) not in (typing.Union, UnionType):
        return kind, False
    inner = [one for one in typing.get_args(kind) if one is not type(None)]
    is_optional = len(inner) < len(typing.get_args(kind))
    return (inner[0] if len(inner) == 1 else object), is_optional


def _settled(one: Declared, value: object) -> object:
    if value is None and one.is_optional:
        return value
    if choices(one.kind):
        if value not in choices(one.kind):
            raise _wrong(one, value)
        return value
    if is_list(one.kind):
        return _list(one, value)
    if one.rule.unit is not None and isinstance(value, str):
        try:
            value = byte_size(value) if one.rule.unit == "bytes" else duration(value)
        except InputError as error:
            raise InputError(f"{one.name}: {error}") from None
    if not _is_of(value, one.kind) or not _is_in_range(value, one.rule):
        raise _wrong(one, value)
    return value


def _is_of(value: object, kind: object) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        number = Integral if kind is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if kind is str:
        return isinstance(value, str | PathLike)
    return not isinstance(kind, type) or isinstance(value, kind)


def _is_in_range(value: object, rule: Rule) -> bool:
    low, high = rule.minimum, rule.maximum
    number: Any = value.total_seconds() if isinstance(value, timedelta) else value
    if low is not None and not (number > low if rule.is_exclusive else number >= low):
        return False
    return high is None or bool(number <= high)


def _list(one: Declared, value: object) -> tuple[object, ...]:
    inner = typing.get_args(one.kind)[0]
    if isinstance(value, str):
        raise InputError(f"{one.name} is a list; write [{value!r}]")
    if not isinstance(value, Collection) or isinstance(value, bytes | Mapping):
        raise _wrong(one, value)
    if not all(_is_of(item, inner) for item in value):
        raise _wrong(one, value)
    return value if isinstance(value, tuple) else tuple(value)


def _wrong(one: Declared, value: object) -> InputError:
    return InputError(f"{one.name} is {value!r}; give {expected(one)}")


def expected(one: Declared) -> str:
    """Return in words what an option accepts."""
    rule, kind = one.rule, one.kind
    if choices(kind):
        text = f"one of {', '.join(choices(kind))}"
    elif is_list(kind):
        text = f"a list of {_named(typing.get_args(kind)[0])}"
    elif rule.unit == "duration":
        text = "a timedelta, or text such as '14d'; not a negative one"
    else:
        text = "a size in bytes" if rule.unit == "bytes" else _named(kind)
        if rule.minimum is not None:
            text += f" {'above' if rule.is_exclusive else 'from'} {rule.minimum:g}"
        if rule.maximum is not None:
            text += f" to {rule.maximum:g}"
    return f"{text}, or None" if one.is_optional else text


def _named(kind: object) -> str:
    names = {int: "a whole number", float: "a number", str: "text", bool: "True or False"}
    return names.get(cast("type", kind), getattr(kind, "__name__", str(kind)))


def _read(one: Declared, text: str) -> object:
    if is_list(one.kind):
        inner = typing.get_args(one.kind)[0]
        return tuple(_number(one, item, inner) for item in split_names(text))
    if one.kind is bool:
        if text.strip().lower() not in _TRUTH:
            raise InputError(f"{one.name} is {text!r}; give true or false")
        return _TRUTH[text.strip().lower()]
    return text if one.rule.unit is not None else _number(one, text, one.kind)


def _number(one: Declared, text: str, kind: object) -> object:
    if kind not in (int, float):
        return text
    try:
        return cast("type", kind)(text)
    except ValueError:
        raise InputError(f"{one.name} is {text!r}; give {expected(one)}") from None


def split_names(text: str) -> Sequence[str]:
    """Split names that are separated by commas; a comma inside backticks belongs to a name."""
    names, current, quoted = [], "", False
    for character in text:
        quoted ^= character == "`"
        if character == "," and not quoted:
            names.append(current.strip())
            current = ""
        else:
            current += character
    names.append(current.strip())
    return [name for name in names if name]
