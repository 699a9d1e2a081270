"""Make message classes from a serialised file of descriptors.

protobuf's own way loads its text format, its JSON form and a second implementation of everything,
which takes longer than opening a table. Its compiled core can do without them; where that core is
missing or has changed, the usual way is taken.
"""

from typing import Any


def add_file(serialized: bytes, module: str, names: dict[str, Any]) -> Any:  # noqa: ANN401
    """Add the messages of a file to the names of its module and return the file's descriptor."""
    try:
        return _add_lean(serialized, module, names)
    except (ImportError, AttributeError, TypeError):
        return _add_as_usual(serialized, module, names)


def _add_lean(serialized: bytes, module: str, names: dict[str, Any]) -> Any:  # noqa: ANN401
    from google._upb import _message as core  # noqa: PLC0415 - there may be another implementation
    from google.protobuf.message import Message  # noqa: PLC0415

    def build(message: Any) -> Any:  # noqa: ANN401
        attributes = {nested.name: build(nested) for nested in message.nested_types}
        attributes |= {"DESCRIPTOR": message, "__module__": module}
        return core.MessageMeta(message.name, (Message,), attributes)

    file = core.default_pool.AddSerializedFile(serialized)
    for name, message in file.message_types_by_name.items():
        names[name] = build(message)
    return file


def _add_as_usual(serialized: bytes, module: str, names: dict[str, Any]) -> Any:  # noqa: ANN401
    from google.protobuf import descriptor_pool  # noqa: PLC0415
    from google.protobuf.internal import builder  # noqa: PLC0415

    file = descriptor_pool.Default().AddSerializedFile(serialized)
    builder.BuildMessageAndEnumDescriptors(file, names)
    builder.BuildTopDescriptorsAndMessages(file, module, names)
    return file
