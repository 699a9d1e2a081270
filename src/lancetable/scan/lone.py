"""Does a predicate come apart into parts that read one column each?"""

from typing import TypeAlias

from lancetable.expression import And, Expression, Opaque, columns, conjuncts, walk

Lone: TypeAlias = tuple[Expression, ...]
"""For each column of a predicate what it asks of this column alone."""


def lone_predicates(where: Expression, names: tuple[str, ...]) -> Lone | None:
    """Divide a predicate by the columns it reads; None when a part reads none, or several."""
    asked: dict[str, list[Expression]] = {name: [] for name in names}
    if len(asked) < len(names):
        return None
    for part in conjuncts(where):
        tops = {path[0] for path in columns(part)}
        if len(tops) != 1 or any(isinstance(node, Opaque) for node in walk(part)):
            return None
        asked[tops.pop()].append(part)
    if not all(asked.values()):
        return None
    return tuple(parts[0] if len(parts) == 1 else And(tuple(parts)) for parts in asked.values())
