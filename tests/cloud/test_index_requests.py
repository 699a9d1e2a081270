"""How many requests a query through an index makes after the table was opened."""

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.index.files import Pages
from lancetable.index.registry import OpenSegments, open_scalar
from tests.servers.places import Place
from tests.servers.proxy import Proxy

cloud = pytest.mark.cloud
ROWS = 100_000


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lancetable.scan.ask_indices.SEGMENTS", OpenSegments(open_scalar))
    monkeypatch.setattr("lancetable.index.files.PAGES", Pages())


@pytest.fixture(scope="module")
def data() -> pa.Table:
    """Return rows whose columns are too large for the first request to a file to bring them."""
    draw = np.random.default_rng(0)
    keys = draw.permutation(np.unique(draw.integers(0, 1 << 62, ROWS)))
    tags = [f"t{key % 500}" for key in keys.tolist()]
    return pa.table({"key": keys, "tag": tags, "value": draw.random(len(keys))})


@cloud
def test_an_index_takes_at_most_three_requests(via: Place, between: Proxy, data: pa.Table) -> None:
    table = lt.create_table(via.uri, data, storage_options=via.options)
    table.indices.create("key", "btree")
    table.indices.create("tag", "bitmap")
    stranger = {**via.options, "user_agent": "somebody else"}
    key, tag = data["key"][777].as_py(), data["tag"][777].as_py()
    for where in (f"key = {key}", f"tag = '{tag}'"):
        opened = lt.open_table(via.uri, storage_options=stranger)
        between.seen.clear()
        assert opened.count(where) >= 1
        assert len(between.seen) <= 3
        assert all("/_indices/" in one.path for one in between.seen)
        between.seen.clear()
        # What indices named is kept: the rows are all that is read.
        assert key in opened.scan(where=where).to_arrow()["key"].to_pylist()
        assert all("/data/" in one.path for one in between.seen)
        assert len(between.seen) <= 5
        between.seen.clear()
        assert opened.count(where) >= 1
        assert not between.seen
