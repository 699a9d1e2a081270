"""Choose the fragments of a version to read, and whether their deleted rows are read."""

from collections.abc import Iterable, Sequence

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.manifest import Fragment
from lancetable.fragment.readers import Readers


def readers_of(
    snapshot: Snapshot,
    wanted: Iterable[int | Fragment] | None = None,
    *,
    include_deleted: bool = False,
) -> Readers:
    """Return readers of all fragments of a version, or of some, perhaps with their deleted rows.

    Raises:
        InputError: the fragments are not those of the version.
    """
    fragments = snapshot.manifest.fragments
    if wanted is not None:
        fragments = choose_fragments(fragments, wanted)
    live = _with_fragments(snapshot, fragments)
    if not include_deleted or not any(one.deletion_file for one in fragments):
        return Readers(live)
    whole = tuple(one._replace(deletion_file=None) for one in fragments)
    return Readers(_with_fragments(snapshot, whole), live)


def _with_fragments(snapshot: Snapshot, fragments: Sequence[Fragment]) -> Snapshot:
    return snapshot._replace(manifest=snapshot.manifest._replace(fragments=fragments))


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
