"""Large files go up in parts, side by side, and leave nothing behind when they are given up."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store.settings import MiB
from lancetable.store.upload import Upload
from tests.servers.places import Place
from tests.servers.proxy import Proxy
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.cloud
PART = 5 * MiB


def uploads(server: S3Server) -> list[str]:
    """Return the keys of unfinished uploads."""
    found = server.client().list_multipart_uploads(Bucket="bucket").get("Uploads", [])
    return [one["Key"] for one in found]


def test_parts_make_one_object(via: Place, between: Proxy, s3_server: S3Server) -> None:
    store = via.having(part_bytes=str(PART)).open()
    content = [bytes([number]) * MiB for number in range(12)]
    file = store.create("data/big")
    for part in content:
        file.write([part[: MiB // 2], memoryview(part)[MiB // 2 :]])
    file.close()
    assert store.read("data/big") == b"".join(content)
    parts = [one for one in between.seen if one.method == "PUT" and "partNumber" in one.path]
    assert len(parts) == 3
    assert not uploads(s3_server)


def test_an_upload_that_is_given_up_is_forgotten(s3: Place, s3_server: S3Server) -> None:
    store = s3.having(part_bytes=str(PART)).open()
    file = store.create("data/big")
    for _ in range(12):
        file.write([bytes(MiB)])
    file.abort()
    assert not store.exists("data/big")
    assert not uploads(s3_server)


def test_an_upload_that_fails_is_forgotten(via: Place, between: Proxy, s3_server: S3Server) -> None:
    refused = (403, b"<Error><Code>AccessDenied</Code></Error>")
    between.answer = lambda method, path: refused if "partNumber=2" in path else None
    store = via.having(part_bytes=str(PART)).open()
    file = store.create("data/big")

    def write() -> None:
        for _ in range(40):
            file.write([bytes(MiB)])
        file.close()

    with pytest.raises(lt.StoreError, match="grant"):
        write()
    file.abort()
    assert not store.exists("data/big")
    assert not uploads(s3_server)


def test_a_write_that_fails_leaves_no_file(s3: Place, s3_server: S3Server) -> None:
    options = {**s3.options, "part_bytes": str(PART)}

    def batches():
        for number in range(16):
            yield pa.record_batch({"x": pa.array([bytes([number]) * MiB])})
        raise RuntimeError("the source broke")

    schema = pa.schema([pa.field("x", pa.binary())])
    table = lt.create_table(s3.uri, schema=schema, storage_options=options)
    before = {entry.path for entry in s3.open().list("")}
    with pytest.raises(RuntimeError, match="the source broke"):
        table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    assert {entry.path for entry in s3.open().list("")} == before
    assert not uploads(s3_server)


def test_parts_are_sent_side_by_side_and_few_are_held(via: Place, between: Proxy) -> None:
    between.delay = 0.05
    store = via.having(part_bytes=str(PART), upload_parts="3").open()
    between.most_at_once = 0
    file = store.create("data/big")
    assert isinstance(file, Upload)
    for _ in range(30):
        file.write([bytes(MiB)])
    file.close()
    assert 2 <= between.most_at_once <= 3
    assert store.open("data/big").size == 30 * MiB
