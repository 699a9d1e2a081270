"""Cache of values read from manifests, kept as long as their store is in use.

The manifest of a version never changes. It is identified by its path, its size and the time of its
last change, which a listing gives; a file that was replaced is read again.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from lancetable.store import Entry, Store

if TYPE_CHECKING:
    from weakref import WeakKeyDictionary

MOST = 20_000
"""The cache is cleared at this number of entries; each takes about a kilobyte."""

Value = TypeVar("Value")


class ManifestCache(Generic[Value]):
    """Values computed from manifest files, for each store."""

    def __init__(self) -> None:
        self._stores: WeakKeyDictionary[Store, dict[tuple[object, ...], Value]] | None = None

    def get(self, store: Store, entry: Entry, make: Callable[[], Value], *also: object) -> Value:
        """Return the value of a file, computed if needed; ``also`` is part of its key."""
        if self._stores is None:
            from weakref import WeakKeyDictionary  # noqa: PLC0415 - not needed to open a table

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
