"""Functions that make structs."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lancetable.errors import ExpressionError
from lancetable.expression.coerce import is_text
from lancetable.expression.functions.signature import Function, Kind, spread


def _named_struct(arguments: Sequence[pa.Array]) -> pa.Array:
    names, values = arguments[0::2], arguments[1::2]
    if len(names) != len(values):
        raise ExpressionError(
            f"named_struct takes pairs of a name and a value, not {len(arguments)} arguments"
        )
    texts: list[str] = []
    for name in names:
        if not (isinstance(name, pa.Scalar) and is_text(name.type) and name.is_valid):
            raise ExpressionError("named_struct takes names as constant texts, like 'a'")
        if name.as_py() in texts:
            raise ExpressionError(f"named_struct has the field {name.as_py()!r} twice")
        texts.append(name.as_py())
    rows = len(values[0])
    return pa.StructArray.from_arrays([spread(each, rows) for each in values], texts)


STRUCT_FUNCTIONS: Mapping[str, Function] = {
    "named_struct": Function(_named_struct, (Kind.ANY,), least=2, most=None, subject=1),
}
