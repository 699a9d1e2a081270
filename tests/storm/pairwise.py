"""Pairwise covering: every value of every factor meets every value of every other factor."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Case = dict[str, str]
Pair = frozenset[tuple[str, str]]


def pairwise(factors: Mapping[str, Sequence[str]]) -> list[Case]:
    """Return cases in which each pair of values of two factors occurs.

    The product of the two largest factors is the frame, because its pairs need that many cases
    anyway. The other factors are filled in greedily, one after the other; cases are added for pairs
    that remain.
    """
    order = sorted(factors, key=lambda name: -len(factors[name]))
    first, second = order[:2]
    cases = [{first: a, second: b} for a, b in product(factors[first], factors[second])]
    for name in order[2:]:
        left = {_pair(name, value, other, known)
                for other in order[: order.index(name)]
                for value, known in product(factors[name], factors[other])}  # fmt: skip
        for number, case in enumerate(cases):
            turned = [*factors[name][number % len(factors[name]) :], *factors[name]]
            best = max(turned, key=lambda value: len(_pairs_with(case, name, value) & left))
            left -= _pairs_with(case, name, best)
            case[name] = best
        for pair in sorted(left, key=sorted):
            filled = {other: factors[other][0] for other in order[: order.index(name) + 1]}
            cases.append(filled | dict(pair))
    return cases


def pairs_of(case: Case) -> set[Pair]:
    """Return the pairs that a case covers."""
    return {frozenset(two) for two in combinations(case.items(), 2)}


def _pair(name: str, value: str, other: str, known: str) -> Pair:
    return frozenset({(name, value), (other, known)})


def _pairs_with(case: Case, name: str, value: str) -> set[Pair]:
    return {_pair(name, value, other, known) for other, known in case.items() if other != name}
