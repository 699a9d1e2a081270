"""A page before it is written."""

from collections.abc import Sequence
from typing import NamedTuple

from lancetable.format.encoding.base import Bytes


class PageDraft(NamedTuple):
    """The buffers of a page and the message that describes them."""

    rows: int
    buffers: Sequence[Bytes]
    description: bytes
