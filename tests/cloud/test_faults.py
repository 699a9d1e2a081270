"""A fifth of all requests goes wrong; nothing is lost, nothing is doubled, nothing is made up."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import lancetable as lt
from tests.servers.moto import Moto
from tests.servers.places import Place
from tests.servers.proxy import Harm, Proxy, proxy
from tests.servers.tables import recorded_place

pytestmark = pytest.mark.cloud
FAST = {"max_retries": "8", "retry_timeout": "20", "request_timeout": "10"}


def rows(first: int, count: int) -> pa.Table:
    """Return rows that are recognised by their number."""
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "text": [f"row {number}" for number in numbers]})


def ids(table: lt.Table) -> list[int]:
    """Return the numbers of all rows, sorted."""
    found = table.scan(columns=["id", "text"]).to_arrow()
    pairs = zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True)
    assert all(text in {f"row {number}", "new"} for number, text in pairs)
    return sorted(found["id"].to_pylist())


def change_of(
    table: lt.Table, number: int, present: set[int]
) -> tuple[Callable[[], object], set[int]]:
    """Return the n-th change, and the rows it leaves."""
    first = 1000 + number * 10
    kind = ("append", "delete", "update", "merge")[number % 4]
    if kind == "delete":
        gone = sorted(present)[number % len(present)]
        return (lambda: table.delete(f"id = {gone}")), present - {gone}
    if kind == "update":
        return (lambda: table.update({"text": "'new'"}, where="id % 7 = 0")), present
    if kind == "merge":
        merge = table.merge(rows(first, 2), on="id").when_not_matched_insert_all()
        return merge.execute, present | {first, first + 1}
    return (lambda: table.append(rows(first, 5))), present | set(range(first, first + 5))


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2, 3))])
def test_a_fifth_of_all_requests_goes_wrong(via: Place, between: Proxy, seed: int) -> None:
    options = {**via.options, **FAST}
    table = lt.create_table(via.uri, rows(0, 50), storage_options=options)
    between.hurt(0.2, seed)
    present = set(range(50))
    unknown = failed = 0
    for number in range(12):
        change, after = change_of(table, number, present)
        try:
            change()
        except lt.UnknownOutcomeError:
            # Whoever is told so looks, and does the work again only if it did not land.
            unknown += 1
            found = set(ids(table.refresh()))
            assert found in (present, after)
            present = found
        except lt.LanceTableError:
            failed += 1
            table.refresh()
        else:
            present = after
    between.heal()
    assert ids(lt.open_table(via.uri, storage_options=options)) == sorted(present)
    assert len([one for one in between.seen if one.harm is not Harm.NONE]) > 10
    # With so many attempts for each request nearly everything works.
    assert unknown + failed <= 1


@pytest.mark.parametrize("harm", [Harm.LOST_ANSWER, Harm.RESET_AFTER, Harm.THROTTLE, Harm.RESET])
def test_a_commit_whose_answer_is_lost_is_found_again(
    via: Place, between: Proxy, harm: Harm
) -> None:
    """The manifest was created, or not, and the answer did not come: it ends in one version."""
    table = lt.create_table(via.uri, rows(0, 3), storage_options={**via.options, **FAST})
    left = [2]

    def choose(method: str, path: str) -> Harm:
        if method == "PUT" and path.endswith(".manifest") and left[0]:
            left[0] -= 1
            return harm
        return Harm.NONE

    between.choose = choose
    table.append(rows(3, 2))
    assert left == [0]
    assert table.version == 2
    assert ids(lt.open_table(via.uri, storage_options=via.options)) == [0, 1, 2, 3, 4]


def test_an_outcome_is_unknown_only_when_it_is(via: Place, between: Proxy) -> None:
    """The manifest may have been created, and nothing can be asked any more."""
    options = {**via.options, "max_retries": "1", "retry_timeout": "2"}
    table = lt.create_table(via.uri, rows(0, 3), storage_options=options)
    broken: list[str] = []

    def choose(method: str, path: str) -> Harm:
        if method == "PUT" and path.endswith(".manifest") and not broken:
            broken.append(path)
            return Harm.RESET_AFTER
        return Harm.RESET if broken else Harm.NONE

    between.choose = choose
    with pytest.raises(lt.UnknownOutcomeError, match="open the table and check"):
        table.append(rows(3, 2))
    between.heal()
    again = lt.open_table(via.uri, storage_options=options)
    assert ids(again) == [0, 1, 2, 3, 4]
    # The rows that may have landed were kept, so the version that did is whole.
    again.append(rows(5, 1))
    assert ids(again) == [0, 1, 2, 3, 4, 5]


def test_a_store_that_stays_down_gives_a_plain_error(via: Place, between: Proxy) -> None:
    options = {**via.options, "max_retries": "1", "retry_timeout": "2"}
    table = lt.create_table(via.uri, rows(0, 3), storage_options=options)
    for harm in (Harm.RESET, Harm.ERROR, Harm.THROTTLE):
        between.hurt(1.0, 0, [harm])
        with pytest.raises(lt.StoreError) as caught:
            lt.open_table(via.uri, storage_options=options)
        assert "\n" not in str(caught.value)
        with pytest.raises(lt.StoreError):
            table.append(rows(3, 1))
    between.heal()
    assert ids(lt.open_table(via.uri, storage_options=options)) == [0, 1, 2]


def test_answers_that_are_cut_short_are_asked_for_again(via: Place, between: Proxy) -> None:
    data = rows(0, 20_000)
    lt.create_table(via.uri, data, storage_options={**via.options, **FAST})
    between.hurt(0.3, 3, [Harm.CUT])
    for _ in range(3):
        table = lt.open_table(via.uri, storage_options={**via.options, **FAST})
        assert table.scan().to_arrow().equals(data)
    assert any(one.harm is Harm.CUT for one in between.seen)


@pytest.mark.soak
def test_eight_writers_with_faults(via: Place, between: Proxy) -> None:
    options = {**via.options, **FAST}
    lt.create_table(via.uri, rows(0, 1), storage_options=options)
    between.hurt(0.1, 5)
    sure: list[int] = []
    maybe: list[int] = []

    def write(number: int) -> None:
        for step in range(5):
            first = 10 + number * 100 + step
            try:
                lt.open_table(via.uri, storage_options=options).append(rows(first, 1))
            except lt.UnknownOutcomeError:
                maybe.append(first)
            except lt.LanceTableError:
                continue
            else:
                sure.append(first)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    between.heal()
    found = ids(lt.open_table(via.uri, storage_options=options))
    assert len(found) == len(set(found))
    assert {0, *sure} <= set(found) <= {0, *sure, *maybe}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_faults_on_both_sides_of_an_external_commit(moto_server: Moto, seed: int) -> None:
    """The bucket and the manifest store fail; every version is made once or not at all."""
    with proxy(moto_server.port) as between:
        fail_on_both_sides(moto_server, between, seed)


def fail_on_both_sides(moto_server: Moto, between: Proxy, seed: int) -> None:
    """Append rows while requests to the bucket and to the manifest store fail."""
    place = recorded_place(moto_server, moto_server.place(endpoint=between.endpoint))
    options = {**place.options, **FAST, "dynamodb_endpoint": between.endpoint}
    table = lt.create_table(place.uri, rows(0, 5), storage_options=options)
    between.hurt(0.2, seed)
    sure: set[int] = set(range(5))
    maybe: set[int] = set()
    for number in range(10, 22):
        try:
            lt.open_table(place.uri, storage_options=options).append(rows(number, 1))
        except lt.UnknownOutcomeError:
            maybe.add(number)
        except lt.LanceTableError:
            continue
        else:
            sure.add(number)
    between.heal()
    found = ids(table.refresh())
    assert len(found) == len(set(found))
    assert sure <= set(found) <= sure | maybe
    assert len(sure) > 12
