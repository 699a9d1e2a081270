import pytest

from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import (
    FRAGMENT_REUSE,
    holds_row_ids,
    is_known,
    is_system,
    kind_of,
)


def segment(message="", version=None, name="i"):
    url = f"/lance.table.{message}" if message else ""
    return IndexSegment("u", name, (0,), 1, type_url=url, index_version=version)


@pytest.mark.parametrize(
    ("message", "version", "known", "with_ids"),
    [
        ("BTreeIndexDetails", None, True, True),
        ("BTreeIndexDetails", 1, True, False),
        ("BTreeIndexDetails", 2, False, False),
        ("VectorIndexDetails", 2, True, True),
        ("LaterIndexDetails", 0, False, False),
        ("", None, False, False),
    ],
)
def test_what_is_known_about_a_version(message, version, known, with_ids):
    one = segment(message, version)
    assert (is_known(one), holds_row_ids(one)) == (known, with_ids)


def test_a_system_segment_is_known_by_its_name():
    one = segment(name=FRAGMENT_REUSE)
    assert is_system(one)
    assert is_known(one)
    assert not holds_row_ids(one)
    assert not kind_of(one).is_vector
    assert kind_of(segment("VectorIndexDetails")).is_vector
