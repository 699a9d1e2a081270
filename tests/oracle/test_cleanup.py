"""After a cleanup of one library the other reads and writes on, indices and branches included."""

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import lancetable as lt
from tests.crash.aftermath import files_below
from tests.oracle.test_alternating import AlternatingMachine
from tests.properties.upkeep_machine import UpkeepMachine

pytestmark = pytest.mark.oracle
NOW = timedelta(0)


class AlternatingUpkeepMachine(UpkeepMachine, AlternatingMachine):
    """We and pylance write in turn, pylance builds indices and compacts, we clean up."""

    each = 4


@pytest.mark.slow
def test_cleanups_of_tables_that_both_write() -> None:
    run_state_machine_as_test(
        AlternatingUpkeepMachine,
        settings=settings(
            max_examples=8, stateful_step_count=20, suppress_health_check=list(HealthCheck)
        ),
    )


def _rows(first: int, count: int) -> pa.Table:
    numbers = list(range(first, first + count))
    return pa.table({"id": numbers, "s": [f"s{number}" for number in numbers]})


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_goes_on_after_our_cleanup(tmp_path, stable) -> None:
    uri = str(tmp_path / "t")
    theirs = lance.write_dataset(
        _rows(0, 60), uri, max_rows_per_file=20, enable_stable_row_ids=stable
    )
    theirs.create_scalar_index("id", "BTREE")
    theirs.delete("id % 7 = 0")
    theirs.tags.create("early", 2)
    theirs.insert(_rows(60, 20))
    theirs.insert(_rows(80, 20))
    theirs.optimize.compact_files()
    theirs.optimize.optimize_indices()
    before = lance.dataset(uri).to_table(filter="id > 50")
    tagged = lance.dataset(uri, version="early").to_table()
    done = lt.open_table(uri).maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert done.removed["data"].files
    assert done.removed["index"].files
    theirs = lance.dataset(uri)
    theirs.validate()
    assert theirs.to_table(filter="id > 50") == before
    assert lance.dataset(uri, version="early").to_table() == tagged
    theirs.insert(_rows(100, 5))
    theirs.delete("id = 60")
    theirs.create_scalar_index("s", "BTREE")
    assert lt.open_table(uri).count() == lance.dataset(uri).count_rows()
    theirs.cleanup_old_versions(NOW, error_if_tagged_old_versions=False, delete_unverified=True)
    left = files_below(Path(uri))
    again = lt.open_table(uri).maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert again.removed_versions == ()
    assert lt.open_table(uri).scan().to_arrow().num_rows == lance.dataset(uri).count_rows()
    assert {path for path in left if path.startswith("data/")} == {
        path for path in files_below(Path(uri)) if path.startswith("data/")
    }


def test_their_cleanup_does_not_mind_our_leases(tmp_path) -> None:
    uri = str(tmp_path / "t")
    table = lt.create_table(uri, _rows(0, 10))
    table.overwrite(_rows(0, 5))
    with table.hold():
        leases = [path for path in files_below(Path(uri)) if path.startswith("_leases/")]
        assert len(leases) == 1
        theirs = lance.dataset(uri)
        theirs.validate()
        theirs.insert(_rows(5, 5))
        theirs.cleanup_old_versions(NOW, delete_unverified=True)
        assert leases[0] in files_below(Path(uri))
        assert lance.dataset(uri).count_rows() == 10


def test_branches_and_clones_of_pylance_are_kept(tmp_path) -> None:
    uri, clone = str(tmp_path / "t"), str(tmp_path / "clone")
    theirs = lance.write_dataset(_rows(0, 10), uri)
    branch = theirs.create_branch("dev", 1)
    branch.insert(_rows(10, 5))
    theirs.shallow_clone(clone, 1)
    lance.write_dataset(_rows(50, 5), uri, mode="overwrite")
    lance.write_dataset(_rows(60, 5), uri, mode="overwrite")
    done = lt.open_table(uri).maintenance.cleanup(
        older_than=NOW, unverified_after=NOW, clones=[clone]
    )
    assert done.removed["data"].files == 1
    assert lance.dataset(uri).count_rows() == 5
    assert lance.dataset(clone).count_rows() == 10
    assert lance.dataset(uri).checkout_version(("dev", None)).count_rows() == 15


def test_blobs_go_with_their_data_files(tmp_path) -> None:
    uri = str(tmp_path / "t")
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    rows = pa.table({"b": [b"x" * 200_000, b"y" * 5_000_000, None]}, schema=schema)
    lance.write_dataset(rows, uri, data_storage_version="2.2")
    lance.write_dataset(rows, uri, mode="append")
    lance.dataset(uri).delete("true")
    lance.write_dataset(rows, uri, mode="append")
    table = lt.open_table(uri)
    table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    files = {path for path in files_below(Path(uri)) if path.startswith("data/")}
    names = {file.path.removesuffix(".lance") for one in table.fragments for file in one.files}
    assert {path.split("/")[1].removesuffix(".lance") for path in files} == names
    assert [
        blob and blob.size() for blob in lance.dataset(uri).take_blobs("b", indices=[0, 1])
    ] == [
        200_000,
        5_000_000,
    ]
