"""Blocks of decoded values that are not yet Arrow arrays, passed between encodings.

A block knows how its values lie in memory, not what they mean; the type of the column decides
that at the very end.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.ragged import Ragged, single


@dataclass(frozen=True, slots=True)
class FixedWidth:
    """Values of ``width`` bytes each, one after the other."""

    data: npt.NDArray[Any]
    width: int

    def __len__(self) -> int:
        return self.data.nbytes // self.width if self.width else 0


@dataclass(frozen=True, slots=True)
class Bits:
    """Values of one bit each, least significant bit first."""

    data: Bytes
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class VariableWidth:
    """Value i is ``data[offsets[i] : offsets[i + 1]]``; offsets never decrease.

    They have 64 bits, or 32 where all of them fit.
    """

    offsets: npt.NDArray[np.signedinteger[Any]]
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class FixedSizeLists:
    """Value i holds items ``[i * dimension, (i + 1) * dimension)``; ``validity`` is per item."""

    dimension: int
    items: "Block"
    validity: npt.NDArray[np.bool_] | None
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Structs:
    """Value i is the tuple of the children's values i."""

    children: "tuple[Block, ...]"
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Indices:
    """Value i is item ``indices[i]`` of a dictionary."""

    indices: npt.NDArray[Any]
    items: "Block"

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class Repeated:
    """One value, ``count`` times; without a value every slot is null."""

    value: "Block | None"
    count: int

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Value i of a block occurs ``lengths[i]`` times."""

    values: "FixedWidth"
    lengths: Integers

    def __len__(self) -> int:
        return int(self.lengths.sum())


Block: TypeAlias = FixedWidth | Bits | VariableWidth | FixedSizeLists | Structs | Indices | Repeated


class Chunks(NamedTuple):
    """The value buffers of some chunks of a mini-block page and the number of values in each."""

    buffers: tuple[Ragged, ...]
    counts: Integers


class Compression(Protocol):
    """A way to store values; which contexts it serves shows in the protocols it fulfils."""

    def __str__(self) -> str:
        """Return a short description for displaying pages."""
        ...


class MiniBlockCompression(Compression, Protocol):
    """Decodes the values of many chunks at once."""

    @property
    def buffer_count(self) -> int:
        """Value buffers per chunk."""
        ...

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Return the values of all chunks, one chunk after the other."""
        ...


class Addressable(Protocol):
    """Finds single values of chunks without decoding the rest.

    What can be checked and computed once per page is prepared first, as many requests follow.
    """

    def prepare(self, chunks: Chunks) -> object | None:
        """Return what ``gather`` needs to know of the chunks, or None if it cannot help."""
        ...

    def gather(self, prepared: Any, chunk: Integers, inside: Integers) -> Block:  # noqa: ANN401
        """Return value ``inside[i]`` of chunk ``chunk[i]`` for each i."""
        ...


class BlockCompression(Compression, Protocol):
    """Decodes buffers that stand alone: levels and dictionaries."""

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Return the values of all pieces, one piece after the other."""
        ...


class PerValueCompression(Compression, Protocol):
    """Turns the stored form of each value, already cut out, into values."""

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Return as many values as there are stored ones."""
        ...


class RunCompression(Compression, Protocol):
    """Stores runs of equal values."""

    def runs_of_chunks(self, chunks: Chunks) -> RunBlock:
        """Return the runs of all chunks, one chunk after the other."""
        ...


def in_runs(compression: Compression) -> RunCompression | None:
    """Return the compression if it stores runs."""
    is_so = hasattr(compression, "runs_of_chunks")
    return cast("RunCompression", compression) if is_so else None


def addressable(compression: Compression) -> Addressable | None:
    """Return the compression if it can find many single values."""
    return cast("Addressable", compression) if hasattr(compression, "gather") else None


def for_chunks(compression: Compression) -> MiniBlockCompression:
    """Return the compression if it serves chunks of mini-block pages.

    Raises:
        CorruptError: it does not.
    """
    if hasattr(compression, "decode_chunks"):
        return cast("MiniBlockCompression", compression)
    raise CorruptError(f"{compression} cannot encode chunks")


def for_buffers(compression: Compression, what: str = "whole buffers") -> BlockCompression:
    """Return the compression if it serves whole buffers, such as levels and dictionaries.

    Raises:
        CorruptError: it does not.
    """
    if hasattr(compression, "decode_blocks"):
        return cast("BlockCompression", compression)
    raise CorruptError(f"{compression} cannot encode {what}")


def for_values(compression: Compression) -> PerValueCompression:
    """Return the compression if it serves single values.

    Raises:
        CorruptError: it does not.
    """
    if hasattr(compression, "decode_values"):
        return cast("PerValueCompression", compression)
    raise CorruptError(f"{compression} cannot encode single values")


def decode_one(compression: Compression, data: Bytes, count: int) -> Block:
    """Decode one stand-alone buffer.

    Raises:
        CorruptError: the compression does not serve whole buffers.
    """
    return for_buffers(compression).decode_blocks(single(data), np.array([count], np.int64))


def fixed_words(block: Block, what: str) -> npt.NDArray[Any]:
    """Return a block of 1, 2, 4 or 8 byte values as unsigned integers."""
    if isinstance(block, FixedWidth) and block.width in {1, 2, 4, 8}:
        return block.data.reshape(-1).view(f"<u{block.width}")
    raise CorruptError(f"{what} are not stored as integers")
