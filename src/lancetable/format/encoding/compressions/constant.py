"""One value for every slot; without a value every slot is null."""

from dataclasses import dataclass

import numpy as np

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, FixedWidth, Repeated, VariableWidth
from lancetable.format.encoding.kernels.ragged import Ragged


@dataclass(frozen=True, slots=True)
class Constant:
    """A repeated value, as its raw bytes."""

    value: bytes | None

    def __str__(self) -> str:
        return "constant"

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Repeat the value."""
        return self._repeated(int(counts.sum()))

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Repeat the value for every stored slot."""
        return self._repeated(len(stored))

    def _repeated(self, count: int) -> Block:
        if not self.value:
            return Repeated(None, count)
        return Repeated(FixedWidth(np.frombuffer(self.value, np.uint8), len(self.value)), count)
