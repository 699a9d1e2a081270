"""What became of a request is certain only when all of its attempts are accounted for."""

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.store.cloud.objects import ObjectStore
from tests.servers.places import Place
from tests.servers.proxy import Harm, Proxy

pytestmark = pytest.mark.cloud
DENIED = (403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
CONFLICT = (409, b"<Error><Code>ConditionalRequestConflict</Code><Message>no</Message></Error>")


class Script:
    """Decides about the first requests of one kind, in order."""

    def __init__(self, between: Proxy, method: str, *steps: Harm | tuple[int, bytes]) -> None:
        self.between = between
        self.method = method
        self.steps = list(steps)
        self.made: tuple[int, bytes] | None = None
        between.choose = self.choose
        between.answer = self.answer

    def choose(self, method: str, path: str) -> Harm:
        self.made = None
        if method != self.method or not self.steps:
            return Harm.NONE
        step = self.steps.pop(0)
        if isinstance(step, Harm):
            return step
        self.made = step
        return Harm.NONE

    def answer(self, method: str, path: str) -> tuple[int, bytes] | None:
        return self.made if method == self.method else None


def puts(between: Proxy) -> int:
    """Return how many writing requests were made."""
    return sum(one.method == "PUT" for one in between.seen)


@pytest.mark.parametrize("unanswered", [Harm.RESET_AFTER, Harm.RESET, Harm.LOST_ANSWER])
def test_a_refusal_after_an_unanswered_attempt_is_not_certain(
    via: Place, between: Proxy, unanswered: Harm
) -> None:
    store = via.open()
    for write in (store.put_if_absent, store.put):
        Script(between, "PUT", unanswered, DENIED)
        with pytest.raises(lt.StoreError, match="earlier attempt was not answered") as caught:
            write("x", b"content")
        assert not caught.value.is_certain


def test_a_refusal_of_the_only_attempt_is_certain(via: Place, between: Proxy) -> None:
    store = via.open()
    for write in (store.put_if_absent, store.put):
        Script(between, "PUT", DENIED)
        with pytest.raises(lt.StoreError, match="s3:PutObject") as caught:
            write("x", b"content")
        assert caught.value.is_certain


def test_a_refusal_after_throttling_is_certain(via: Place, between: Proxy) -> None:
    store = via.open()
    Script(between, "PUT", (429, b"slow down"), DENIED)
    with pytest.raises(lt.StoreError, match="s3:PutObject") as caught:
        store.put_if_absent("x", b"content")
    assert caught.value.is_certain


@pytest.mark.parametrize("unanswered", [Harm.RESET_AFTER, Harm.LOST_ANSWER])
def test_an_own_object_is_recognised_when_the_name_is_taken(
    via: Place, between: Proxy, unanswered: Harm
) -> None:
    store = via.open()
    Script(between, "PUT", unanswered)
    store.put_if_absent("x", b"content")
    assert puts(between) == 2
    assert store.read("x") == b"content"


def test_another_writers_object_is_no_success(via: Place, between: Proxy) -> None:
    store = via.open()
    store.put("x", b"another")
    Script(between, "PUT", Harm.RESET)
    with pytest.raises(lt.ExistsError):
        store.put_if_absent("x", b"content")


def test_an_object_that_cannot_be_read_leaves_the_outcome_open(via: Place, between: Proxy) -> None:
    store = via.open()

    def refuse_reading(method: str, path: str) -> tuple[int, bytes] | None:
        return DENIED if method == "GET" else None

    Script(between, "PUT", Harm.RESET_AFTER)
    between.answer = refuse_reading
    with pytest.raises(lt.StoreError, match="cannot be read") as caught:
        store.put_if_absent("x", b"content")
    assert not caught.value.is_certain
    # Without an unanswered attempt the service's word is enough.
    between.heal()
    with pytest.raises(lt.ExistsError):
        store.put_if_absent("x", b"content")


def test_a_conflict_about_a_free_name_is_tried_again(via: Place, between: Proxy) -> None:
    store = via.open()
    Script(between, "PUT", CONFLICT, CONFLICT)
    store.put_if_absent("x", b"content")
    assert store.read("x") == b"content"


def test_a_conflict_that_does_not_end_is_an_error(via: Place, between: Proxy) -> None:
    store = via.having(max_retries="2").open()
    between.answer = lambda method, path: CONFLICT if method == "PUT" else None
    with pytest.raises(lt.StoreError, match="keeps reporting a conflict") as caught:
        store.put_if_absent("x", b"content")
    assert caught.value.is_certain
    assert puts(between) == 3


@pytest.mark.parametrize("first", [Harm.THROTTLE, (429, b"slow down")])
def test_a_reset_after_throttling_is_repeated(
    via: Place, between: Proxy, first: Harm | tuple[int, bytes]
) -> None:
    table = lt.create_table(via.uri, pa.table({"a": [1]}), storage_options=via.options)
    store = via.open()
    Script(between, "PUT", first, Harm.RESET, first, Harm.RESET_AFTER)
    store.put_if_absent("x", b"content")
    assert store.read("x") == b"content"
    Script(between, "PUT", first, Harm.RESET)
    table.tags.create("kept", 1)
    between.heal()
    assert "kept" in lt.open_table(via.uri, storage_options=via.options).tags


def test_a_server_that_restarts_is_waited_for(via: Place, between: Proxy) -> None:
    """Twenty failures are more than a number of repetitions would allow for."""
    store = via.open()
    assert isinstance(store, ObjectStore)
    store.put("x", b"content")
    left = [20]

    def choose(method: str, path: str) -> Harm:
        left[0] -= 1
        return Harm.RESET if left[0] > 0 else Harm.NONE

    between.choose = choose
    pauses: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", pauses.append)
        assert store.read("x") == b"content"
    assert len(pauses) >= 10
    assert max(pauses) <= 5


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"read_timeout": "0.2"}, "did not answer in time"),
        ({"read_timeout": "200ms", "max_retries": "1"}, "did not answer in time"),
    ],
)
def test_a_silent_server_is_given_up(
    via: Place, between: Proxy, options: dict[str, str], pattern: str
) -> None:
    between.delay = 2.0
    store = via.having(retry_timeout="0.5", **options).open()
    with pytest.raises(lt.StoreError, match=pattern):
        store.read("x")


def test_a_large_body_has_no_limit_for_the_first_byte(via: Place, between: Proxy) -> None:
    """The time until an answer begins includes that of sending the body."""
    store = via.having(read_timeout="0.3", max_retries="0").open()
    between.delay = 0.6
    writes: list[Callable[[str, bytes], None]] = [store.put, store.put_if_absent]
    for number, write in enumerate(writes):
        write(f"{number}", bytes(2 * 1024**2))
    with pytest.raises(lt.StoreError, match="in time"):
        store.put("small", b"1")
