"""Facts about each kind of index, in one table.

A segment names its kind by the type of its details message: ``/lance.table.BTreeIndexDetails`` is
the kind ``btree``. Segments whose name begins with ``__lance_`` belong to the format instead of an
index on data; their name is their kind.
"""

from typing import NamedTuple

from lancetable.format.manifest.model import IndexSegment

SYSTEM = "__lance_"
FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
_SUFFIX = "indexdetails"


class Kind(NamedTuple):
    """Facts about one kind of index.

    ``newest`` is the newest version this release knows; -1 for an unknown kind. ``row_ids`` is
    the newest version whose segments hold row ids when the table has stable row ids; segments of
    newer versions, and of kinds with -1, hold row addresses, or zones of fragments.
    """

    name: str
    type_url: str
    newest: int
    row_ids: int = -1
    is_vector: bool = False
    is_zoned: bool = False
    is_system: bool = False
    shown: str = ""
    """The name users see, where it is not ``name``."""

    @property
    def public_name(self) -> str:
        """The name that users give and see."""
        return self.shown or self.name

    def written(self, *, stable_row_ids: bool) -> int:
        """Return the version of new segments; that of btrees depends on the row ids."""
        return self.newest if stable_row_ids else max(self.row_ids, 0)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("btree", "/lance.table.BTreeIndexDetails", newest=1, row_ids=0),
        Kind("bitmap", "/lance.table.BitmapIndexDetails", newest=0, row_ids=0),
        Kind(
            "labellist",
            "/lance.table.LabelListIndexDetails",
            newest=1,
            row_ids=1,
            shown="label_list",
        ),
        Kind("ngram", "/lance.table.NGramIndexDetails", newest=0, row_ids=0),
        Kind("zonemap", "/lance.table.ZoneMapIndexDetails", newest=0, is_zoned=True),
        Kind("bloomfilter", "/lance.index.pb.BloomFilterIndexDetails", newest=0, is_zoned=True),
        Kind("json", "/lance.index.pb.JsonIndexDetails", newest=0, row_ids=0),
        Kind("rtree", "/lance.index.pb.RTreeIndexDetails", newest=0, row_ids=0),
        Kind(
            "inverted",
            "/lance.table.InvertedIndexDetails",
            newest=3,
            row_ids=3,
            shown="full_text",
        ),
        Kind("vector", "/lance.index.pb.VectorIndexDetails", newest=2, row_ids=2, is_vector=True),
        Kind(FRAGMENT_REUSE, "/lance.table.FragmentReuseIndexDetails", newest=0, is_system=True),
        Kind(MEM_WAL, "/lance.table.MemWalIndexDetails", newest=0, is_system=True),
    )
}


def message_name(segment: IndexSegment) -> str:
    """Return the name of a segment's details message, without its package."""
    return segment.type_url.rpartition(".")[2]


def kind_of(segment: IndexSegment) -> Kind:
    """Return the kind of a segment; an unknown one has no known version."""
    name = segment.name if is_system(segment) else kind_name(segment.type_url)
    return KINDS.get(name) or Kind(name, segment.type_url, newest=-1)


def kind_name(type_url: str) -> str:
    """Return the name of the kind whose details are of a type."""
    return type_url.rpartition(".")[2].lower().removesuffix(_SUFFIX)


def is_known(segment: IndexSegment) -> bool:
    """Return whether this release knows the version of a segment's files."""
    return (segment.index_version or 0) <= kind_of(segment).newest


def is_system(segment: IndexSegment) -> bool:
    """Return whether a segment is bookkeeping of the format, not an index on data."""
    return segment.name.startswith(SYSTEM)


def holds_row_ids(segment: IndexSegment) -> bool:
    """Return whether a segment of a table with stable row ids is known to hold those ids.

    Such a segment remains valid when rows move; one that holds addresses, zones of fragments or
    something unknown does not.
    """
    return (segment.index_version or 0) <= kind_of(segment).row_ids
