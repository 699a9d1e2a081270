"""Damages messages field by field, so that what comes out still parses."""

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}
_TEXTS = (
    "",
    "\0",
    "..",
    "../x",
    "/etc/passwd",
    "struct",
    "list",
    "a" * 300,
    "fixed_size_list:int8:0",
)


def _places(message: Message) -> list[tuple[Any, FieldDescriptor]]:
    """Return every field that is set, at any depth, with the message that holds it."""
    found = []
    for field, value in message.ListFields():
        found.append((message, field))
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        inner = value if _is_repeated(field) else [value]
        for each in inner:
            found += _places(each)
    return found


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def damage_message(chance: random.Random, message: Message) -> str:
    """Change one field of a message, somewhere in it, and say which."""
    places = _places(message)
    if not places:
        return "nothing to change"
    holder, field = chance.choice(places)
    name = f"{holder.DESCRIPTOR.name}.{field.name}"
    if _is_repeated(field):
        return _damage_list(chance, getattr(holder, field.name), field, name)
    if chance.random() < 0.2:
        holder.ClearField(field.name)
        return f"{name} removed"
    if field.message_type is not None:
        return _damage_child(chance, holder, field, name)
    value = _other(chance, field, getattr(holder, field.name))
    setattr(holder, field.name, value)
    return f"{name} set to {str(value)[:40]!r}"


def _damage_child(chance: random.Random, holder: Any, field: FieldDescriptor, name: str) -> str:
    """Empty a message, or turn it into another one of the same choice."""
    choice = field.containing_oneof
    if choice is not None and len(choice.fields) > 1 and chance.random() < 0.7:
        other = chance.choice([each for each in choice.fields if each.name != field.name])
        if other.message_type is not None:
            getattr(holder, other.name).SetInParent()
            return f"{name} turned into {other.name}"
    getattr(holder, field.name).Clear()
    getattr(holder, field.name).SetInParent()
    return f"{name} emptied"


def _damage_list(chance: random.Random, values: Any, field: FieldDescriptor, name: str) -> str:
    if hasattr(values, "items"):
        values.clear()
        return f"{name} emptied"
    place = chance.randrange(len(values))
    what = chance.choice(("remove", "double", "set", "clear"))
    if what == "remove":
        del values[place]
    elif what == "clear":
        del values[:]
    elif what == "double" or field.message_type is not None:
        extra = [values[place]] * chance.choice((1, 1, 5))
        values.extend(extra)
    else:
        values[place] = _other(chance, field, values[place])
    return f"{name}[{place}] {what}"


def _other(chance: random.Random, field: FieldDescriptor, value: Any) -> Any:
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        near = (value - 1, value + 1, value * 2, value // 2, chance.randrange(300))
        options = [each for each in (*near, low, high, 0, 1, 8, 64, 1 << 30) if low <= each <= high]
        return chance.choice(options)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not value
    if field.type == FieldDescriptor.TYPE_ENUM:
        return chance.choice([each.number for each in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice((*_TEXTS, value[:-1], value * 2, value[::-1]))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice((b"", value[:-1], value * 2, chance.randbytes(len(value)), value[1:]))
    return chance.choice((0.0, -1.0, 1e308))
