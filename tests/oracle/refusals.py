"""What pylance does not write, or cannot read whoever wrote it; such tables prove nothing."""

import pyarrow as pa

WORDS = (
    "does not encode struct validity",
    "not supported",
    "not yet implemented",
    "Not supported",
    "Please file a bug report",
    "null_bit_buffer size too small",
    "should not be used for fixed-width",
    "Encountered corrupt file",
    "Expected 2 buffers in array",
    "contains nulls not present in parent",
    "panicked with message",
    "must be byte aligned",
    "column types must match schema types",
)


def is_refusal(cause: BaseException) -> bool:
    """Say whether pylance declined, or broke down over, what it was given to write."""
    if type(cause).__name__ == "PanicException":
        return True
    return isinstance(cause, Exception) and any(words in str(cause) for words in WORDS)


def is_empty_packed(cause: BaseException, schema: pa.Schema) -> bool:
    """Say whether pylance broke down over lists of packed structs that are all empty.

    It does so with its own files, too, whenever the rows asked for hold no such struct.
    """
    return "didn't see any data" in str(cause) and any(
        _has_packed(field, inside=False) for field in schema
    )


def _has_packed(field: pa.Field, *, inside: bool) -> bool:
    """Say whether there is a packed struct inside of a list or a map."""
    if inside and b"lance-encoding:packed" in (field.metadata or {}):
        return True
    kind = field.type
    children = [kind.field(place) for place in range(kind.num_fields)]
    inside = inside or not pa.types.is_struct(kind)
    return any(_has_packed(child, inside=inside) for child in children)
