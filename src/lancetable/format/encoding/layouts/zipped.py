"""Locate the entries of a full-zip page whose sizes depend on their control words."""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.repdef import Layers

FEW_ROWS = 16


@dataclass(frozen=True, slots=True)
class Zipped:
    """The widths of what an entry is made of, in bits as the page says them.

    ``bits_value`` is the width of a value, or of its length when ``is_variable``.
    """

    bits_rep: int
    bits_def: int
    bits_value: int
    is_variable: bool

    @property
    def control_bytes(self) -> int:
        """Size of a control word."""
        bits = self.bits_rep + self.bits_def
        if bits == 0:
            return 0
        return 1 if bits <= 8 else 2 if bits <= 16 else 4

    @property
    def value_bytes(self) -> int:
        """Size of a fixed-width value."""
        return self.bits_value // 8

    @property
    def length_bytes(self) -> int:
        """Size of the length in front of a value of any width."""
        return self.bits_value // 8

    @property
    def stride(self) -> int:
        """Size of a control word and a fixed-width value."""
        return self.control_bytes + self.value_bytes

    def repetition(self, words: Integers) -> Levels | None:
        """Return the repetition levels of control words."""
        return (words >> self.bits_def).astype(np.uint16) if self.bits_rep else None

    def definition(self, words: Integers) -> Levels | None:
        """Return the definition levels of control words."""
        if not self.bits_def:
            return None
        return (words & ((1 << self.bits_def) - 1)).astype(np.uint16)


def control_words(table: Bytes, places: Integers, size: int) -> Integers:
    """Read the control word at each place: ``table[place, :size]``, or consecutive single bytes."""
    words = np.zeros(len(places), np.int64)
    for byte in range(size):
        found = table[places + byte, 0] if table.shape[1] == 1 else table[places, byte]
        words |= found.astype(np.int64) << (8 * byte)
    return words


def lengths_at(zipped: Zipped, data: Bytes, places: Integers) -> Integers:
    """Read the length at each place and check that its value lies inside the bytes."""
    size = zipped.length_bytes
    if len(places) and int(places.max()) + size > len(data):
        raise CorruptError("a value of a page has no room for its length")
    raw = np.zeros((len(places), 8), np.uint8)
    raw[:, :size] = data[places[:, None] + np.arange(size)]
    lengths = raw.view("<u8").reshape(-1)
    if (lengths > (len(data) - size - places).astype(np.uint64)).any():
        raise CorruptError("a value of a page reaches beyond its bytes")
    return lengths.astype(np.int64)


def walk_entries(
    zipped: Zipped, data: Bytes, first: Integers, last: Integers, layers: Layers
) -> Integers:
    """Find every entry of rows of lists; row i fills ``data[first[i] : last[i]]``."""
    if not zipped.is_variable and layers.max_rep == 1:
        return _stride_entries(zipped, first, last)
    found: list[Integers] = []
    place, end = first, last
    while len(place) > FEW_ROWS:
        found.append(place)
        place = place + _entry_sizes(zipped, data, place, layers)
        if (place > end).any():
            raise CorruptError("an entry of a page reaches beyond its row")
        is_open = place < end
        place, end = place[is_open], end[is_open]
    for start, stop in zip(place.tolist(), end.tolist(), strict=True):
        found.append(_walk_row(zipped, data, (start, stop), layers))
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _stride_entries(zipped: Zipped, first: Integers, last: Integers) -> Integers:
    """Compute the entries of plain lists: one without a value, or only entries with one."""
    sizes = last - first
    is_short = sizes == zipped.control_bytes
    counts, rest = np.divmod(sizes, zipped.stride)
    if (~is_short & ((rest != 0) | (counts == 0))).any():
        raise CorruptError("the entries of a page do not fill their rows")
    counts = np.where(is_short, 1, counts)
    inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places: Integers = np.repeat(first, counts) + inside * zipped.stride
    return places


def _entry_sizes(zipped: Zipped, data: Bytes, places: Integers, layers: Layers) -> Integers:
    control = zipped.control_bytes
    if int(places.max()) + control > len(data):
        raise CorruptError("an entry of a page has no room for its control word")
    words = control_words(data.reshape(-1, 1), places, control)
    def_ = words & ((1 << zipped.bits_def) - 1)
    sizes = np.full(len(places), control, np.int64)
    if zipped.is_variable:
        has_value = def_ == 0
        lengths = lengths_at(zipped, data, places[has_value] + control)
        sizes[has_value] += zipped.length_bytes + lengths
    else:
        sizes[def_ <= layers.max_visible] += zipped.value_bytes
    return sizes


def _walk_row(zipped: Zipped, data: Bytes, edges: tuple[int, int], layers: Layers) -> Integers:
    """Walk through one row entry by entry."""
    view = data.data
    control, size = zipped.control_bytes, zipped.length_bytes
    mask = (1 << zipped.bits_def) - 1
    limit = 0 if zipped.is_variable else layers.max_visible
    place, stop = edges
    found: list[int] = []
    while place < stop:
        found.append(place)
        def_ = int.from_bytes(view[place : place + control], "little") & mask
        place += control
        if def_ <= limit:
            if zipped.is_variable:
                place += size + int.from_bytes(view[place : place + size], "little")
            else:
                place += zipped.value_bytes
        if place <= found[-1]:
            raise CorruptError("an entry of a page takes no room")
    if place != stop:
        raise CorruptError("an entry of a page reaches beyond its row")
    return np.array(found, np.int64)
