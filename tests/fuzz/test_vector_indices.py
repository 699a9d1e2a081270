"""Damaged files of vector indices give an error or are passed over; they never end the process."""

import json
import logging
import random
import shutil

import numpy as np
import pytest

import lancetable as lt
from lancetable.errors import LanceTableError
from tests.conftest import GOLDEN

FOLDER = GOLDEN / "index"
QUERIES = json.loads((FOLDER / "vectors.json").read_text())
TABLES = sorted(name for name in QUERIES if name.startswith("ivf_"))


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with some of them changed, cut off or repeated."""
    data = bytearray(content)
    match draw.randrange(4):
        case 0:
            del data[draw.randrange(len(data)) :]
        case 1:
            first = draw.randrange(len(data))
            data[first : first + draw.randrange(1, 64)] = draw.randbytes(draw.randrange(64))
        case _:
            for _ in range(draw.randrange(1, 6)):
                data[draw.randrange(len(data))] = draw.choice([0, 1, 127, 128, 255])
    return bytes(data)


def ask(path, queries):
    """Search; an error of this library is an answer, too."""
    for query in queries:
        try:
            found = lt.open_table(path).search(
                query["q"], column="v", limit=10, metric=query["metric"], nprobes=9
            )
            distances = np.asarray(found.to_arrow()["_distance"])
        except LanceTableError:
            continue
        assert (distances[1:] >= distances[:-1]).all()


def fuzz(name, tmp_path, seeds):
    """Damage the files of an index, one at a time."""
    path = tmp_path / "t"
    shutil.copytree(FOLDER / name, path)
    (folder,) = (path / "_indices").iterdir()
    for seed in seeds:
        draw = random.Random(f"{name} {seed}")
        # A folder of its own, so that nothing kept of an earlier one is used.
        copy = tmp_path / str(seed)
        shutil.copytree(path, copy)
        file = copy / "_indices" / folder.name / draw.choice(["index.idx", "auxiliary.idx"])
        file.write_bytes(damaged(file.read_bytes(), draw))
        ask(copy, QUERIES[name][:1])
        shutil.rmtree(copy)


@pytest.mark.parametrize("name", TABLES)
def test_damaged_files_do_no_harm(name, tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    fuzz(name, tmp_path, range(15))


@pytest.mark.soak
@pytest.mark.parametrize("name", TABLES)
def test_damaged_files_do_no_harm_for_long(name, tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    fuzz(name, tmp_path, range(1000, 3000))
