"""Group a chain of binary operators by their precedence.

sqlglot reads ``&``, ``|``, ``<<``, ``>>`` and ``||`` with one precedence, from left to right.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Operand = TypeVar("Operand")
Operator = TypeVar("Operator")


def group(
    operands: Sequence[Operand],
    operators: Sequence[Operator],
    rank: Callable[[Operator], int],
    join: Callable[[Operator, Operand, Operand], Operand],
) -> Operand:
    """Join operands with the operators between them, those of a higher rank first.

    Operators of one rank are joined from left to right.
    """
    values, waiting = [operands[0]], list[Operator]()

    def reduce() -> None:
        right, left = values.pop(), values.pop()
        values.append(join(waiting.pop(), left, right))

    for operator, operand in zip(operators, operands[1:], strict=True):
        while waiting and rank(waiting[-1]) >= rank(operator):
            reduce()
        waiting.append(operator)
        values.append(operand)
    while waiting:
        reduce()
    return values[0]
