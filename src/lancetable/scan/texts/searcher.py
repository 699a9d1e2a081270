"""Full-text search of a version: columns are looked for in it, and kept for the next query."""

from collections.abc import Mapping
from typing import Any

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.fragment.readers import Readers
from lancetable.index.text.documents import Documents
from lancetable.index.text.memory import Wanted
from lancetable.query import Match, Query
from lancetable.scan.search_request import SearchRequest
from lancetable.scan.searcher import Rows, Scored
from lancetable.scan.texts.column import TextColumn, text_kind
from lancetable.scan.texts.evaluate import Context, node_of


class TextSearcher:
    """A full-text query on a version."""

    score = "_score"
    more = ()
    reads_predicate = False

    @staticmethod
    def takes(query: object) -> bool:
        """Return whether something is a full-text query."""
        return isinstance(query, str | Query)

    def __init__(
        self,
        snapshot: Snapshot,
        readers: Readers,
        request: SearchRequest,
        kept: dict[object, Any],
    ) -> None:
        """Analyse the query; ``kept`` is what earlier searches of the version found out.

        Raises:
            InputError: the query cannot be evaluated.
            SchemaError: there is no such column, or it does not hold texts.
        """
        self._snapshot = snapshot
        self._readers = readers
        self._request = request
        self._kept = kept
        self._columns: dict[str, TextColumn] = {}
        query = request.query
        wanted = Match(query) if isinstance(query, str) else query
        if not isinstance(wanted, Query):
            raise InputError(f"{query!r} is not a full-text query")
        self._node = node_of(wanted, self._defaults(), self._column)

    def _defaults(self) -> list[str]:
        """Return the columns of those parts of a query that do not name theirs."""
        if self._request.column is not None:
            return [self._request.column]
        fields = self._snapshot.manifest.schema.fields
        return [one.name for one in fields if text_kind(one) == "text"]

    def _column(self, name: str) -> TextColumn:
        found = self._columns.get(name)
        if found is None:
            request = self._request
            key = ("text", name, request.scan.use_indices, request.analysis)
            found = self._kept.get(key)
            if found is None:
                found = TextColumn(
                    self._snapshot,
                    self._readers,
                    name,
                    use_indices=request.scan.use_indices,
                    analysis=request.analysis,
                )
                self._kept[key] = found
            self._columns[name] = found
        return found

    def best(self, allowed: Rows | None, most: int | None) -> Scored:
        """Return the best rows, all for None, among ascending rows that are allowed."""
        found = self._node.best(Context(self._documents(), allowed), most)
        return Scored(found.rows, found.scores)

    def _documents(self) -> Mapping[str, Documents]:
        wanted: dict[str, Wanted] = {}
        for leaf in self._node.leaves():
            before = wanted.get(leaf.column, Wanted(frozenset()))
            own = leaf.words.wanted()
            wanted[leaf.column] = Wanted(before.tokens | own.tokens, before.near + own.near)
        request = self._request
        return {
            name: self._column(name).documents(
                one, request.options, request.statistics, indexed_only=request.indexed_only
            )
            for name, one in wanted.items()
        }

    def describe(self) -> list[str]:
        """Return in words how the search will be done."""
        lines = []
        for name, column in self._columns.items():
            words = ", ".join(
                one.text
                for leaf in self._node.leaves()
                if leaf.column == name
                for one in leaf.words.tokens
            )
            lines.append(f"words in {name}: {words or 'none'}")
            lines += [f"  {line}" for line in column.describe()]
            if self._request.indexed_only and column.uncovered.fragments:
                lines[-1] += ", left out"
        return lines
