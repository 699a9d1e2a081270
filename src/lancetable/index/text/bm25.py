"""Weights of words and norms of documents (BM25).

The score of a document is the sum over the words of a query of
``idf x tf x (k1 + 1) / (tf + k1 x (1 - b + b x length / average length))``.
"""

import math
from typing import NamedTuple, Self

import numpy as np

from lancetable.format.encoding.kernels.postings import Words
from lancetable.format.encoding.kernels.ranking import Norms

K1, B = 1.2, 0.75


class Statistics(NamedTuple):
    """How many documents there are, and how many words they have together."""

    documents: int = 0
    words: int = 0

    @property
    def average(self) -> float:
        """The average length of a document."""
        return max(self.words, 1) / max(self.documents, 1)

    def plus(self, other: Self) -> "Statistics":
        """Return the statistics of both."""
        return Statistics(self.documents + other.documents, self.words + other.words)

    def weight(self, with_word: int) -> float:
        """Return the weight of a word that so many documents have."""
        rarity = (self.documents - with_word + 0.5) / (with_word + 0.5)
        return math.log1p(rarity) * (K1 + 1)


def norms_of(lengths: Words, average: float) -> Norms:
    """Return what the length of each document adds to the frequencies of its words."""
    found = np.float32(K1 * B / average) * lengths.astype(np.float32)
    found += np.float32(K1 * (1 - B))
    return found
