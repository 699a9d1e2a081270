"""Parse SQL text into an expression.

sqlglot parses the text; this module translates its tree and rejects everything else, naming the
position. It is imported on first use only, because importing sqlglot takes long.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from lancetable.errors import ExpressionError
from lancetable.expression.arrow_types import EXAMPLES, parse_arrow_type
from lancetable.expression.functions.table import FUNCTIONS
from lancetable.expression.simplify import negate
from lancetable.expression.sql import types as sqltypes
from lancetable.expression.sql.long_lists import cut_long_lists
from lancetable.expression.sql.precedence import group
from lancetable.expression.sql.read import read_sql, syntax_error
from lancetable.expression.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Item,
    Like,
    Literal,
    Literals,
    Negate,
    Operation,
    Or,
    literal,
)

_NULL = literal(None)
_LARGEST_DECIMAL = 10**38

_Rule: TypeAlias = Callable[[exp.Expression], Expression]


def parse(text: str) -> Expression:
    """Parse SQL text.

    Raises:
        ExpressionError: The text is not an expression this library supports.
    """
    try:
        found = _parse_long_lists(text)
        return _Translation(text).translate(read_sql(text)) if found is None else found
    except RecursionError as cause:
        message = "the expression is nested too deeply: simplify it or use IN for long lists"
        raise ExpressionError(message) from cause


def _parse_long_lists(text: str) -> Expression | None:
    """Parse text with long lists of plain constants; None where the parser has to read them."""
    short = cut_long_lists(text)
    if not short.values:
        return None
    left = dict(short.values)
    try:
        found = _Translation(text, left).translate(read_sql(short.text))
    except ExpressionError:
        return None
    return None if left else found


class _Translation:
    """Translates one parsed text; the text is used to report positions."""

    def __init__(self, text: str, lists: dict[int, pa.Array] | None = None) -> None:
        self._text = text
        self._lists = {} if lists is None else lists
        self._rules: Mapping[type[exp.Expression], _Rule] = {
            exp.Paren: lambda node: self.translate(node.this),
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Literal: self._literal,
            exp.Boolean: lambda node: literal(bool(node.this)),
            exp.Null: lambda _: _NULL,
            exp.HexString: self._hex,
            exp.Interval: self._interval,
            exp.And: lambda node: And(self._chain(node, exp.And)),
            exp.Or: lambda node: Or(self._chain(node, exp.Or)),
            exp.Not: lambda node: negate(self.translate(node.this)),
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.ILike: self._like,
            exp.Escape: self._escape,
            exp.Is: self._is,
            exp.Neg: self._negative,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Case: self._case,
            exp.Bracket: self._bracket,
            exp.Array: lambda node: self._call("make_array", node.expressions),
            exp.Anonymous: self._function,
            exp.RegexpLike: lambda node: self._call("regexp_like", [node.this, node.expression]),
            exp.Extract: self._extract,
            exp.Substring: lambda node: self._call("substr", list(node.args.values())),
            exp.StrPosition: lambda node: self._call("strpos", [node.this, node.args["substr"]]),
            exp.Trim: self._trim,
            exp.CurrentDate: lambda _: Call("current_date", ()),
            exp.CurrentTimestamp: lambda _: Call("now", ()),
        }

    def translate(self, node: exp.Expression | None) -> Expression:
        if node is None:
            raise syntax_error(self._text, None, "an operand is missing")
        kind = type(node)
        if kind in _COMPARISONS:
            return self._compare(node)
        if kind in _CHAINED:
            return self._chained(node)
        if kind in _OPERATIONS:
            left, right = self.translate(node.this), self.translate(node.expression)
            return Arithmetic(_OPERATIONS[kind], left, right)
        rule = self._rules.get(kind)
        if rule is None:
            raise self._refuse(node, f"{_sql(node)!r} is not supported in an expression")
        return rule(node)

    def _compare(self, node: exp.Expression) -> Expression:
        left, right = self.translate(node.this), node.expression
        # sqlglot binds IS tighter than a comparison, SQL the other way round.
        inner = right.this if self._is_implied(right) else right
        denied = isinstance(inner, exp.Not) and isinstance(inner.this, exp.Is)
        test = inner.this if denied else inner
        if not isinstance(test, exp.Is):
            return Compare(_COMPARISONS[type(node)], left, self.translate(right))
        compared = Compare(_COMPARISONS[type(node)], left, self.translate(test.this))
        found = self._is(test, compared)
        return negate(found) if denied else found

    def _is_implied(self, node: exp.Expression) -> bool:
        """Return whether sqlglot added these parentheses: the text has fewer of them."""
        start = _position(node)
        if not isinstance(node, exp.Paren) or start is None:
            return False
        before = self._text[:start].replace(" ", "").replace("\n", "")
        written = len(before) - len(before.rstrip("("))
        spine: list[exp.Expression] = [node]
        while isinstance(spine[-1].this, exp.Expression):
            spine.append(spine[-1].this)
        return sum(isinstance(each, exp.Paren) for each in spine) > written

    def _refuse(self, node: exp.Expression, reason: str) -> ExpressionError:
        return syntax_error(self._text, _position(node), reason)

    def _chain(self, node: exp.Expression, kind: type[exp.Expression]) -> tuple[Expression, ...]:
        parts: list[exp.Expression] = []
        while isinstance(node, kind):
            parts.append(node.expression)
            node = node.this
        parts.append(node)
        return tuple(self.translate(part) for part in reversed(parts))

    def _chained(self, node: exp.Expression) -> Expression:
        """Group operators by precedence that sqlglot joined from left to right."""
        operands, operators = list[Expression](), list[type[exp.Expression]]()
        while type(node) in _CHAINED:
            operands.append(self.translate(node.expression))
            operators.append(type(node))
            node = node.this
        operands.append(self.translate(node))
        return group(operands[::-1], operators[::-1], _CHAINED.__getitem__, _joined)

    def _column(self, node: exp.Expression) -> Expression:
        parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
        names = [part for part in parts if part is not None]
        if not all(isinstance(part, exp.Identifier) for part in names):
            raise self._refuse(node, "'*' is not supported in an expression")
        start = _position(node)
        is_quoted = start is not None and self._text[start : start + 1] == '"'
        return Column(tuple(part.name for part in names), start, is_quoted)

    def _dot(self, node: exp.Expression) -> Expression:
        inner = self.translate(node.this)
        if not isinstance(node.expression, exp.Identifier):
            raise self._refuse(node, f"{_sql(node.expression)!r} is not a field name")
        if isinstance(inner, Column):
            return Column((*inner.path, node.expression.name), inner.position)
        return Item(inner, literal(node.expression.name))

    def _literal(self, node: exp.Expression) -> Expression:
        if node.is_string:
            return literal(node.this)
        text = str(node.this)
        if text.isdecimal():
            return _integer(int(text)) if len(text) <= 39 else literal(float(text))
        try:
            return literal(float(text))
        except ValueError as cause:
            raise self._refuse(node, f"{text!r} is not a number") from cause

    def _hex(self, node: exp.Expression) -> Expression:
        try:
            return literal(bytes.fromhex(str(node.this)))
        except ValueError as cause:
            raise self._refuse(node, f"{node.this!r} is not hexadecimal bytes") from cause

    def _interval(self, node: exp.Expression) -> Expression:
        unit = node.args.get("unit")
        text = f"{node.this.name if node.this else ''} {unit.name if unit else ''}"
        interval = sqltypes.parse_interval(text)
        if interval is None:
            raise self._refuse(node, f"{text.strip()!r} is not an interval like '3 days'")
        return Literal(pa.scalar(interval, pa.month_day_nano_interval()))

    def _in(self, node: exp.Expression) -> Expression:
        if node.args.get("query") is not None or not node.expressions:
            raise self._refuse(node, "IN takes a list of values in parentheses")
        first = node.expressions[0]
        known = self._lists.pop(first.meta.get("start"), None) if self._lists else None
        if known is not None:
            return In(self.translate(node.this), Literals(known))
        items = tuple(self.translate(item) for item in node.expressions)
        return In(self.translate(node.this), items)

    def _between(self, node: exp.Expression) -> Expression:
        operand = self.translate(node.this)
        low, high = self.translate(node.args["low"]), self.translate(node.args["high"])
        inside = And((Compare(Comparison.GE, operand, low), Compare(Comparison.LE, operand, high)))
        if not node.args.get("symmetric"):
            return inside
        turned = And((Compare(Comparison.GE, operand, high), Compare(Comparison.LE, operand, low)))
        return Or((inside, turned))

    def _like(self, node: exp.Expression, escape: str = "\\") -> Expression:
        operand, pattern = self.translate(node.this), self.translate(node.expression)
        found = Like(operand, pattern, ignore_case=isinstance(node, exp.ILike), escape=escape)
        return negate(found) if node.args.get("negate") else found

    def _escape(self, node: exp.Expression) -> Expression:
        mark = node.expression
        if not (isinstance(mark, exp.Literal) and mark.is_string and len(mark.this) == 1):
            raise self._refuse(node, "ESCAPE takes one character in single quotes")
        inner = node.this
        if isinstance(inner, exp.Not):
            return negate(self._like(inner.this, mark.this))
        return self._like(inner, mark.this)

    def _is(self, node: exp.Expression, operand: Expression | None = None) -> Expression:
        operand = self.translate(node.this) if operand is None else operand
        if isinstance(node.expression, exp.Null):
            return IsNull(operand)
        if isinstance(node.expression, exp.Boolean):
            return IsTrue(operand, value=bool(node.expression.this))
        raise self._refuse(node, "IS is followed by NULL, TRUE, FALSE or DISTINCT FROM")

    def _negative(self, node: exp.Expression) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            positive = self._literal(node.this)
            if isinstance(positive, Literal) and not isinstance(positive.value, float):
                return _integer(-int(str(positive.value)))
            if isinstance(positive, Literal):
                return literal(-float(str(positive.value)))
        return Negate(self.translate(node.this))

    def _cast(self, node: exp.Expression) -> Expression:
        wanted = sqltypes.arrow_type(node.args["to"])
        if wanted is None:
            names = ", ".join(sqltypes.TYPE_NAMES)
            reason = f"{_sql(node.args['to'])!r} is not a type; there are {names}"
            raise self._refuse(node, reason)
        return Cast(self.translate(node.this), wanted, or_null=isinstance(node, exp.TryCast))

    def _case(self, node: exp.Expression) -> Expression:
        default = node.args.get("default")
        otherwise = _NULL if default is None else self.translate(default)
        subject = None if node.this is None else self.translate(node.this)
        branches = []
        for branch in node.args["ifs"]:
            when, then = self.translate(branch.this), self.translate(branch.args["true"])
            if subject is not None:
                when = Compare(Comparison.EQ, subject, when)
            branches.append((when, then))
        return Case(tuple(branches), otherwise)

    def _bracket(self, node: exp.Expression) -> Expression:
        if len(node.expressions) != 1:
            raise self._refuse(node, "an index must be one number or one field name")
        inner, key = self.translate(node.this), self.translate(node.expressions[0])
        if isinstance(inner, Column) and isinstance(key, Literal) and isinstance(key.value, str):
            return Column((*inner.path, key.value), inner.position)
        return Item(inner, key)

    def _function(self, node: exp.Expression) -> Expression:
        name = str(node.this).lower()
        if name in {"arrow_cast", "arrow_try_cast"}:
            return self._arrow_cast(node, or_null=name == "arrow_try_cast")
        return self._call(name, node.expressions, _position(node))

    def _arrow_cast(self, node: exp.Expression, *, or_null: bool) -> Expression:
        given = node.expressions
        if len(given) != 2 or not (isinstance(given[1], exp.Literal) and given[1].is_string):
            raise self._refuse(node, f"{node.this} takes a value and the text of an Arrow type")
        type_ = parse_arrow_type(given[1].this)
        if type_ is None:
            reason = f"{given[1].this!r} is not an Arrow type; write it like one of {EXAMPLES}"
            raise self._refuse(node, reason)
        return Cast(self.translate(given[0]), type_, or_null)

    def _call(
        self, name: str, arguments: list[exp.Expression | None], position: int | None = None
    ) -> Expression:
        function = FUNCTIONS.get(name)
        if function is None:
            close = difflib.get_close_matches(name, FUNCTIONS, n=3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise syntax_error(self._text, position, f"there is no function {name}{hint}")
        translated = tuple(self.translate(each) for each in arguments if each is not None)
        if not function.accepts(len(translated)):
            reason = f"{name} takes {function.arity}, not {len(translated)}"
            raise syntax_error(self._text, position, reason)
        return Call(name, translated, position)

    def _extract(self, node: exp.Expression) -> Expression:
        unit = literal(str(node.this.name).lower())
        return Call("date_part", (unit, self.translate(node.expression)), _position(node))

    def _trim(self, node: exp.Expression) -> Expression:
        side = str(node.args.get("position") or "BOTH").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim")
        return self._call(name, [node.this, node.args.get("expression")])


def _joined(kind: type[exp.Expression], left: Expression, right: Expression) -> Expression:
    if kind is exp.DPipe:
        return Call("||", (left, right))
    return Arithmetic(_OPERATIONS[kind], left, right)


def _integer(value: int) -> Literal:
    if -(2**63) <= value < 2**63:
        return literal(value, pa.int64())
    if 0 <= value < 2**64:
        return literal(value, pa.uint64())
    if abs(value) < _LARGEST_DECIMAL:
        return literal(value, pa.decimal128(38, 0))
    return literal(float(value))


def _position(node: exp.Expression) -> int | None:
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


def _sql(node: exp.Expression) -> str:
    return re.sub(r"\s+", " ", node.sql())


_COMPARISONS: Mapping[type[exp.Expression], Comparison] = {
    exp.EQ: Comparison.EQ,
    exp.NEQ: Comparison.NE,
    exp.LT: Comparison.LT,
    exp.LTE: Comparison.LE,
    exp.GT: Comparison.GT,
    exp.GTE: Comparison.GE,
    exp.NullSafeEQ: Comparison.NOT_DISTINCT,
    exp.NullSafeNEQ: Comparison.DISTINCT,
}
_OPERATIONS: Mapping[type[exp.Expression], Operation] = {
    exp.Add: Operation.ADD,
    exp.Sub: Operation.SUBTRACT,
    exp.Mul: Operation.MULTIPLY,
    exp.Div: Operation.DIVIDE,
    exp.Mod: Operation.REMAINDER,
    exp.BitwiseAnd: Operation.BIT_AND,
    exp.BitwiseOr: Operation.BIT_OR,
    exp.BitwiseLeftShift: Operation.SHIFT_LEFT,
    exp.BitwiseRightShift: Operation.SHIFT_RIGHT,
}
_CHAINED: Mapping[type[exp.Expression], int] = {
    exp.DPipe: 4,
    exp.BitwiseAnd: 3,
    exp.BitwiseLeftShift: 2,
    exp.BitwiseRightShift: 2,
    exp.BitwiseOr: 1,
}
"""Operators that sqlglot gives one precedence, with that of DataFusion, the tightest highest."""
