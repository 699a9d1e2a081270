"""JSON documents become the bytes Lance writes and the text Lance shows."""

import contextlib
import json
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, InputError
from lancetable.format.encoding.jsonb import (
    decode_jsonb,
    encode_jsonb,
    float_text,
    jsonb_to_text,
)

# Input text, bytes and shown text as pylance 14.0.2 wrote and rendered them.
VECTORS = [
    ("null", "2000000000000000", "null"),
    ("true", "2000000040000000", "true"),
    ("false", "2000000030000000", "false"),
    ("0", "200000002000000100", "0"),
    ("1", "20000000200000025001", "1"),
    ("-1", "200000002000000240ff", "-1"),
    ("255", "200000002000000250ff", "255"),
    ("256", "2000000020000003500100", "256"),
    ("65536", "20000000200000055000010000", "65536"),
    ("18446744073709551615", "200000002000000950ffffffffffffffff", "18446744073709551615"),
    ("18446744073709551616", "20000000200000096043f0000000000000", "1.8446744073709552e+19"),
    ("-128", "20000000200000024080", "-128"),
    ("-129", "200000002000000340ff7f", "-129"),
    ("1.5", "2000000020000009603ff8000000000000", "1.5"),
    ("-0.0", "2000000020000009608000000000000000", "-0.0"),
    ('"a"', "200000001000000161", '"a"'),
    ('"hé"', "200000001000000368c3a9", '"hé"'),
    ("[]", "80000000", "[]"),
    ("{}", "40000000", "{}"),
    ("[1,2,3]", "80000003200000022000000220000002500150025003", "[1,2,3]"),
    (
        '{"b":1,"a":2}',
        "4000000210000001100000012000000220000002616250025001",
        '{"a":2,"b":1}',
    ),
    (
        '{"a":{"x":[true,null,{"y":-5}]},"zz":"s","":0}',
        (
            "40000003100000001000000110000002200000015000002c10000001617a7a0040000001100000015000"
            "001f788000000340000000000000005000000f4000000110000001200000027940fb73"
        ),
        '{"":0,"a":{"x":[true,null,{"y":-5}]},"zz":"s"}',
    ),
]


@pytest.mark.parametrize(("text", "data", "shown"), VECTORS)
def test_known_documents(text, data, shown):
    assert encode_jsonb(text).hex() == data
    assert decode_jsonb(memoryview(bytes.fromhex(data))) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e+16"),
        ("123456789012345680.0", "1.2345678901234568e+17"),
        ("1e-5", "0.00001"),
        ("1e-7", "1e-7"),
        ("-1e22", "-1e+22"),
        ("1e3", "1000.0"),
        ("5e-324", "5e-324"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("1E400", "null"),
        ("-0", "0"),
    ],
)
def test_numbers_are_shown_as_lance_shows_them(number, shown):
    assert decode_jsonb(memoryview(encode_jsonb(number))) == shown


def test_single_floats_have_fewer_digits():
    assert float_text(1.100000023841858, single=True) == "1.1"
    assert float_text(123456789.0, single=True) == "123456790.0"
    assert float_text(1e15, single=True) == "1e15"


def test_strings_keep_their_characters():
    text = r'"\u0001\u007f\u2028\b\f\n\r\t\"\\/é😀\ud83d\ude00"'
    shown = '"\\u0001\x7f\u2028\\b\\f\\n\\r\\t\\"\\\\/é😀😀"'
    assert decode_jsonb(memoryview(encode_jsonb(text))) == shown
    assert decode_jsonb(memoryview(encode_jsonb(r'"\ud83d"'))) == r'"\\ud83d"'


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ("10", "null"),
        ("20", "null"),
        ("70" + "00000000000004d2" + "02", "12.34"),
        ("70" + "ffffffffffffffffffffffffffffffff" + "01", "-0.1"),
        ("70" + "000000000000000000000000000004d2" + "0402", "12.34"),
    ],
)
def test_numbers_only_other_writers_produce(payload, shown):
    data = bytes.fromhex(payload)
    document = (0x20000000).to_bytes(4, "big") + (0x20000000 | len(data)).to_bytes(4, "big") + data
    assert decode_jsonb(memoryview(document)) == shown


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ("00ff01", '"FF01"'),
        ("1000004774", '"2020-01-31"'),
        ("200000000000000001", '"1970-01-01 00:00:00.000001"'),
        ("30000000000000000000000e10", '"1970-01-01 01:00:00.000000 +0100"'),
        ("300000000000000000ff", '"1969-12-31 23:00:00.000000 -0100"'),
    ],
)
def test_extension_values(payload, shown):
    data = bytes.fromhex(payload)
    document = (0x20000000).to_bytes(4, "big") + (0x60000000 | len(data)).to_bytes(4, "big") + data
    assert decode_jsonb(memoryview(document)) == shown


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_column_keeps_its_nulls_and_slices(kind):
    documents = ["[1]", None, '{"a":null}', '"x"']
    data = [None if each is None else encode_jsonb(each) for each in documents]
    column = pa.array(data, kind)
    assert jsonb_to_text(column).to_pylist() == documents
    assert jsonb_to_text(column.slice(1, 2)).to_pylist() == documents[1:3]
    assert jsonb_to_text(column.slice(0, 0)).type == pa.string()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_documents_survive(document):
    text = decode_jsonb(memoryview(encode_jsonb(json.dumps(document))))
    assert json.loads(text) == document


@given(JSON, st.randoms(use_true_random=False))
def test_damaged_bytes_give_text_or_a_corrupt_error(document, chance: random.Random):
    data = bytearray(encode_jsonb(json.dumps(document)))
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    del data[chance.randrange(len(data) + 1) :]
    with contextlib.suppress(CorruptError):
        json.loads(decode_jsonb(memoryview(data)))


def test_nesting_is_bounded_both_ways():
    deep = encode_jsonb("[" * 200 + "]" * 200)
    assert decode_jsonb(memoryview(deep)) == "[" * 200 + "]" * 200
    for _ in range(100):
        deep = bytes.fromhex("80000001") + (0x50000000 | len(deep)).to_bytes(4, "big") + deep
    with pytest.raises(CorruptError, match="nested deeper than 256"):
        decode_jsonb(memoryview(deep))
    for depth in (300, 100_000):
        with pytest.raises(InputError, match="nested deeper"):
            encode_jsonb("[" * depth + "]" * depth)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("[1,]", "is not JSON"),
        ("NaN", "not a JSON value"),
        ('{"a":1,"a":2}', "the key 'a' twice"),
    ],
)
def test_what_is_not_json_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        encode_jsonb(text)
