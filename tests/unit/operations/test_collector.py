"""The garbage collector rests while many fragments are worked on, and only then."""

import gc
import threading

import pytest

from lancetable.operations.run.memory import MANY_FRAGMENTS, collector_paused


@pytest.fixture(autouse=True)
def collector_on():
    gc.enable()
    yield
    gc.enable()


def test_it_runs_again_afterwards():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_runs_again_after_an_error():
    with pytest.raises(ValueError, match="x"), collector_paused():
        raise ValueError("x")
    assert gc.isenabled()


def test_few_fragments_are_not_worth_it():
    with collector_paused(MANY_FRAGMENTS - 1):
        assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with collector_paused(), collector_paused():
        pass
    assert not gc.isenabled()


def test_it_rests_until_the_last_thread_is_done():
    begun, may_end = threading.Event(), threading.Event()

    def other():
        with collector_paused():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with collector_paused():
        thread.start()
        assert begun.wait(10)
    assert not gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled()
