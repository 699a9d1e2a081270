"""Random changes with keys of their own, and what each leaves, computed in plain Python."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa

import lancetable as lt

Rows = dict[int, int]
"""Values by key."""
COMMIT = lt.CommitOptions(attempts=5, deadline_seconds=20)


@dataclass(frozen=True)
class Change:
    """A change, and the rows that it leaves."""

    title: str
    run: Callable[[lt.Table], object]
    after: Rows


@dataclass
class Model:
    """The rows that must be there.

    Args:
        seed: what all changes are drawn from.
        rows: the rows of the first version.
    """

    seed: int
    rows: Rows
    versions: dict[int, Rows] = field(default_factory=dict)
    """The rows of versions that were acknowledged."""
    next_key: int = 1000

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    def fresh(self, count: int) -> Rows:
        """Return rows with keys that were never used."""
        self.next_key += count
        return {key: key * 2 for key in range(self.next_key - count, self.next_key)}

    def settle(self, version: int, rows: Rows) -> None:
        """Note what a version holds."""
        self.rows = rows
        self.versions[version] = rows

    def change(self) -> Change:
        """Draw the next change."""
        kinds = [
            self._append,
            self._append,
            self._delete,
            self._update,
            self._update_columns,
            self._merge,
            self._overwrite_where,
            self._restore,
            self._compact,
            self._index,
            self._configure,
            self._cleanup,
        ]
        return self.draw.choice(kinds)()

    def _some(self, most: int) -> list[int]:
        keys = sorted(self.rows)
        return self.draw.sample(keys, min(most, len(keys)))

    def _append(self) -> Change:
        new = self.fresh(self.draw.randrange(1, 6))
        return Change("append", lambda t: t.append(table_of(new), commit=COMMIT), self.rows | new)

    def _delete(self) -> Change:
        gone = self._some(3)
        after = {key: value for key, value in self.rows.items() if key not in gone}
        return Change("delete", lambda t: t.delete(among(gone), commit=COMMIT), after)

    def _update(self, mode: str = "rows") -> Change:
        changed = self._some(4)
        after = {k: value + 1 if k in changed else value for k, value in self.rows.items()}
        return Change(
            f"update {mode}",
            lambda t: t.update({"x": "x + 1"}, among(changed), mode=mode, commit=COMMIT),
            after,
        )

    def _update_columns(self) -> Change:
        return self._update("columns")

    def _merge(self) -> Change:
        source = self.fresh(2) | {key: -key for key in self._some(2)}
        return Change(
            "merge",
            lambda t: (
                t.merge(table_of(source), on="id", commit=COMMIT)
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            ),
            self.rows | source,
        )

    def _overwrite_where(self) -> Change:
        gone = self._some(2)
        new = {key: self.rows[key] + 7 for key in gone}
        return Change(
            "overwrite where",
            lambda t: t.overwrite(table_of(new), where=among(gone), commit=COMMIT),
            self.rows | new,
        )

    def _restore(self) -> Change:
        if not self.versions:
            return self._append()
        version = self.draw.choice(sorted(self.versions)[-3:])
        return Change(
            f"restore {version}",
            lambda t: t.restore(version, commit=COMMIT),
            self.versions[version],
        )

    def _compact(self) -> Change:
        return Change("compact", lambda t: t.compact(commit=COMMIT), self.rows)

    def _index(self) -> Change:
        return Change(
            "index",
            lambda t: t.indices.create("id", "btree", replace=True, commit=COMMIT),
            self.rows,
        )

    def _configure(self) -> Change:
        value = {"k": str(self.next_key)}
        return Change("config", lambda t: t.config.update(value, commit=COMMIT), self.rows)

    def _cleanup(self) -> Change:
        kept = sorted(self.versions)[-3:]
        self.versions = {version: self.versions[version] for version in kept}
        # Versions between those kept stay as well: only numbers below the oldest go.
        return Change(
            "cleanup",
            lambda t: t.maintenance.cleanup(
                older_than=timedelta(0), keep_last=max(t.version - min(kept, default=0), 1) + 5
            ),
            self.rows,
        )


def table_of(rows: Rows) -> pa.Table:
    """Return rows as Arrow data."""
    return pa.table({"id": pa.array(rows, pa.int64()), "x": pa.array(rows.values(), pa.int64())})


def rows_of(data: pa.Table) -> Rows:
    """Return Arrow data as rows; a key that occurs twice is an error."""
    keys, values = data["id"].to_pylist(), data["x"].to_pylist()
    twice = sorted({key for key in keys if keys.count(key) > 1})
    assert not twice, f"keys {twice} occur more than once"
    return dict(zip(keys, values, strict=True))


def among(keys: list[int]) -> str:
    """Return a predicate for the rows with some keys."""
    return f"id IN ({', '.join(map(str, keys))})" if keys else "false"
