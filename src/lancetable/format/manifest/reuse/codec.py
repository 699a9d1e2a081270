"""The record of moved rows between its messages and values.

Up to 200 KB stand in the details of the index segment themselves; more go to a file in the folder
of the segment, and the details name it.
"""

from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError
from lancetable.format.manifest.indices.kinds import FRAGMENT_REUSE, KINDS
from lancetable.format.manifest.names import checked_path
from lancetable.format.manifest.reuse.model import (
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)
from lancetable.format.proto import table_pb2

_Details = table_pb2.FragmentReuseIndexDetails
TYPE_URL = KINDS[FRAGMENT_REUSE].type_url
EXTERNAL_NAME = "details.binpb"
MOST_INLINE = 200 * 1024


class External(NamedTuple):
    """The place of a long record: a range of a file in the folder of the segment."""

    path: str
    offset: int
    size: int


class Encoded(NamedTuple):
    """A record as it is stored: details, and the content of a file beside them."""

    details: bytes
    external: bytes | None = None


def decode_details(details: bytes) -> FragmentReuse | External:
    """Return a record, or where it stands.

    Raises:
        CorruptError: the bytes are no such message.
    """
    try:
        message = _Details.FromString(details)
    except DecodeError:
        raise CorruptError("the record of moved rows is not a valid message") from None
    if message.WhichOneof("content") == "external":
        place = message.external
        return External(checked_path(place.path, "record"), place.offset, place.size)
    return _reuse(message.inline)


def decode_external(content: bytes) -> FragmentReuse:
    """Return the record that a file holds.

    Raises:
        CorruptError: the bytes are no such message.
    """
    try:
        return _reuse(_Details.InlineContent.FromString(content))
    except DecodeError:
        raise CorruptError("the record of moved rows is not a valid message") from None


def encode_reuse(reuse: FragmentReuse, most_inline: int = MOST_INLINE) -> Encoded:
    """Return the messages of a record."""
    content = _Details.InlineContent()
    for version in reuse.versions:
        stored = content.versions.add(dataset_version=version.dataset_version)
        for group in version.groups:
            stored.groups.add(
                changed_row_addrs=group.kept,
                old_fragments=[_digest_message(one) for one in group.old_fragments],
                new_fragments=[_digest_message(one) for one in group.new_fragments],
            )
    data = bytes(content.SerializeToString())
    if len(data) <= most_inline:
        return Encoded(bytes(_Details(inline=content).SerializeToString()))
    place = table_pb2.ExternalFile(path=EXTERNAL_NAME, size=len(data))
    return Encoded(bytes(_Details(external=place).SerializeToString()), data)


def _reuse(content: Any) -> FragmentReuse:
    return FragmentReuse(
        tuple(
            ReuseVersion(
                version.dataset_version,
                tuple(
                    ReuseGroup(
                        group.changed_row_addrs,
                        tuple(map(_digest, group.old_fragments)),
                        tuple(map(_digest, group.new_fragments)),
                    )
                    for group in version.groups
                ),
            )
            for version in content.versions
        )
    )


def _digest(message: Any) -> FragmentDigest:
    return FragmentDigest(message.id, message.physical_rows, message.num_deleted_rows)


def _digest_message(digest: FragmentDigest) -> Any:
    return _Details.FragmentDigest(
        id=digest.id, physical_rows=digest.physical_rows, num_deleted_rows=digest.deleted_rows
    )
