"""Change feeds of tables that pylance wrote to, compacted and branched."""

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import lancetable as lt
from tests.oracle.test_alternating import AlternatingMachine
from tests.properties.feed_model import check_feed

pytestmark = pytest.mark.oracle


class FollowedAlternatingMachine(AlternatingMachine):
    """We and pylance write in turn; at the end the feed is applied."""

    each = 1000

    def teardown(self) -> None:
        if self.is_settled and lt.open_table(self.uri).version == self.version:
            check_feed(lt.open_table(self.uri), stable=self.stable)
        super().teardown()


@pytest.mark.slow
def test_changes_lead_from_nothing_to_what_both_wrote() -> None:
    run_state_machine_as_test(
        FollowedAlternatingMachine,
        settings=settings(
            max_examples=8, stateful_step_count=12, suppress_health_check=list(HealthCheck)
        ),
    )


def _rows(first: int, count: int) -> pa.Table:
    numbers = list(range(first, first + count))
    return pa.table({"id": numbers, "s": [f"s{number}" for number in numbers]})


@pytest.mark.parametrize("stable", [False, True])
def test_compaction_changes_nothing(tmp_path, stable) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(
        _rows(0, 100), uri, max_rows_per_file=10, enable_stable_row_ids=stable
    ).delete("id % 3 = 0")
    before = lance.dataset(uri).version
    lance.dataset(uri).optimize.compact_files()
    table = lt.open_table(uri)
    assert table.version > before
    assert table.changes(before).to_arrow().num_rows == 0
    check_feed(table, stable=stable)


def test_deleted_and_updated_rows_of_pylance_come_with_their_contents(tmp_path) -> None:
    uri = str(tmp_path / "t")
    theirs = lance.write_dataset(_rows(0, 6), uri, enable_stable_row_ids=True)
    theirs.delete("id = 1")
    theirs.update({"s": "'new'"}, where="id = 2")
    theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"id": [3, 99], "s": ["merged", "inserted"]})
    )
    found = lt.open_table(uri).changes(1, columns=["id", "s"]).to_arrow().to_pylist()
    assert [
        (row["_commit_version"], row["_change_type"], row["id"], row["s"]) for row in found
    ] == [
        (2, "delete", 1, "s1"),
        (3, "update_preimage", 2, "s2"),
        (3, "update_postimage", 2, "new"),
        (4, "update_preimage", 3, "s3"),
        (4, "update_postimage", 3, "merged"),
        (4, "insert", 99, "inserted"),
    ]


def test_a_branch_tells_the_changes_of_its_parent_too(tmp_path) -> None:
    uri = str(tmp_path / "t")
    theirs = lance.write_dataset(_rows(0, 4), uri)
    theirs.delete("id = 0")
    branch = theirs.create_branch("dev", 2)
    branch.delete("id = 1")
    theirs.delete("id = 3")
    table = lt.open_table(uri, branch="dev")
    found = table.changes(0).to_arrow().to_pylist()
    assert [(row["_commit_version"], row["_change_type"], row["id"]) for row in found] == [
        (1, "insert", 0), (1, "insert", 1), (1, "insert", 2), (1, "insert", 3),
        (2, "delete", 0), (3, "delete", 1),
    ]  # fmt: skip
