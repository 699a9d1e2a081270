"""Field lists become trees, damaged ones an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.proto import file_pb2
from lancetable.format.schema.codec import MAX_DEPTH, decode_fields, decode_file_descriptor
from lancetable.format.schema.model import DictionaryPage


def message(name, id_, parent=-1, text="int32", **more):
    return file_pb2.Field(name=name, id=id_, parent_id=parent, logical_type=text, **more)


def test_the_flat_list_becomes_a_tree():
    fields = decode_fields(
        [
            message("a", 0),
            message("s", 1, text="struct", nullable=True),
            message("x", 2, 1),
            message("l", 3, 1, "list"),
            message("item", 4, 3),
            message("b", 5),
        ]
    )
    assert [field.name for field in fields] == ["a", "s", "b"]
    assert [field.name for field in fields[1].walk()] == ["s", "x", "l", "item"]
    assert (fields[0].nullable, fields[1].nullable) == (False, True)


def test_descriptor_parts_of_a_blob_are_no_columns():
    blob = message("b", 0, text="struct", metadata={"lance-encoding:blob": b"true"})
    fields = decode_fields([blob, message("kind", -1, text="uint8"), message("c", 1)])
    assert [field.name for field in fields] == ["b", "c"]
    assert fields[0].is_blob_v2


def test_details_of_a_field():
    stored = message("d", 7, text="dict:string:int8:false", unenforced_primary_key=True)
    stored.dictionary.offset = 40
    stored.dictionary.length = 3
    stored.metadata["ARROW:extension:name"] = b"my.ext"
    (field,) = decode_fields([stored])
    assert field.dictionary == DictionaryPage(40, 3)
    assert field.extension_name == "my.ext"
    assert field.primary_key_position == 0


def test_the_old_word_for_a_blob():
    (field,) = decode_fields([message("b", 0, text="blob")])
    assert field.is_blob
    assert field.logical_type == "large_binary"


@pytest.mark.parametrize(
    ("messages", "word"),
    [
        ([message("a", 0), message("b", 0)], "share the id 0"),
        ([message("a", 0, 5)], "parent id 5"),
        ([message("a", 0, 0)], "parent id 0"),
        ([message("a", 0, 1), message("b", 1, 0)], "parent id 1"),
        ([message("f", n, n - 1, "struct") for n in range(MAX_DEPTH + 3)], "deeper"),
    ],
)
def test_lists_that_are_no_tree(messages, word):
    with pytest.raises(CorruptError, match=word):
        decode_fields(messages)


def test_the_file_descriptor():
    stored = file_pb2.FileDescriptor(length=9)
    stored.schema.fields.append(message("a", 0))
    stored.schema.metadata["k"] = b"v"
    found = decode_file_descriptor(stored.SerializeToString())
    assert (found.rows, found.schema.metadata) == (9, {"k": "v"})


@given(st.binary(max_size=80))
def test_any_bytes_are_a_descriptor_or_damage(data):
    try:
        decode_file_descriptor(data)
    except CorruptError:
        return
