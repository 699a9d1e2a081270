"""Choose some fragments of a version."""

from collections.abc import Iterable, Sequence

from lancetable.errors import InputError
from lancetable.format.manifest import Fragment


def choose_fragments(
    known: Sequence[Fragment], wanted: Iterable[int | Fragment]
) -> tuple[Fragment, ...]:
    """Return the fragments that are named by id or given as values, in the order given.

    Raises:
        InputError: an item is no fragment and no id, is not in the version, or is named twice.
    """
    if isinstance(wanted, Fragment | str | bytes) or not isinstance(wanted, Iterable):
        raise InputError(f"fragments is {wanted!r}; give a list of fragments or of their ids")
    by_id: dict[int, list[Fragment]] = {}
    for one in known:
        by_id.setdefault(one.id, []).append(one)
    chosen: list[Fragment] = []
    for item in wanted:
        if not isinstance(item, Fragment | int):
            raise InputError(f"fragments holds {item!r}; give fragments or their ids")
        is_value = isinstance(item, Fragment)
        id_ = item.id if isinstance(item, Fragment) else item
        found = [one for one in by_id.get(id_, []) if not is_value or one == item]
        if not found:
            shown = ", ".join(map(str, list(by_id)[:10])) or "none"
            raise InputError(f"fragments: the version has no fragment {id_!r}; it has {shown}")
        if any(one is other for one in found for other in chosen):
            raise InputError(f"fragments: fragment {id_} is named twice; name it once")
        chosen += found
    return tuple(chosen)
