"""Divide a predicate into parts that read one column each.

The parts keep their order: what may fail is never overtaken by what is written after it.
"""

from typing import NamedTuple

from lancetable.expression import And, Expression, Opaque, columns, conjuncts, walk


class Lone(NamedTuple):
    """What a predicate asks of one of its columns alone."""

    slot: int
    predicate: Expression


def lone_predicates(where: Expression, names: tuple[str, ...]) -> tuple[Lone, ...] | None:
    """Divide a predicate by the columns it reads, in the order it names them.

    None when a part reads none or several, or a column is asked again after another one.
    """
    asked: dict[str, list[Expression]] = {}
    last = ""
    for part in conjuncts(where):
        tops = {path[0] for path in columns(part)}
        if len(tops) != 1 or any(isinstance(node, Opaque) for node in walk(part)):
            return None
        (name,) = tops
        if name in asked and name != last:
            return None
        asked.setdefault(name, []).append(part)
        last = name
    if sorted(asked) != sorted(names):
        return None
    return tuple(
        Lone(names.index(name), parts[0] if len(parts) == 1 else And(tuple(parts)))
        for name, parts in asked.items()
    )
