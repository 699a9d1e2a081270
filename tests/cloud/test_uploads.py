"""Large files go up in parts, side by side, and leave nothing behind when they are given up."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store import Store
from lancetable.store.cloud.settings import MiB
from lancetable.store.cloud.upload import Upload
from tests.servers.places import Place
from tests.servers.proxy import Choose, Harm, Proxy
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


def is_last_step(method: str, path: str) -> bool:
    """Say whether a request ends an upload of many parts."""
    return (method == "POST" and "uploadId" in path) or (
        method == "PUT" and "comp=blocklist" in path
    )


def is_first_step(method: str, path: str) -> bool:
    """Say whether a request begins an upload of many parts."""
    return method == "POST" and "uploads" in path


def once(harm: Harm, is_hurt: Callable[[str, str], bool], times: int = 1) -> Choose:
    """Hurt the first requests of one kind."""
    left = [times]

    def choose(method: str, path: str) -> Harm:
        if left[0] and is_hurt(method, path):
            left[0] -= 1
            return harm
        return Harm.NONE

    return choose


def write_big(store: Store) -> bytes:
    """Write an object of several parts, and return its content."""
    content = [bytes([number]) * MiB for number in range(12)]
    file = store.create("data/big")
    for part in content:
        file.write([part])
    file.close()
    return b"".join(content)


@pytest.mark.parametrize("harm", [Harm.RESET_AFTER, Harm.LOST_ANSWER])
def test_the_last_answer_of_an_upload_is_lost(hurt: tuple[Place, Proxy], harm: Harm) -> None:
    place, between = hurt
    store = place.having(part_bytes=str(PART)).open()
    between.choose = once(harm, is_last_step)
    content = write_big(store)
    assert any(one.harm is harm for one in between.seen)
    assert store.read("data/big") == content


def test_the_request_that_begins_an_upload_is_repeated(hurt: tuple[Place, Proxy]) -> None:
    place, between = hurt
    if place.uri.startswith("az:"):
        pytest.skip("uploads to Azure begin without a request")
    store = place.having(part_bytes=str(PART)).open()
    between.choose = once(Harm.RESET, is_first_step, 2)
    content = write_big(store)
    assert sum(one.harm is Harm.RESET for one in between.seen) == 2
    assert store.read("data/big") == content


def test_an_upload_that_cannot_be_finished_leaves_nothing(hurt: tuple[Place, Proxy]) -> None:
    place, between = hurt
    store = place.having(part_bytes=str(PART), retry_timeout="1").open()
    between.choose = lambda m, p: Harm.RESET if is_last_step(m, p) else Harm.NONE
    file = store.create("data/big")
    for _ in range(12):
        file.write([bytes(MiB)])
    with pytest.raises(lt.StoreError):
        file.close()
    file.abort()
    between.heal()
    assert list(store.list("")) == []


def test_an_upload_that_ended_unseen_is_removed_when_given_up(hurt: tuple[Place, Proxy]) -> None:
    """Nothing can be asked when the upload ends; later the object can be removed."""
    place, between = hurt
    store = place.having(part_bytes=str(PART), retry_timeout="0.5").open()
    ended: list[str] = []

    def choose(method: str, path: str) -> Harm:
        if is_last_step(method, path) and not ended:
            ended.append(path)
            return Harm.RESET_AFTER
        return Harm.RESET if ended else Harm.NONE

    between.choose = choose
    file = store.create("data/big")
    for _ in range(12):
        file.write([bytes(MiB)])
    with pytest.raises(lt.StoreError):
        file.close()
    between.heal()
    file.abort()
    assert list(store.list("")) == []
