"""Full-text search in plain Python: every document is looked at, nothing is left out."""

import math
from collections import Counter

from lancetable.expression.analysis.analyzer import analyze_query
from lancetable.expression.analysis.parameters import Analysis

K1, B = 1.2, 0.75
PLAIN = Analysis()


def words_of(text):
    return [] if text is None else [one.text for one in analyze_query(PLAIN, text)]


class Corpus:
    """Texts that are counted, by any key; each is counted once."""

    def __init__(self, texts):
        counted = [words for words in map(words_of, texts) if words]
        self.documents = len(counted)
        self.average = sum(map(len, counted)) / max(len(counted), 1)
        self.frequencies = Counter(word for words in counted for word in set(words))

    def score(self, text, query):
        """Return the score of a text; None when it has no word of the query."""
        own = Counter(words_of(text))
        asked = words_of(query)
        if not any(own[word] for word in asked):
            return None
        norm = K1 * (1 - B + B * sum(own.values()) / self.average)
        total = 0.0
        for word in asked:
            rarity = self.documents - self.frequencies[word] + 0.5
            idf = math.log1p(rarity / (self.frequencies[word] + 0.5))
            total += idf * own[word] * (K1 + 1) / (own[word] + norm)
        return total

    def search(self, live, query):
        """Return the scores of live texts by their keys."""
        scores = {key: self.score(text, query) for key, text in live.items()}
        return {key: score for key, score in scores.items() if score is not None}
