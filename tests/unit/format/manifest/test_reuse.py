"""The record of moved rows: how addresses are translated, what is kept, and damaged bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from lancetable.errors import CorruptError
from lancetable.format.manifest.reuse import (
    Built,
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)
from lancetable.format.manifest.reuse.codec import (
    External,
    decode_details,
    decode_external,
    encode_reuse,
)
from lancetable.format.manifest.roaring import decode_treemap, encode_treemap


def addresses(fragment: int, offsets: list[int]) -> list[int]:
    return [fragment << 32 | offset for offset in offsets]


def group(old: dict[int, list[int]], new: dict[int, int], rows: int = 10) -> ReuseGroup:
    """Return a group whose old fragments keep some rows."""
    kept = encode_treemap((id_, np.array(offsets, np.uint32)) for id_, offsets in old.items())
    return ReuseGroup(
        kept,
        tuple(FragmentDigest(id_, rows, rows - len(offsets)) for id_, offsets in old.items()),
        tuple(FragmentDigest(id_, count) for id_, count in new.items()),
    )


FIRST = ReuseVersion(4, (group({0: [0, 2, 3], 1: [5]}, {7: 2, 8: 2}),))
SECOND = ReuseVersion(9, (group({7: [1], 8: [0, 1]}, {11: 3}, 2),))
BOTH = FragmentReuse((FIRST, SECOND))


@given(st.sets(st.integers(0, 2**40), max_size=300))
def test_maps_are_those_of_roaring(values: set[int]) -> None:
    uppers = sorted({value >> 32 for value in values})
    encoded = encode_treemap(
        (upper, np.array(sorted(v & 0xFFFFFFFF for v in values if v >> 32 == upper), np.uint32))
        for upper in uppers
    )
    assert set(BitMap64.deserialize(encoded)) == values
    assert decode_treemap(encoded, most=len(values)).tolist() == sorted(values)
    assert decode_treemap(BitMap64(values).serialize(), most=300).tolist() == sorted(values)


def test_addresses_follow_all_rewrites() -> None:
    old = [*addresses(0, [0, 1, 2, 3]), *addresses(1, [5, 6]), *addresses(2, [3])]
    new, kept = BOTH.translate(np.array(old, np.uint64))
    assert kept.tolist() == [False, False, True, True, True, False, True]
    assert new[kept].tolist() == [*addresses(11, [0, 1, 2]), *addresses(2, [3])]
    # Rows of later fragments need only later rewrites.
    new, kept = BOTH.translate(np.array(addresses(8, [0, 1]), np.uint64))
    assert (new.tolist(), bool(kept.all())) == (addresses(11, [1, 2]), True)


def test_indices_describe_new_fragments_of_whole_groups_only() -> None:
    assert BOTH.covered({0, 1, 2}) == {2, 11}
    assert BOTH.covered({0, 2}) == {2}
    assert BOTH.covered({7, 8}) == {11}
    assert BOTH.origins({11}) == {0, 1, 7, 8, 11}
    assert BOTH.origins({2}) == {2}
    assert BOTH.new_ids() == {7, 8, 11}


def test_rewrites_are_kept_as_long_as_an_index_may_need_them() -> None:
    assert BOTH.trimmed([Built(4, {0, 1})]) == BOTH
    # Some writers name the new fragments in segments whose files hold old addresses.
    assert BOTH.trimmed([Built(4, {7, 8})]) == BOTH
    assert BOTH.trimmed([Built(4, {11})]) == BOTH
    assert BOTH.trimmed([Built(5, {7, 8})]) == FragmentReuse((SECOND,))
    assert BOTH.trimmed([Built(10, {11})]) == FragmentReuse()
    assert BOTH.trimmed([Built(4, {2})]) == FragmentReuse()
    assert BOTH.trimmed([]) == FragmentReuse()


def test_short_records_stand_in_the_details_and_long_ones_in_a_file() -> None:
    inline = encode_reuse(BOTH)
    assert inline.external is None
    assert decode_details(inline.details) == BOTH
    apart = encode_reuse(BOTH, most_inline=10)
    assert apart.external is not None
    place = decode_details(apart.details)
    assert place == External("details.binpb", 0, len(apart.external))
    assert decode_external(apart.external) == BOTH


@pytest.mark.parametrize("details", [b"\xff\xff", b"\x12\x05\n\x03../", b"\x12\x08\n\x06/etc/x"])
def test_damaged_details(details: bytes) -> None:
    with pytest.raises(CorruptError):
        decode_details(details)
    with pytest.raises(CorruptError):
        decode_external(b"\x0a\xff")


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        (1 << 40).to_bytes(8, "little"),
        encode_treemap([(0, np.array([1, 2], np.uint32))]),
        encode_treemap([(0, np.arange(9, dtype=np.uint32))]),
        encode_treemap([(1, np.array([1], np.uint32)), (0, np.array([1, 2, 3], np.uint32))]),
    ],
)
def test_records_that_contradict_themselves(kept: bytes) -> None:
    damaged = FIRST.groups[0]._replace(kept=kept)
    reuse = FragmentReuse((ReuseVersion(1, (damaged,)),))
    with pytest.raises(CorruptError):
        reuse.translate(np.array([0], np.uint64))
