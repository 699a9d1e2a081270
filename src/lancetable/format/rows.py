"""Where a row is: the arithmetic of row addresses.

========  ======================================
bits      meaning
========  ======================================
63 … 32   fragment id
31 … 0    offset of the row within the fragment
========  ======================================
"""

OFFSET_BITS = 32
MAX_OFFSET = (1 << OFFSET_BITS) - 1
MAX_FRAGMENT_ID = (1 << 32) - 1


def row_address(fragment_id: int, offset: int) -> int:
    """Return the address of one row."""
    return fragment_id << OFFSET_BITS | offset


def fragment_of(address: int) -> int:
    """Return the fragment id that an address names."""
    return address >> OFFSET_BITS


def offset_of(address: int) -> int:
    """Return the offset within the fragment that an address names."""
    return address & MAX_OFFSET
