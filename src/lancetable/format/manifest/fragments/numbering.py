"""Ids for fragments that share one with another fragment of the same version.

A fragment id should be unique within a version, but releases 0.9 to 0.39 of the Lance library kept
the ids that distributed writers gave to fragments they appended. In memory the first fragment with
an id keeps it, or the first that has a deletion file, since the id is part of that file's name. The
others get ids that no fragment of the table ever had, so that a row address names one row.
"""

from collections.abc import Callable, Sequence


def new_ids(
    ids: Sequence[int], has_deletions: Callable[[int], bool], largest: int
) -> dict[int, int]:
    """Return the new ids of fragments that share theirs, by place in the list.

    Args:
        ids: the id of each fragment.
        has_deletions: tells of a place whether its fragment has a deletion file.
        largest: the largest id that a fragment of the table ever had.
    """
    if len(set(ids)) == len(ids):
        return {}
    keepers: dict[int, int] = {}
    for place, id_ in enumerate(ids):
        keeper = keepers.setdefault(id_, place)
        if keeper != place and has_deletions(place) and not has_deletions(keeper):
            keepers[id_] = place
    moved = [place for place, id_ in enumerate(ids) if keepers[id_] != place]
    first = max(largest, *ids) + 1
    return {place: first + number for number, place in enumerate(moved)}
