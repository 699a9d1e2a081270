"""An address names the same folder here and in pylance."""

from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from tests.servers.s3 import S3Server

lance = pytest.importorskip("lance")
pytestmark = [pytest.mark.oracle, pytest.mark.cloud]
NAMES = ["a%20b", "a b", "x%2Fy", "x%25z", "pct%zz", "tr%20", "e%C3%A9", "a%23b", "a%3Fb"]


@pytest.mark.parametrize("name", NAMES)
def test_s3_addresses(s3_server: S3Server, name: str) -> None:
    place = s3_server.place().fresh()
    uri = f"{place.uri}/{name}"
    lance.write_dataset(pa.table({"a": [1]}), uri, storage_options=place.pylance)
    table = lt.open_table(uri, storage_options=place.options)
    table.append({"a": [2]})
    found = lance.dataset(uri, storage_options=place.pylance).to_table()
    assert sorted(found["a"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prefix", ["", "file://"])
def test_local_addresses(tmp_path: Path, prefix: str, name: str) -> None:
    uri = f"{prefix}{tmp_path}/{name}"
    lance.write_dataset(pa.table({"a": [1]}), uri)
    lt.open_table(uri).append({"a": [2]})
    assert sorted(lance.dataset(uri).to_table()["a"].to_pylist()) == [1, 2]
