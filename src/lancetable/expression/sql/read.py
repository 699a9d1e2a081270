"""Read SQL text with sqlglot; errors name the position in the text."""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from lancetable.errors import ExpressionError
from lancetable.expression.sql.dialect import LanceSql


def read_sql(text: str) -> exp.Expression:
    """Parse SQL text into sqlglot's tree.

    Raises:
        ExpressionError: the text is not SQL; the message names the position.
    """
    try:
        tree = sqlglot.parse_one(text, dialect=LanceSql, into=exp.Condition)
    except TokenError as cause:
        raise syntax_error(text, _open_quote(text), "a quote is never closed") from cause
    except ParseError as cause:
        if not cause.errors:
            raise ExpressionError("the expression is empty", position=0) from cause
        raise _located(text, cause.errors[0]) from cause
    if not isinstance(tree, exp.Expression):
        raise syntax_error(text, 0, "this is not an expression")
    return tree


def syntax_error(text: str, position: int | None, reason: str) -> ExpressionError:
    """Return the error for a position in the text of an expression."""
    if position is None:
        return ExpressionError(f"cannot use the expression {text!r}: {reason}")
    start = max(position - 20, 0)
    near = text[start : position + 30]
    message = f"cannot use the expression at position {position}, near {near!r}: {reason}"
    return ExpressionError(message, position=position)


def _located(text: str, found: Mapping[str, object]) -> ExpressionError:
    lines = text.splitlines(keepends=True)
    line, column = int(str(found.get("line") or 1)), int(str(found.get("col") or 0))
    token = str(found.get("highlight") or "")
    position = sum(len(each) for each in lines[: line - 1]) + column - len(token)
    description = str(found.get("description") or "")
    if description.startswith("Required"):
        reason = f"something is missing after {token!r}"
    elif description.startswith("Expect"):
        reason = f"{description.lower()} after {token!r}"
    else:
        reason = f"unexpected {token!r}"
    return syntax_error(text, min(max(position, 0), len(text)), reason)


def _open_quote(text: str) -> int | None:
    opened: tuple[int, str] | None = None
    for position, character in enumerate(text):
        if opened is None and character in "'\"`":
            opened = (position, character)
        elif opened is not None and character == opened[1]:
            opened = None
    return None if opened is None else opened[0]
