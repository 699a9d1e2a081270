"""The layout of a manifest file, whole and damaged."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.envelope import manifest_message, seal, section


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_message_is_found_behind_its_sections(sections, message):
    assert bytes(manifest_message(seal(sections, message))) == message


@given(st.binary(max_size=30), st.binary(max_size=30), st.integers(0, 79))
def test_a_shortened_file_is_damage(sections, message, cut):
    whole = seal(sections, message)
    with pytest.raises(CorruptError):
        manifest_message(whole[: min(cut, len(whole) - 1)])


def test_a_section_is_found_at_its_position():
    data = seal(b"ab" + struct.pack("<I", 3) + b"xyz", b"m")
    assert bytes(section(data, 2, "index section")) == b"xyz"


@pytest.mark.parametrize("position", [8, 13, 2**63, 2**64 - 1])
def test_a_section_beyond_the_file(position):
    data = seal(struct.pack("<I", 4000) + b"xyz", b"m")
    with pytest.raises(CorruptError, match="index section"):
        section(data, position, "index section")
    with pytest.raises(CorruptError, match="passes the end"):
        section(data, 0, "index section")


def test_what_is_wrong_is_said():
    good = seal(b"", b"message")
    with pytest.raises(CorruptError, match="LANC"):
        manifest_message(good[:-1] + b"X")
    with pytest.raises(CorruptError, match="beyond its end"):
        manifest_message(good[:-16] + struct.pack("<Q", 999) + good[-8:])
    with pytest.raises(CorruptError, match="does not end at the footer"):
        manifest_message(good[:-16] + b"more" + good[-16:])
    with pytest.raises(UnsupportedError, match=r"9\.2"):
        manifest_message(good[:-8] + struct.pack("<HH", 9, 2) + b"LANC")
