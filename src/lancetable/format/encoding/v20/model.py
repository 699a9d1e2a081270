"""The array encodings of 2.0 pages as plain values.

An encoding is a tree. Its leaves name buffers of the page by number, its inner nodes say what
those buffers mean to each other.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Flat:
    """Values of equal width, one after the other; ``scheme`` compresses the whole buffer."""

    bits: int
    buffer: int
    scheme: str = ""

    def __str__(self) -> str:
        return f"flat{self.bits}[{self.scheme}]" if self.scheme else f"flat{self.bits}"


@dataclass(frozen=True, slots=True)
class NoNulls:
    """Values of which none is null."""

    values: "ArrayEncoding"

    def __str__(self) -> str:
        return f"no_nulls({self.values})"


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """Values beside a bitmap in which 1 means valid."""

    validity: "ArrayEncoding"
    values: "ArrayEncoding"

    def __str__(self) -> str:
        return f"some_nulls({self.validity};{self.values})"


@dataclass(frozen=True, slots=True)
class AllNulls:
    """Nothing is stored, every value is null."""

    def __str__(self) -> str:
        return "all_nulls"


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Value i holds items ``[i * dimension, (i + 1) * dimension)``."""

    dimension: int
    items: "ArrayEncoding"

    def __str__(self) -> str:
        return f"fsl[{self.dimension}]({self.items})"


@dataclass(frozen=True, slots=True)
class ItemList:
    """The end of each list, counted in items of this page; the items are in another column.

    A null list has ``null_adjustment`` added to its end.
    """

    offsets: "ArrayEncoding"
    null_adjustment: int
    item_count: int

    def __str__(self) -> str:
        return f"list({self.offsets})"


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct that is never null; its children have columns of their own."""

    def __str__(self) -> str:
        return "struct"


@dataclass(frozen=True, slots=True)
class Binary:
    """The end of each value in the bytes; a null value has ``null_adjustment`` added."""

    indices: "ArrayEncoding"
    content: "ArrayEncoding"
    null_adjustment: int

    def __str__(self) -> str:
        return f"binary({self.indices};{self.content})"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Numbers of items, counted from 1 with 0 for null unless the column itself is a dictionary."""

    indices: "ArrayEncoding"
    items: "ArrayEncoding"
    item_count: int

    def __str__(self) -> str:
        return f"dictionary({self.indices};{self.items}x{self.item_count})"


@dataclass(frozen=True, slots=True)
class Fsst:
    """Binary values that are FSST codes."""

    binary: "ArrayEncoding"
    symbol_table: bytes

    def __str__(self) -> str:
        return f"fsst({self.binary})"


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """The fixed-width children of each row side by side in one buffer."""

    children: "tuple[ArrayEncoding, ...]"
    buffer: int

    def __str__(self) -> str:
        return f"packed_struct({';'.join(map(str, self.children))})"


@dataclass(frozen=True, slots=True)
class Bitpacked:
    """Integers cut to ``packed_bits``, as one stream of bits, lowest bit first."""

    packed_bits: int
    bits: int
    buffer: int
    is_signed: bool

    def __str__(self) -> str:
        return f"bitpacked{self.bits}->{self.packed_bits}"


@dataclass(frozen=True, slots=True)
class BitpackedBlocks:
    """Integers without negatives cut to ``packed_bits``, 1024 at a time in FastLanes order.

    The last block is filled up with zeros. The specification's name is bitpacked_for_non_neg.
    """

    packed_bits: int
    bits: int
    buffer: int

    def __str__(self) -> str:
        return f"bitpacked_for_non_neg{self.bits}->{self.packed_bits}"


@dataclass(frozen=True, slots=True)
class FixedSizeBinary:
    """Byte strings that all have the same length."""

    content: "ArrayEncoding"
    width: int

    def __str__(self) -> str:
        return f"fixed_size_binary[{self.width}]({self.content})"


@dataclass(frozen=True, slots=True)
class Constant:
    """One value, repeated for every row."""

    value: bytes

    def __str__(self) -> str:
        return "constant"


ArrayEncoding: TypeAlias = (
    Flat
    | NoNulls
    | SomeNulls
    | AllNulls
    | FixedSizeList
    | ItemList
    | Struct
    | Binary
    | Dictionary
    | Fsst
    | PackedStruct
    | Bitpacked
    | BitpackedBlocks
    | FixedSizeBinary
    | Constant
)
