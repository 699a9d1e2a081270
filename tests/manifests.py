"""Stored manifests changed field by field, as another writer could have left them."""

import struct
from collections.abc import Callable
from pathlib import Path

import lancetable as lt
from lancetable.format.manifest.envelope import FOOTER, manifest_message
from lancetable.format.proto import table_pb2


def read_manifest(path: Path) -> table_pb2.Manifest:
    """Return the message of a manifest file."""
    return table_pb2.Manifest.FromString(bytes(manifest_message(path.read_bytes())))


def manifest_file(table: Path | str, version: int | None = None) -> Path:
    """Return the manifest file of a version, by default the latest."""
    opened = lt.open_table(str(table), version=version)
    return Path(table) / opened._snapshot.manifest_path


def edit_manifest(
    table: Path | str,
    change: Callable[[table_pb2.Manifest], object],
    version: int | None = None,
) -> None:
    """Change the message of a version in place; its sections stay where they are."""
    path = manifest_file(table, version)
    data = path.read_bytes()
    position, major, minor, magic = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    message = read_manifest(path)
    change(message)
    body = message.SerializeToString()
    footer = FOOTER.pack(position, major, minor, magic)
    path.write_bytes(data[:position] + struct.pack("<I", len(body)) + body + footer)


def reorder_fragments(message: table_pb2.Manifest, order: list[int]) -> None:
    """Put the fragments of a message into another order."""
    fragments = [message.fragments[place] for place in order]
    copies = [table_pb2.DataFragment.FromString(one.SerializeToString()) for one in fragments]
    del message.fragments[:]
    message.fragments.extend(copies)
