"""What is compared of one column while it is decoded."""

from typing import NamedTuple

from lancetable.format.encoding.stretch import Tests
from lancetable.fragment.projection import Projection


class ColumnTests(NamedTuple):
    """Comparisons of one column, which the projection names."""

    column: Projection
    tests: Tests
