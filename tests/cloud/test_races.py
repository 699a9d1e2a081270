"""Eight writers at once: every row is there once, whoever decides who was first."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import lancetable as lt
from tests.servers.fixtures import KINDS, bucket_of
from tests.servers.places import Place
from tests.servers.tables import recorded_place

pytestmark = [pytest.mark.cloud, pytest.mark.slow]
STEPS = 3
PATIENT = lt.CommitOptions(attempts=100, deadline_seconds=120)


def numbers(writer: int) -> list[int]:
    """Return the rows of one writer."""
    return [writer * 100 + step for step in range(STEPS)]


def ours(place: Place, writer: int) -> None:
    """Append rows one by one."""
    table = lt.open_table(place.uri, storage_options=place.options)
    for number in numbers(writer):
        table.append(pa.table({"id": [number]}), commit=PATIENT)


def theirs(place: Place, writer: int) -> None:
    """Append rows one by one with pylance."""
    import lance

    for number in numbers(writer):
        lance.write_dataset(
            pa.table({"id": [number]}), place.uri, mode="append", storage_options=place.pylance
        )


def check(place: Place, writers: int) -> None:
    """Look for lost and doubled rows."""
    table = lt.open_table(place.uri, storage_options=place.options)
    wanted = sorted(number for writer in range(1, writers + 1) for number in numbers(writer))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [-1, *wanted]
    assert table.version == 1 + len(wanted)


@pytest.fixture(params=[*KINDS, "dynamodb"])
def shared(request: pytest.FixtureRequest) -> Place:
    """A fresh table with one row, on each service."""
    if request.param == "dynamodb":
        moto = request.getfixturevalue("moto_server")
        place = recorded_place(moto, request.getfixturevalue("s3"))
    else:
        place = bucket_of(request, request.param).fresh()
    lt.create_table(place.uri, pa.table({"id": [-1]}), storage_options=place.options)
    return place


@pytest.mark.oracle
def test_eight_writers_one_of_them_pylance(shared: Place) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(ours, shared, writer) for writer in range(1, 8)]
        jobs.append(pool.submit(theirs, shared, 8))
        for job in jobs:
            job.result()
    check(shared, 8)
    import lance

    assert lance.dataset(shared.uri, storage_options=shared.pylance).count_rows() == 1 + 8 * STEPS


@pytest.mark.soak
def test_eight_processes(shared: Place) -> None:
    program = (
        "import sys; from tests.cloud.test_races import ours, Place; "
        f"ours(Place({shared.uri!r}, {shared.options!r}), int(sys.argv[1]))"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", program, str(writer)]) for writer in range(1, 9)
    ]
    assert [worker.wait(300) for worker in workers] == [0] * 8
    check(shared, 8)


def test_only_one_of_many_creates_a_table(s3: Place) -> None:
    place = s3

    def create(number: int) -> bool:
        try:
            lt.create_table(place.uri, pa.table({"id": [number]}), storage_options=place.options)
        except lt.ExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1
    table = lt.open_table(place.uri, storage_options=place.options)
    assert (table.version, table.count()) == (1, 1)
    data = list(place.open().list("data"))
    assert len(data) == 1
