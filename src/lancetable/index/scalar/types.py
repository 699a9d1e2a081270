"""Column types that indices on plain values take."""

import pyarrow as pa

_TAKEN = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_decimal128,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)


def refuses_values(type_: pa.DataType) -> str | None:
    """Return why values of a type cannot be ordered in an index."""
    if any(is_taken(type_) for is_taken in _TAKEN):
        return None
    return "it takes numbers, booleans, text, binary, decimals, dates and times"


def refuses_lists(type_: pa.DataType) -> str | None:
    """Return why a column cannot have an index on the items of its lists."""
    if not pa.types.is_list(type_) and not pa.types.is_large_list(type_):
        return "it takes lists"
    return None if refuses_values(type_.value_type) is None else "it takes lists of plain values"
