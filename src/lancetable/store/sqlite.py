"""An external manifest store in an SQLite file, for shared disks and for tests."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from lancetable.errors import ExistsError, StoreError
from lancetable.store.manifests import ManifestEntry

_SCHEMA = """
create table if not exists manifests (
    base_uri text not null,
    version integer not null,
    path text not null,
    size integer,
    primary key (base_uri, version)
)
"""

_REFUSALS = {"SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY"}
"""Errors of a commit that mean that nothing was recorded."""


@dataclass(frozen=True, slots=True)
class SqliteManifests:
    """Entries in one file; each call opens it, so that threads and processes may share it."""

    path: str
    timeout: float = 30.0

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version."""
        return self._one("base_uri = ? and version = ?", (base, version))

    def latest(self, base: str) -> ManifestEntry | None:
        """Return the entry of the largest version."""
        return self._one("base_uri = ? order by version desc limit 1", (base,))

    def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
        """Record a version; the primary key lets one writer do so."""
        try:
            with self._open() as file:
                file.execute("insert into manifests values (?, ?, ?, ?)", (base, *entry))
        except sqlite3.IntegrityError:
            raise ExistsError(f"{base}: version {entry.version} is already recorded") from None

    def put_if_present(self, base: str, entry: ManifestEntry) -> None:
        """Record another path for a version."""
        with self._open() as file:
            file.execute(
                "update manifests set path = ?, size = ? where base_uri = ? and version = ?",
                (entry.path, entry.size, base, entry.version),
            )

    def delete(self, base: str) -> None:
        """Forget all versions of a table."""
        with self._open() as file:
            file.execute("delete from manifests where base_uri = ?", (base,))

    def _one(self, where: str, values: tuple[object, ...]) -> ManifestEntry | None:
        with self._open() as file:
            found = file.execute(
                f"select version, path, size from manifests where {where}",  # noqa: S608 - ours
                values,
            ).fetchone()
        return ManifestEntry(*found) if found else None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction."""
        is_committing = False
        try:
            with closing(sqlite3.connect(self.path, timeout=self.timeout)) as file:
                file.execute(_SCHEMA)
                yield file
                is_committing = True
                file.commit()
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as cause:
            # Errors before the commit, and a refused commit, are rolled back.
            is_certain = not is_committing or _name(cause) in _REFUSALS
            raise StoreError(f"{self.path}: {cause}", is_certain=is_certain) from cause


def _name(cause: sqlite3.Error) -> str:
    return getattr(cause, "sqlite_errorname", "")
