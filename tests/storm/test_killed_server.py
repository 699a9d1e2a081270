"""SeaweedFS is killed and started again while two processes append."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lancetable as lt
from tests.servers.seaweed import seaweed

pytestmark = [pytest.mark.cloud, pytest.mark.oracle, pytest.mark.soak]
KILLS = 12
WRITER = """
import json, sys, time
import pyarrow as pa
import lancetable as lt

uri, options, writer, stop = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
patient = lt.CommitOptions(attempts=50, deadline_seconds=60)
number = writer
table = None
import os
while not os.path.exists(stop):
    print("try", number, flush=True)
    try:
        table = table or lt.open_table(uri, storage_options=options)
        table.append(pa.table({"id": pa.array([number], pa.int64())}), commit=patient)
        print("sure", number, flush=True)
    except lt.LanceTableError as error:
        is_open = isinstance(error, lt.UnknownOutcomeError)
        print("maybe" if is_open else "not", number, type(error).__name__, error, flush=True)
        table = None
        time.sleep(0.2)
    number += 2
"""


@pytest.mark.parametrize("seed", range(2))
def test_every_acknowledged_append_is_there_once(tmp_path: Path, seed: int) -> None:
    import json

    draw = random.Random(seed)
    with seaweed() as server:
        place = server.place().fresh()
        options = {**place.options, "max_retries": "40", "retry_timeout": "20"}
        options["request_timeout"] = "5"
        lt.create_table(place.uri, {"id": [-1]}, storage_options=options)
        stop = tmp_path / "stop"
        writers = []
        for writer in range(2):
            log = (tmp_path / f"log {writer}").open("w")
            arguments = [place.uri, json.dumps(options), str(writer), str(stop)]
            command = [sys.executable, "-c", WRITER, *arguments]
            writers.append((subprocess.Popen(command, stdout=log, stderr=log), log))
        try:
            for _ in range(KILLS):
                time.sleep(draw.uniform(0.5, 3.0))
                server.program.kill()
                time.sleep(draw.uniform(0.0, 1.0))
                server.program.restart()
            time.sleep(2)
            stop.touch()
            assert [process.wait(120) for process, _ in writers] == [0, 0]
        finally:
            for process, log in writers:
                process.kill()
                process.wait()
                log.close()
        said = [(tmp_path / f"log {writer}").read_text() for writer in range(2)]
        _check(place.uri, options, place.pylance, said)


def _check(uri: str, options: dict[str, str], theirs: dict[str, str], said: list[str]) -> None:
    import lance

    lines = [line.split() for text in said for line in text.splitlines()]
    sure = {int(line[1]) for line in lines if line[0] == "sure"}
    maybe = {int(line[1]) for line in lines if line[0] == "maybe"}
    table = lt.open_table(uri, storage_options=options)
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert len(found) == len(set(found)), f"twice: {[n for n in found if found.count(n) > 1]}"
    assert {-1, *sure} <= set(found) <= {-1, *sure, *maybe}, said
    assert len(sure) > 2 * KILLS
    assert lance.dataset(uri, storage_options=theirs).count_rows() == len(found)
    assert table.maintenance.check().is_ok
