"""What was read of manifests, kept as long as their store is in use.

The manifest of a version never changes. It is known again by its path, its size and the time of its
last change, which a listing gives; a file that was replaced is read anew.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from lancetable.store import Entry, Store

if TYPE_CHECKING:
    from weakref import WeakKeyDictionary

MOST = 20_000
"""From so many on all are forgotten; each takes about a kilobyte."""

Value = TypeVar("Value")


class Seen(Generic[Value]):
    """Values that were made of files, for each store."""

    def __init__(self) -> None:
        self._stores: WeakKeyDictionary[Store, dict[tuple[object, ...], Value]] | None = None

    def get(self, store: Store, entry: Entry, make: Callable[[], Value], *also: object) -> Value:
        """Return the value of a file, made when there is none; ``also`` is part of its name."""
        if self._stores is None:
            from weakref import WeakKeyDictionary  # noqa: PLC0415 - opening a table needs it not

            self._stores = WeakKeyDictionary()
        try:
            known = self._stores.setdefault(store, {})
        except TypeError:  # a store that cannot be referred to weakly
            return make()
        key = (*entry, *also)
        value = known.get(key)
        if value is None:
            value = make()
            if len(known) >= MOST:
                known.clear()
            known[key] = value
        return value
