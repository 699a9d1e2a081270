"""Parse SQL text: plain tests of columns at once, everything else with sqlglot."""

from lancetable.expression.sql.simple import parse_simple
from lancetable.expression.tree import Expression


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
