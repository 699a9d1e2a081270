"""The SQL dialect of the parser.

sqlglot's neutral dialect with three changes: names may be quoted with backticks as well as double
quotes, a backslash inside a string is a plain character, and a function keeps the name the user
gave it instead of becoming a node class of its own.
"""

from typing import ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer, TokenType  # type: ignore[attr-defined]

# Only the functions with a grammar of their own: CAST(x AS t), EXTRACT(u FROM x), TRIM(BOTH …).
_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


class _Tokenizer(Tokenizer):
    IDENTIFIERS: ClassVar = ['"', "`"]
    HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'"), ("0x", ""), ("0X", "")]
    STRING_ESCAPES: ClassVar = ["'"]


class _Parser(Parser):
    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {name: Parser.FUNCTION_PARSERS[name] for name in _SPECIAL}
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    NO_PAREN_FUNCTIONS: ClassVar = {
        kind: Parser.NO_PAREN_FUNCTIONS[kind]
        for kind in (TokenType.CURRENT_DATE, TokenType.CURRENT_TIMESTAMP)
    }


class LanceSql(Dialect):
    """The SQL of filters and computed columns."""

    Tokenizer = _Tokenizer
    Parser = _Parser
