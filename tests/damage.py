"""Deliberate damage to a small table, what a check says about it, and what a repair leaves."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

import lancetable as lt
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.codec import encode_manifest
from lancetable.format.manifest.model import ExternalSequence, InlineSequence
from lancetable.format.manifest.names import DELETIONS

EVERY = frozenset({*range(12)} - {5, 6})
"""The ids in the latest version."""


def make_table(path: Path, *, stable: bool = True) -> lt.Table:
    """Make a table of three fragments: ids 0 to 3, 4 to 7 without 5 and 6, and 8 to 11."""
    rows = pa.table({"id": range(8), "s": [f"s{number}" for number in range(8)]})
    table = lt.create_table(path, rows, max_rows_per_file=4, stable_row_ids=stable)
    table.delete("id in (5, 6)")
    table.tags.create("good")
    table.append(pa.table({"id": range(8, 12), "s": ["x"] * 4}))
    return table


@dataclass(frozen=True)
class Damage:
    """What is broken, and what is told of it."""

    act: Callable[[Path, lt.Table], object]
    kind: str
    file: str
    """A part of the name of the file that is told."""
    left: frozenset[int] = EVERY
    """The ids that are there after a repair."""
    loss: str | None = None
    """The kind of loss that a repair announces."""
    level: Literal["metadata", "files", "data"] = "files"
    opens: bool = True
    """Whether the table can be opened as it is."""


def _manifest(path: Path, table: lt.Table, version: int) -> Path:
    found = next(info for info in table.versions(detail=False) if info.version == version)
    return path / found.path


def data_file(path: Path, table: lt.Table, fragment: int) -> Path:
    """Return the data file of a fragment."""
    return path / "data" / table.fragments[fragment].files[0].path


def _only(path: Path, folder: str) -> Path:
    return max((path / folder).iterdir())


def truncate(file: Path) -> None:
    """Cut off the end."""
    os.truncate(file, file.stat().st_size - 9)


def flip(file: Path, position: int) -> None:
    """Change one byte."""
    content = bytearray(file.read_bytes())
    content[position] ^= 0xFF
    file.write_bytes(content)


def _flip_page(file: Path) -> None:
    """Spoil the messages that describe the pages, which stand before the footer's tables."""
    content = bytearray(file.read_bytes())
    start = int.from_bytes(content[-40:-32], "little")
    content[start : start + 16] = b"\xff" * 16
    file.write_bytes(content)


def rewrite(path: Path, table: lt.Table, change: Callable[[Fragment], Fragment]) -> None:
    """Write the latest manifest again with other fragments."""
    snapshot = table._snapshot
    fragments = tuple(change(one) for one in snapshot.manifest.fragments)
    manifest = snapshot.manifest._replace(fragments=fragments, transaction_section=None)
    encoded = encode_manifest(manifest, "", index_section=None, transaction=None)
    (path / snapshot.manifest_path).write_bytes(encoded.content)


def _lose_branch(path: Path, table: lt.Table) -> None:
    table.branches.create("dev")
    (path / "_refs/branches/dev.json").unlink()


def _spoil_ids(fragment: Fragment) -> Fragment:
    return fragment._replace(row_ids=InlineSequence(b"\x0a\x06\x0a\x04\x08\x63\x10\x65"))


def _external_ids(fragment: Fragment) -> Fragment:
    return fragment._replace(row_ids=ExternalSequence("_rowids/gone.bin", 0, 10))


def _double_ids(fragment: Fragment) -> Fragment:
    return fragment._replace(row_ids=InlineSequence(b"\x0a\x04\x0a\x02\x10\x04"))


def _in(number: int, change: Callable[[Fragment], Fragment]) -> Callable[[Fragment], Fragment]:
    return lambda fragment: change(fragment) if fragment.id == number else fragment


WITHOUT_LAST = EVERY - {8, 9, 10, 11}
DAMAGES: dict[str, Damage] = {
    "missing latest manifest": Damage(
        lambda path, table: _manifest(path, table, 3).unlink(),
        "manifest", "latest_version_hint", WITHOUT_LAST, "version",
    ),
    "truncated latest manifest": Damage(
        lambda path, table: truncate(_manifest(path, table, 3)),
        "manifest", ".manifest", WITHOUT_LAST, "version", opens=False,
    ),
    "flipped latest manifest": Damage(
        lambda path, table: flip(_manifest(path, table, 3), -16),
        "manifest", ".manifest", WITHOUT_LAST, "version", opens=False,
    ),
    "truncated older manifest": Damage(
        lambda path, table: truncate(_manifest(path, table, 1)), "manifest", ".manifest",
    ),
    "manifest of another version": Damage(
        lambda path, table: _manifest(path, table, 3).write_bytes(
            _manifest(path, table, 2).read_bytes()
        ),
        "manifest", ".manifest", WITHOUT_LAST, "version", opens=False,
    ),
    "missing data file": Damage(
        lambda path, table: data_file(path, table, 0).unlink(),
        "data", ".lance", EVERY - {0, 1, 2, 3}, "rows",
    ),
    "truncated data file": Damage(
        lambda path, table: truncate(data_file(path, table, 1)),
        "data", ".lance", EVERY - {4, 7}, "rows",
    ),
    "flipped footer of a data file": Damage(
        lambda path, table: flip(data_file(path, table, 2), -3),
        "data", ".lance", WITHOUT_LAST, "rows",
    ),
    "spoilt pages of a data file": Damage(
        lambda path, table: _flip_page(data_file(path, table, 2)),
        "data", ".lance", WITHOUT_LAST, "rows", level="data",
    ),
    "exchanged data files": Damage(
        lambda path, table: data_file(path, table, 2).write_bytes(b"LANC" * 20),
        "data", ".lance", WITHOUT_LAST, "rows",
    ),
    "missing deletion file": Damage(
        lambda path, table: _only(path, DELETIONS).unlink(),
        "deletion", DELETIONS, EVERY - {4, 7}, "rows",
    ),
    "truncated deletion file": Damage(
        lambda path, table: truncate(_only(path, DELETIONS)),
        "deletion", DELETIONS, EVERY - {4, 7}, "rows",
    ),
    "missing transaction file": Damage(
        lambda path, table: _only(path, "_transactions").unlink(), "transaction", ".txn",
    ),
    "flipped transaction file": Damage(
        lambda path, table: flip(_only(path, "_transactions"), 0), "transaction", ".txn",
    ),
    "spoilt tag": Damage(
        lambda path, table: (path / "_refs/tags/good.json").write_text("{'"), "tag", "good.json",
    ),
    "tag without its version": Damage(
        lambda path, table: _manifest(path, table, 2).unlink(), "tag", "good.json",
    ),
    "missing branch file": Damage(
        _lose_branch, "branch", "dev.json",
    ),
    "spoilt hint": Damage(
        lambda path, table: (path / "_versions/latest_version_hint.json").write_bytes(b"{]" * 20),
        "hint", "hint",
    ),
    "spoilt row ids": Damage(
        lambda path, table: rewrite(path, table, _in(0, _spoil_ids)),
        "row ids", ".manifest", EVERY, "row ids",
    ),
    "missing file of row ids": Damage(
        lambda path, table: rewrite(path, table, _in(0, _external_ids)),
        "row ids", "_rowids/gone.bin", EVERY, "row ids",
    ),
    "row ids used twice": Damage(
        lambda path, table: rewrite(path, table, _in(2, _double_ids)),
        "row ids", ".manifest", EVERY, "row ids",
    ),
}  # fmt: skip
