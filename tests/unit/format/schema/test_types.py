"""Schemas in Arrow: storage, what users see, and the way back."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError, SchemaError
from lancetable.format.schema.model import Field, Schema, primary_key
from lancetable.format.schema.types import (
    arrow_schema,
    arrow_type,
    relabel,
    schema_from_arrow,
    storage_schema,
)
from tests.unit.format.schema.test_logical import dictionaries, variable, vectors

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


def _structs(inner):
    fields = st.lists(st.builds(pa.field, names, inner, st.booleans()), max_size=3)
    return fields.map(lambda parts: pa.struct({part.name: part for part in parts}.values()))


def _nested(inner):
    return st.one_of(
        _structs(inner),
        st.builds(pa.list_, st.builds(pa.field, names, inner, st.booleans())),
        st.builds(pa.large_list, inner),
        st.builds(pa.map_, st.just(pa.string()), inner),
        st.builds(pa.list_, _structs(inner), st.integers(1, 4)),
    )


arrow_types = st.recursive(st.one_of(vectors, variable, dictionaries), _nested, max_leaves=6)
schemas = st.lists(st.builds(pa.field, names, arrow_types, st.booleans()), max_size=4).map(
    pa.schema
)


@given(schemas)
def test_every_schema_comes_back(schema):
    ours = schema_from_arrow(schema)
    assert arrow_schema(ours).equals(schema)
    assert [field.id for field in ours.walk()] == list(range(len(list(ours.walk()))))
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_metadata_and_extensions_come_back():
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"unit": "m"}),
            pa.field("u", pa.uuid()),
            pa.field("s", pa.struct([pa.field("j", pa.json_())])),
            pa.field("x", pa.binary(), metadata={"ARROW:extension:name": "my.ext"}),
        ],
        metadata={"k": "v"},
    )
    assert arrow_schema(schema_from_arrow(schema)).equals(schema, check_metadata=True)


def test_storage_has_no_extension_types():
    ours = schema_from_arrow(pa.schema([("u", pa.uuid()), ("j", pa.json_())]))
    assert storage_schema(ours).types == [pa.binary(16), pa.string()]
    assert [field.logical_type for field in ours.fields] == ["fixed_size_binary:16", "json"]
    assert ours.fields[1].extension_name == "lance.json"


def test_blobs_are_described():
    blob = {"lance-encoding:blob": "true"}
    one = Field("b", 0, "large_binary", metadata=blob)
    assert arrow_type(one) == pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
    in_manifest = Field("b", 0, "struct", extension_name="lance.blob.v2")
    in_file = Field("b", 0, "struct", metadata=blob)
    for two in (in_manifest, in_file):
        shown = arrow_schema(Schema((two,))).field(0)
        assert [child.name for child in shown.type] == [
            *("kind", "position", "size", "blob_id", "blob_uri")
        ]
        assert not any(child.nullable for child in shown.type)
        assert shown.metadata[b"lance-encoding:blob"] == b"true"


@pytest.mark.parametrize(
    "field",
    [
        Field("f", 0, "list"),
        Field("f", 0, "map", children=(Field("entries", 1, "struct"),)),
        Field("f", 0, "int32", children=(Field("x", 1, "int8"),)),
        Field("f", 0, "fixed_size_list:struct:x", children=(Field("item", 1, "struct"),)),
    ],
)
def test_children_that_do_not_fit(field):
    with pytest.raises(CorruptError):
        arrow_type(field)


def test_an_extension_that_contradicts_its_storage():
    field = Field("u", 0, "int32", metadata={"ARROW:extension:name": "arrow.uuid"})
    with pytest.raises(CorruptError, match="extension type"):
        arrow_schema(Schema((field,)))


def test_relabel_shares_the_buffers():
    words = pa.array(["a", None, "ccc"])
    bytes_ = relabel(words, pa.binary())
    assert bytes_.to_pylist() == [b"a", None, b"ccc"]
    assert [part and part.address for part in bytes_.buffers()] == [
        part and part.address for part in words.buffers()
    ]


def test_the_primary_key_is_in_order():
    key = "lance-schema:unenforced-primary-key"
    schema = schema_from_arrow(
        pa.schema(
            [
                pa.field("c", pa.int8(), metadata={key: "yes"}),
                pa.field("b", pa.int8(), metadata={f"{key}:position": "2"}),
                pa.field("a", pa.int8(), metadata={f"{key}:position": "1"}),
                pa.field("d", pa.int8(), metadata={key: "false"}),
            ]
        )
    )
    assert [field.name for field in primary_key(schema)] == ["a", "b", "c"]


def test_metadata_that_is_not_text_is_kept_and_such_a_key_is_refused():
    stored = pa.schema([pa.field("a", pa.int8(), metadata={b"k": b"\xff"})])
    assert arrow_schema(schema_from_arrow(stored)).field("a").metadata == {b"k": b"\xff"}
    with pytest.raises(SchemaError, match="UTF-8"):
        schema_from_arrow(pa.schema([pa.field("a", pa.int8(), metadata={b"\xff": b"k"})]))
