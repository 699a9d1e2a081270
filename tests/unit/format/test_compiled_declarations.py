"""Python and the C sources of the kernels agree about functions and records."""

import ctypes
import re

import pytest

from lancetable.format.encoding.kernels import compiled
from lancetable.format.encoding.kernels.encoders import SIGNATURES, Signature
from lancetable.format.encoding.kernels.records import RECORDS, SlotRecord
from tests.conftest import ROOT

SOURCES = ROOT / "src/lancetable/format/encoding/kernels/c"
DEFINITION = re.compile(r"^(int64_t|void) (lt_\w+)\(([^)]*)\)\s*\{", re.MULTILINE)
WORD = re.compile(r"\bWORD\((\w+), (\w+), (\d+)\);")
LISTED = re.compile(r"sizeof\((\w+)\)")


def parsed() -> dict[str, Signature]:
    """Return the signatures of all functions that the C sources define for Python."""
    found: dict[str, Signature] = {}
    for path in SOURCES.glob("*.c"):
        for result, name, parameters in DEFINITION.findall(path.read_text("utf-8")):
            types = [] if parameters == "void" else parameters.split(",")
            kinds = (ctypes.c_void_p if "*" in one else _number(one.strip()) for one in types)
            found[name] = (None if result == "void" else ctypes.c_int64, tuple(kinds))
    return found


def _number(parameter: str) -> type[ctypes.c_int64]:
    assert re.fullmatch(r"u?int64_t \w+", parameter), parameter
    return ctypes.c_int64


def test_every_function_has_one_signature() -> None:
    assert sorted(parsed()) == sorted(SIGNATURES)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_a_signature_is_that_of_the_sources(name: str) -> None:
    assert SIGNATURES[name] == parsed()[name]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_the_words_of_the_sources(name: str) -> None:
    text = (SOURCES / "records.h").read_text("utf-8")
    words = [(field, int(number)) for kind, field, number in WORD.findall(text) if kind == name]
    record = RECORDS[name]
    names = [field[0].rstrip("_") for field in record._fields_]
    assert words == [(field, number) for number, field in enumerate(names)]
    assert ctypes.sizeof(record) == 8 * len(words)
    assert f"WORDS({name}, {len(words)});" in text


def test_the_library_lists_all_records_in_their_order() -> None:
    assert LISTED.findall((SOURCES / "records.c").read_text("utf-8")) == list(RECORDS)


class LongerSlot(ctypes.Structure):
    """A record with a word more than the library knows."""

    _fields_ = [*SlotRecord._fields_, ("more", ctypes.c_int64)]


@pytest.mark.skipif(compiled.LIBRARY is None, reason="the compiled kernels are not there")
@pytest.mark.parametrize("change", [{"slot_t": LongerSlot}, {"new_t": SlotRecord}])
def test_a_library_with_other_records_is_not_used(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, type[ctypes.Structure]]
) -> None:
    monkeypatch.setattr(compiled, "RECORDS", RECORDS | change)
    monkeypatch.delenv("LANCETABLE_KERNELS", raising=False)
    with pytest.warns(RuntimeWarning, match="of another release"):
        assert compiled._load() is None
