"""Types that few people write: both libraries store the same, or refuse the same."""

import lance
import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError

pytestmark = pytest.mark.oracle

HOLLOW = pa.struct([])


@pytest.mark.parametrize(
    "type_",
    [
        pa.fixed_shape_tensor(pa.float32(), [2, 2]),
        pa.fixed_shape_tensor(pa.int32(), [4], dim_names=["x"]),
        pa.fixed_shape_tensor(pa.uint8(), [2, 2], permutation=[1, 0]),
    ],
    ids=str,
)
def test_tensors(tmp_path, type_):
    uri = str(tmp_path / "t")
    storage = pa.array([[1, 2, 3, 4], [5, 6, 7, 8]], type_.storage_type)
    data = pa.table({"t": pa.ExtensionArray.from_storage(type_, storage)})
    table = lancetable.create_table(uri, data)
    table.append(data)
    table.update({"t": "t"})
    dataset = lance.dataset(uri)
    for found in (table.scan().to_arrow(), dataset.to_table()):
        assert found.schema.field("t").type == type_
        assert found.column("t").combine_chunks().storage.to_pylist() == storage.to_pylist() * 2
    theirs = lance.write_dataset(data, str(tmp_path / "theirs"))
    ours = lancetable.open_table(theirs.uri).scan().to_arrow()
    assert ours.schema.field("t").metadata == theirs.schema.field("t").metadata
    assert ours.schema.field("t").type == type_


@pytest.mark.parametrize(
    "array",
    [
        pa.array([{}, None], HOLLOW),
        pa.array([{"a": {}}, {"a": None}], pa.struct([("a", HOLLOW)])),
        pa.array([{"a": {}}, None], pa.struct([("a", HOLLOW)])),
        pa.array([[{}, {}], []], pa.list_(HOLLOW)),
    ],
    ids=["null", "null inside", "null above", "list"],
)
def test_structs_without_fields_are_refused_where_something_would_be_lost(tmp_path, array):
    data = pa.table({"id": range(len(array)), "c": array})
    with pytest.raises(OSError, match="Empty structs"):
        lance.write_dataset(data, str(tmp_path / "theirs"))
    with pytest.raises(InputError, match="has no fields"):
        lancetable.create_table(tmp_path / "ours", data)
    assert not list((tmp_path / "ours").rglob("*.lance"))


def test_structs_without_fields(tmp_path):
    uri = str(tmp_path / "t")
    data = pa.table({"id": [1, 2], "c": pa.array([{}, {}], HOLLOW)})
    lancetable.create_table(uri, data).append(data)
    assert lance.dataset(uri).to_table().to_pylist() == data.to_pylist() * 2
    assert lancetable.open_table(uri).scan().to_arrow().to_pylist() == data.to_pylist() * 2
