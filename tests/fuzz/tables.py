"""Whole tables to damage: one object of them at a time, every kind of object in turn."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lancetable import Table
from lancetable.commit import versions
from lancetable.format.manifest.envelope import FOOTER, manifest_message, seal
from lancetable.format.proto import rowids_pb2, table_pb2
from lancetable.store import Store
from lancetable.store.memory import MemoryStore
from tests.fuzz.messages import damage_message
from tests.fuzz.mutate import damage


class MemoryLocation(NamedTuple):
    """The address of a table in memory."""

    objects: Mapping[str, bytes]
    uri: str = "memory:table"
    options: Mapping[str, str] = {}

    def open(self) -> Store:
        """Return the store."""
        return MemoryStore(self.objects)

    def child(self, path: str) -> "MemoryLocation":
        """Return the location of a folder below."""
        prefix = f"{path}/"
        below = {
            name.removeprefix(prefix): data
            for name, data in self.objects.items()
            if name.startswith(prefix)
        }
        return MemoryLocation(below, f"{self.uri}/{path}")


class Mutant(NamedTuple):
    """A damaged table and what was done to it."""

    objects: dict[str, bytes]
    text: str


@dataclass(frozen=True)
class TableSubject:
    """A table, and which versions of it to open."""

    name: str
    objects: dict[str, bytes] = field(repr=False)

    @classmethod
    def load(cls, path: Path) -> "TableSubject":
        """Read all files of a table."""
        files = sorted(each for each in path.rglob("*") if each.is_file())
        objects = {each.relative_to(path).as_posix(): each.read_bytes() for each in files}
        return cls(f"{path.parent.name}/{path.name}", objects)

    @cached_property
    def targets(self) -> list[str]:
        """The objects that are read when the table is opened and scanned, by kind in turn."""
        kinds: dict[str, list[str]] = {}
        for path in self.objects:
            kinds.setdefault(
                "/".join(path.split("/")[:2]) if "_refs" in path else path.split("/")[0], []
            ).append(path)
        wanted = [kinds[kind] for kind in sorted(kinds) if kind != "_indices"]
        return [
            paths[turn % len(paths)] for turn in range(max(map(len, wanted))) for paths in wanted
        ]

    @property
    def size(self) -> int:
        """All bytes of the table."""
        return sum(map(len, self.objects.values()))

    def mutant(self, number: int) -> Mutant:
        """Return the damaged table of a number; the same for the same number."""
        chance = random.Random(f"{self.name} {number}")
        path = self.targets[number % len(self.targets)]
        objects = dict(self.objects)
        data = objects[path]
        what = chance.randrange(20)
        if what == 0:
            del objects[path]
            return Mutant(objects, f"{path}: removed")
        if what == 1:
            other = chance.choice(list(objects))
            objects[path] = objects[other]
            return Mutant(objects, f"{path}: holds {other}")
        if what == 2:
            objects[path] = b""
            return Mutant(objects, f"{path}: emptied")
        if path.endswith(".manifest") and what < 13:
            objects[path], text = _damaged_manifest(chance, data)
        else:
            objects[path], text = (
                damage(chance, data, 0, max(1, len(data))) if data else (b"x", "x")
            )
        return Mutant(objects, f"{path}: {text}")

    def read(self, objects: Mapping[str, bytes]) -> list[pa.Table]:
        """Read a table as a user would, by all its names."""
        location = MemoryLocation(objects)
        table = Table(location, versions.load(location))  # type: ignore[arg-type]
        found = list(_rows(table))
        repr(table)
        table.versions()
        _ = table.indices, table.branches, table.config, table.metadata
        for tag in table.tags:
            found += _rows(table.checkout(tag=tag))
        return found


def _rows(table: Table) -> Iterator[pa.Table]:
    whole = table.scan(with_row_id=True, with_row_address=True).to_arrow()
    if whole.num_rows != table.count():
        raise AssertionError(f"count is {table.count()}, a scan has {whole.num_rows} rows")
    yield whole
    if whole.num_rows:
        yield table.take([whole.num_rows - 1, 0])


def _damaged_manifest(chance: random.Random, data: bytes) -> tuple[bytes, str]:
    message = table_pb2.Manifest.FromString(bytes(manifest_message(data)))
    (position, *_) = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    inline = [each for each in message.fragments if each.inline_row_ids]
    if inline and chance.random() < 0.5:
        fragment = chance.choice(inline)
        sequence = rowids_pb2.RowIdSequence.FromString(fragment.inline_row_ids)
        text = damage_message(chance, sequence)
        fragment.inline_row_ids = sequence.SerializeToString()
    else:
        text = damage_message(chance, message)
    return seal(data[:position], message.SerializeToString()), text
