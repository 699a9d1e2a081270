"""Measure how fast rows are found through indices, from SQL text to an Arrow table.

The values asked for follow from random positions, new ones for every repeat and the same for all
peers. `key` is a permutation of the positions, `ts` and `day` ascend with them.
"""

import pyarrow as pa

from benchmarks.cases.base import Case, Subject
from benchmarks.data import KEY_STRIDE, LABELS, TAGS, WORDS

_SIZES, _QUICK = (100_000, 1_000_000), (100_000,)
_COLUMNS = ["id", "val", "s"]


def _scan(subject: Subject, where: str) -> pa.Table:
    return subject.table.scan(_COLUMNS, where)


def point(subject: Subject) -> pa.Table:
    """Read the row of one key."""
    return _scan(subject, f"key = {subject.rows[0]}")


def key_range(subject: Subject) -> pa.Table:
    """Read the rows of a thousand neighbouring keys, which are scattered in the table."""
    first = subject.rows[0]
    return _scan(subject, f"key >= {first} AND key < {first + 1000}")


def key_list(subject: Subject) -> pa.Table:
    """Read the rows of a hundred keys."""
    return _scan(subject, f"key IN ({', '.join(map(str, subject.rows))})")


def text_point(subject: Subject) -> pa.Table:
    """Read the row of one text."""
    return _scan(subject, f"s = 'user{subject.rows[0] * KEY_STRIDE % 100_000_000:08d}'")


def bitmap_value(subject: Subject) -> pa.Table:
    """Read the rows of one of a thousand tags."""
    return _scan(subject, f"tag = {subject.rows[0] % TAGS}")


def bitmap_count(subject: Subject) -> int:
    """Count the rows of one of a thousand tags."""
    return subject.table.count(f"tag = {subject.rows[0] % TAGS}")


def label(subject: Subject) -> pa.Table:
    """Read the rows whose lists hold one of a thousand labels."""
    return _scan(subject, f"array_has(labels, 'label {subject.rows[0] % LABELS}')")


def zones(subject: Subject) -> pa.Table:
    """Read a hundred neighbouring rows by a column in order."""
    first = subject.rows[0]
    return _scan(subject, f"day >= {first} AND day < {first + 100}")


def bloom(subject: Subject) -> pa.Table:
    """Read the row of one key that only bloom filters know."""
    return _scan(subject, f"id = {subject.rows[0]}")


def ngram(subject: Subject) -> pa.Table:
    """Read the rows whose text holds a rare word."""
    return _scan(subject, f"contains(words, 'word{subject.rows[0] % WORDS:05d}')")


CASES = tuple(
    Case(name, title, "indexed", run, target, draws=draws, sizes=_SIZES, quick_sizes=_QUICK)
    for name, title, run, target, draws in (
        ("index_point", "BTREE, one key", point, 8, 1),
        ("index_range", "BTREE, 1 000 keys in a range", key_range, 8, 1),
        ("index_in", "BTREE, IN of 100 keys", key_list, 12, 100),
        ("index_text", "BTREE, one text", text_point, 4, 1),
        ("index_bitmap", "BITMAP, one value", bitmap_value, 4, 1),
        ("index_bitmap_count", "BITMAP, count of one value", bitmap_count, 4, 1),
        ("index_label", "LABEL_LIST, one label", label, 3, 1),
        ("index_zone", "ZONEMAP, 100 rows in a range", zones, 4, 1),
        ("index_bloom", "BLOOMFILTER, one key", bloom, 4, 1),
        ("index_ngram", "NGRAM, one word", ngram, 3, 1),
    )
)
