"""Keep what scans of one version prepared: plans, bound predicates, asked indices."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lancetable.expression import (
    Call,
    Expression,
    In,
    Literal,
    Opaque,
    bind_predicate,
    columns,
    walk,
)
from lancetable.format.schema.model import Schema
from lancetable.scan.columns import binding_schema
from lancetable.scan.plan import ScanPlan, plan_bound
from lancetable.scan.request import ScanRequest

if TYPE_CHECKING:
    from lancetable.fragment.readers import Readers
    from lancetable.scan.ask_indices import Indices
    from lancetable.scan.take import Taker

K = TypeVar("K")
V = TypeVar("V")

KEPT_PLANS = 16


class Plans:
    """The plans of scans of one version; the last ones are kept."""

    __slots__ = ("_bound", "_kept", "_names", "_taker", "indices", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.indices: Indices | None = None
        """What was asked of indices, for scans that come later."""

        self._taker: tuple[ScanPlan, Readers, Taker] | None = None
        self._names: pa.Schema | None = None
        self._kept: dict[object, ScanPlan] = {}
        self._bound: dict[Expression, Expression] = {}

    def bound(self, where: Expression) -> Expression:
        """Return a predicate bound to the columns.

        Raises:
            ExpressionError: it does not fit the columns, or is no predicate.
        """
        if not _is_reusable(where):
            return bind_predicate(where, self._binding_schema())
        found = self._bound.get(where)
        if found is None:
            found = bind_predicate(where, self._binding_schema())
            _keep(self._bound, where, found)
        return found

    def of(self, request: ScanRequest) -> ScanPlan:
        """Return the plan of a request.

        Raises:
            SchemaError: a column is unknown or asked for twice.
            ExpressionError: an expression does not fit the columns.
        """
        return self.narrowed(request, None if request.where is None else self.bound(request.where))

    def narrowed(self, request: ScanRequest, where: Expression | None) -> ScanPlan:
        """Return the plan of a request with a bound predicate in place of its own.

        Plans for other predicates on the same columns differ in little, so one of them is kept.
        """
        if request.expressions is not None:
            return plan_bound(self.schema, request, where, self._binding_schema)
        read = None if where is None else frozenset(columns(where))
        system = (bool(request.with_row_id), bool(request.with_row_address))
        key = (request.columns, read, system, request.blobs)
        found = self._kept.get(key)
        if found is None:
            whole = request
            if request.limit is not None or request.offset:
                whole = replace(request, limit=None, offset=0)
            found = plan_bound(self.schema, whole, where, self._binding_schema)
            _keep(self._kept, key, found)
        elif where is not None and found.where is not where:
            found = found.asking(where, self._binding_schema())
            self._kept[key] = found
        if request.limit is None and not request.offset:
            return found
        return replace(found, limit=request.limit, offset=request.offset)

    def taker(self, plan: ScanPlan, readers: "Readers") -> "Taker":
        """Return what takes single rows by a plan; the last one is kept."""
        if self._taker is None or self._taker[0] is not plan or self._taker[1] is not readers:
            from lancetable.scan.take import Taker  # noqa: PLC0415 - for tables with indices

            self._taker = plan, readers, Taker(plan, readers)
        return self._taker[2]

    def _binding_schema(self) -> pa.Schema:
        if self._names is None:
            self._names = binding_schema(self.schema)
        return self._names


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= KEPT_PLANS:
        kept.clear()
    kept[key] = value


_CLOCK = frozenset({"now", "current_timestamp", "current_date"})


def _is_reusable(where: Expression) -> bool:
    """Return whether an equal predicate selects the same rows in a later scan.

    Binding replaces the functions of the clock by a constant. Arrow expressions are compared by
    their text, which may be abbreviated, and the two floating-point zeros are equal, so constants
    must be of a type whose equal values are the same. Lists are left out because hashing a long one
    takes longer than planning.
    """
    for part in walk(where):
        if isinstance(part, Opaque | In):
            return False
        if isinstance(part, Call) and part.name in _CLOCK:
            return False
        if isinstance(part, Literal) and not _has_exact_equality(part.type):
            return False
    return True


def _has_exact_equality(type_: pa.DataType) -> bool:
    is_exact = pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_date(type_)
    return bool(is_exact or pa.types.is_string(type_) or pa.types.is_timestamp(type_))
