"""Messages hold no secrets and stay short, whatever a server says."""

import pickle

import pytest

import lancetable as lt
from lancetable.store import TableLocation
from lancetable.store.cloud import client
from lancetable.store.cloud.errors import Verb, hide_secrets, quoted, translated
from lancetable.store.cloud.fetch import repeated
from lancetable.store.cloud.objects import ObjectStore
from lancetable.store.cloud.settings import Limits, Service, settle
from lancetable.store.dynamodb import DynamoManifests

SECRET = "0sEcReT+value/x="


@pytest.mark.parametrize(
    "text",
    [
        f"https://me:{SECRET}@host/folder",
        f"https://account.blob.core.windows.net/c/x?sv=2021&sig={SECRET}&se=2020",
        f"https://host/x?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}",
        f"https://host/x?X-Amz-Security-Token={SECRET}",
        f"https://host/x?X-Goog-Signature={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"AccountName=a;AccountKey={SECRET};",
        f"aws_secret_access_key={SECRET}",
        f"client_secret: {SECRET}",
        f"https://host/x?access_token={SECRET}",
    ],
)
def test_secrets_are_hidden(text: str) -> None:
    assert SECRET not in hide_secrets(text)
    assert SECRET not in quoted(text)
    assert hide_secrets(hide_secrets(text)) == hide_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/folder",
        "s3://bucket/signature/design=1",
        "the session token is not valid; set aws_session_token to the one of the key",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert hide_secrets(text) == text


def test_foreign_text_is_one_short_line() -> None:
    assert quoted("a\nb\x1b[31m\0c") == "a b [31m c"
    assert len(quoted("x" * 10**6)) <= 300


def test_reprs_hold_no_secrets() -> None:
    options = {"aws_secret_access_key": SECRET, "aws_session_token": SECRET}
    assert SECRET not in repr(DynamoManifests("table", options, lambda: options))
    assert SECRET not in repr(TableLocation(f"https://me:{SECRET}@host/x", options))
    store = ObjectStore("https://me:password@host/x", {})
    assert store.root == "https://***@host/x"
    again = pickle.loads(pickle.dumps(store))
    assert again._address == store._address


class Panic(BaseException):
    """As the client library raises it."""


Panic.__name__ = "PanicException"


def test_a_panic_of_the_client_is_an_error_of_ours() -> None:
    def fail() -> None:
        raise Panic("request valid: InvalidUri")

    with pytest.raises(lt.StoreError, match="rejected the address or a setting"):
        repeated(fail, "s3://bucket/x", Limits(), Verb.CREATE)


def test_what_is_not_the_clients_passes_through() -> None:
    for kind in (KeyboardInterrupt, SystemExit, MemoryError):

        def fail(kind: type[BaseException] = kind) -> None:
            raise kind

        with pytest.raises(kind):
            repeated(fail, "s3://bucket/x", Limits())


def test_an_answer_of_a_megabyte_makes_a_short_message() -> None:
    long = "very " * 200_000
    texts = [
        f"x - Server returned non-2xx status code: 418 : <Message>{long}</Message>",
        f"x - Server returned non-2xx status code: 418 : {long}",
        f"error from credential provider: {long}",
        long,
    ]
    for text in texts:
        error = translated(RuntimeError(text), "s3://bucket/x")
        assert len(str(error)) < 1000


def test_clients_of_rotated_tokens_are_forgotten() -> None:
    kept = ObjectStore("memory://rotated/x", {})
    kept.put("a", b"1")
    before = {one.number for one in client._connections.values()}
    for number in range(client.MOST_CONNECTIONS + 10):
        ObjectStore("s3://rotated/x", {"aws_session_token": str(number)})
    assert len(client._connections) <= client.MOST_CONNECTIONS + len(before)
    assert ObjectStore("memory://rotated/x", {}).read("a") == b"1"


def test_times_are_read_with_and_without_a_unit() -> None:
    given = {
        "read_timeout": "500ms",
        "connect_timeout": "2s",
        "timeout": "1m",
        "retry_timeout": "7",
    }
    limits = settle(Service.S3, given).limits
    assert limits.read_timeout == 0.5
    assert limits.connect_timeout == 2.0
    assert limits.request_timeout == 60.0
    assert limits.retry_timeout == 7.0
    assert limits.max_retries is None
    for wrong in ("soon", "nan", "inf", "-1", "0"):
        with pytest.raises(lt.InputError, match="read_timeout"):
            settle(Service.S3, {"read_timeout": wrong})
