"""Parse SQL text: plain tests of columns, alone or joined by AND, at once; the rest with sqlglot.

sqlglot takes longer to read such text than an index takes to find its rows. These tests are read
here, into the very tree that sqlglot's would become:

====================================  ==========================================================
``column op constant``                a constant is a number, text, ``TRUE`` or ``FALSE``
``column [NOT] IN (constants)``       numbers without, numbers with a fraction, or texts
``column BETWEEN number AND number``
``column IS [NOT] NULL``
``function(column, text)``            functions without a grammar of their own
====================================  ==========================================================
"""

import re
from collections.abc import Callable

from lancetable.expression.functions.table import FUNCTIONS
from lancetable.expression.sql.long_lists import plain_list
from lancetable.expression.tree import (
    And,
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Literals,
    literal,
)

_SPACE = r"[ \t\r\n]"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_INTEGER = r"-?[0-9]{1,18}+(?![0-9.eExX_A-Za-z])"
_DECIMAL = r"-?[0-9]++(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++)(?![0-9.eExX_A-Za-z])"
_TEXT = r"'[^']*+(?:''[^']*+)*+'"
_CONSTANT = rf"(?:(?P<i>{_INTEGER})|(?P<f>{_DECIMAL})|(?P<s>{_TEXT})|(?P<b>TRUE|FALSE)\b)"
_START = re.compile(
    rf"{_SPACE}*+(?:(?P<call>{_NAME})\({_SPACE}*+)?(?P<column>{_NAME}(?:\.{_NAME}){{0,2}}+)",
)
_COMPARED = re.compile(rf"{_SPACE}*+(?P<op><=|>=|<>|!=|=|<|>){_SPACE}*+{_CONSTANT}", re.IGNORECASE)
_LISTED = re.compile(rf"{_SPACE}++(?P<no>NOT{_SPACE}++)?IN{_SPACE}*+\(", re.IGNORECASE)
_NULL = re.compile(rf"{_SPACE}++IS{_SPACE}++(?P<no>NOT{_SPACE}++)?NULL\b", re.IGNORECASE)
_BETWEEN = re.compile(
    rf"{_SPACE}++BETWEEN{_SPACE}++(?P<low>{_INTEGER}|{_DECIMAL}){_SPACE}++AND{_SPACE}++"
    rf"(?P<high>{_INTEGER}|{_DECIMAL})",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(rf"{_SPACE}*+,{_SPACE}*+(?P<s>{_TEXT}){_SPACE}*+\)")
_AND = re.compile(rf"{_SPACE}++AND(?={_SPACE})", re.IGNORECASE)
_END = re.compile(rf"{_SPACE}*+\Z")
_OPERATORS = {
    "=": Comparison.EQ,
    "<>": Comparison.NE,
    "!=": Comparison.NE,
    "<": Comparison.LT,
    "<=": Comparison.LE,
    ">": Comparison.GT,
    ">=": Comparison.GE,
}
_WORDS = """
ALL ALTER AND ARRAY AS BETWEEN CALL CASE CREATE CROSS CURRENT_DATE CURRENT_TIMESTAMP DISTINCT
DROP ELSE EXCEPT EXECUTE EXPLAIN FALSE FETCH FOR FROM GLOB GRANT HAVING ILIKE INNER INSERT
INTERSECT INTERVAL INTO JOIN LATERAL LIKE LIST MAP NOT NOTNULL NULL NULLABLE OBJECT ON OPTIMIZE
OR OUTER PARTITIONED_BY PREPARE QUALIFY RANGE REGEXP RENAME RETURNING REVOKE RLIKE ROLLBACK
SELECT SHOW STRUCT TABLESAMPLE THEN TRUE UNCACHE UNION USING VACUUM WHEN WHERE WITH XOR
"""
_RESERVED = frozenset(_WORDS.split())
"""Words with a meaning of their own where a column may stand."""
_SPECIAL = frozenset({"cast", "try_cast", "extract", "position", "substring", "trim"})


def parse(text: str) -> Expression:
    """Parse SQL text; sqlglot is loaded for the first text that is not plain: that takes long.

    Raises:
        ExpressionError: The text is not an expression this library supports.
    """
    found = parse_simple(text)
    if found is not None:
        return found
    from lancetable.expression.sql.parse import parse as parse_sql  # noqa: PLC0415

    return parse_sql(text)


def parse_simple(text: str) -> Expression | None:
    """Parse text that has only plain tests; None for any other."""
    parts: list[Expression] = []
    at = 0
    while True:
        found = _test(text, at)
        if found is None:
            return None
        parts.append(found[0])
        at = found[1]
        if _END.match(text, at):
            return parts[0] if len(parts) == 1 else And(tuple(parts))
        joined = _AND.match(text, at)
        if joined is None:
            return None
        at = joined.end()


def _test(text: str, at: int) -> tuple[Expression, int] | None:
    """Return the test that begins at a position, and where it ends."""
    start = _START.match(text, at)
    if start is None:
        return None
    path = tuple(start["column"].split("."))
    if any(name.upper() in _RESERVED for name in path):
        return None
    column = Column(path, start.start("column"))
    if start["call"] is not None:
        return _call(text, start, column)
    for pattern, read in _TESTS:
        found = pattern.match(text, start.end())
        if found is not None:
            return read(text, found, column)
    return None


def _compared(text: str, found: re.Match[str], column: Column) -> tuple[Expression, int] | None:
    return Compare(_OPERATORS[found["op"]], column, _constant(found)), found.end()


def _constant(found: re.Match[str]) -> Literal:
    kind = found.lastgroup
    written = found[kind or 0]
    if kind == "i":
        return literal(int(written))
    if kind == "f":
        return literal(float(written))
    return _text(written) if kind == "s" else literal(written.upper() == "TRUE")


def _text(written: str) -> Literal:
    return literal(written[1:-1].replace("''", "'"))


def _listed(text: str, found: re.Match[str], column: Column) -> tuple[Expression, int] | None:
    items = plain_list(text, found.end())
    if items is None:
        return None
    return In(column, Literals(items.values), negated=found["no"] is not None), items.end + 1


def _null(text: str, found: re.Match[str], column: Column) -> tuple[Expression, int] | None:
    return IsNull(column, negated=found["no"] is not None), found.end()


def _between(text: str, found: re.Match[str], column: Column) -> tuple[Expression, int] | None:
    low, high = (
        literal(int(one) if one.lstrip("-").isdecimal() else float(one))
        for one in (found["low"], found["high"])
    )
    inside = Compare(Comparison.GE, column, low), Compare(Comparison.LE, column, high)
    return And(inside), found.end()


def _call(text: str, start: re.Match[str], column: Column) -> tuple[Expression, int] | None:
    name = start["call"].lower()
    argument = _ARGUMENT.match(text, start.end())
    if argument is None or name in _SPECIAL or name.upper() in _RESERVED:
        return None
    function = FUNCTIONS.get(name)
    if function is None or not function.accepts(2):
        return None
    return Call(name, (column, _text(argument["s"])), start.start("call")), argument.end()


_Reader = Callable[[str, re.Match[str], Column], tuple[Expression, int] | None]
_TESTS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_COMPARED, _compared),
    (_LISTED, _listed),
    (_BETWEEN, _between),
    (_NULL, _null),
)
