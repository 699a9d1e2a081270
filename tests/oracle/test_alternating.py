"""A table that we and pylance change in turn, at random, stays equal for both."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

import lancetable as lt
from tests.properties.rows_model import Merge
from tests.properties.table_machine import ID_COLUMNS, Actor, Ours, TableMachine
from tests.same import assert_same_table

pytestmark = pytest.mark.oracle

EXAMPLES = 20
STEPS = 20
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 10
THEIR_MERGES = {"upsert", "insert", "delete", "mirror"}
_slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


class Theirs:
    """pylance."""

    def can(self, step: str) -> bool:
        kind, _, rest = step.partition(" ")
        if kind == "append":
            return rest in {"table", "part"}
        if kind == "merge":
            return rest in THEIR_MERGES
        return kind != "update" or rest == "rows"

    def append(self, uri: str, rows: pa.Table, form: str) -> None:
        lance.write_dataset(rows, uri, mode="append")

    def overwrite(self, uri: str, rows: pa.Table) -> None:
        lance.write_dataset(rows, uri, mode="overwrite")

    def delete(self, uri: str, where: str) -> int:
        return int(lance.dataset(uri).delete(where)["num_deleted_rows"])

    def update(self, uri: str, values: Mapping[str, str], where: str | None, mode: str) -> int:
        done = lance.dataset(uri).update(dict(values), where=where)
        return int(done["num_rows_updated"])

    def merge(self, uri: str, merge: Merge) -> dict[str, int]:
        builder = lance.dataset(uri).merge_insert(merge.key)
        if merge.shape in {"upsert", "mirror"}:
            builder = builder.when_matched_update_all()
        if merge.shape == "delete":
            builder = builder.when_matched_delete()
        else:
            builder = builder.when_not_matched_insert_all()
        if merge.shape == "mirror":
            builder = builder.when_not_matched_by_source_delete("x % 2 = 1")
        schema = pa.schema(list(merge.columns.items()))
        done = builder.execute(pa.Table.from_pylist(list(merge.source), schema))
        return {name: done[f"num_{name}_rows"] for name in ("inserted", "updated", "deleted")}

    def add_computed(self, uri: str, columns: Mapping[str, str]) -> None:
        lance.dataset(uri).add_columns(dict(columns))

    def add_nulls(self, uri: str, field: pa.Field) -> None:
        lance.dataset(uri).add_columns(field)

    def drop(self, uri: str, name: str) -> None:
        lance.dataset(uri).drop_columns([name])

    def rename(self, uri: str, old: str, new: str) -> None:
        lance.dataset(uri).alter_columns({"path": old, "name": new})

    def cast(self, uri: str, name: str, type_: pa.DataType) -> None:
        dataset = lance.dataset(uri)
        for index in dataset.describe_indices():
            # pylance does not cast what is indexed.
            if name in index.field_names:
                dataset.drop_index(index.name)
        lance.dataset(uri).alter_columns({"path": name, "data_type": type_})

    def restore(self, uri: str, version: int) -> None:
        lance.dataset(uri, version=version).restore()

    def configure(self, uri: str, entries: Mapping[str, str | None]) -> None:
        lance.dataset(uri).update_config(dict(entries))

    def compact(self, uri: str, target_rows: int, deleted_share: float) -> None:
        dataset = lance.dataset(uri)
        dataset.optimize.compact_files(
            target_rows_per_fragment=target_rows,
            materialize_deletions_threshold=deleted_share,
            # Records moved rows instead of writing indices anew.
            defer_index_remap=target_rows == 10 and not dataset.has_stable_row_ids,
        )


class CheckedMachine(TableMachine):
    """Only we write; pylance reads and validates every few steps."""

    each: ClassVar[int] = 3

    def __init__(self) -> None:
        super().__init__()
        self.checks = 0

    def check_others(self) -> None:
        self.checks += 1
        if self.checks % self.each == 0:
            self.compare_with_pylance()

    def compare_with_pylance(self) -> None:
        """Have pylance read the rows in several ways."""
        theirs, ours = lance.dataset(self.uri), lt.open_table(self.uri)
        theirs.validate()
        assert theirs.version == ours.version
        assert theirs.count_rows() == len(self.state.rows)
        expected = theirs.to_table(with_row_id=True, with_row_address=True)
        found = ours.scan(with_row_id=True, with_row_address=True).to_arrow()
        assert_same_table(found, expected)
        names = list(self.state.columns)
        assert expected.select(names).to_pylist() == [row.values for row in self.state.rows]
        self._compare_parts(theirs)

    def _compare_parts(self, theirs: Any) -> None:
        names, rows = list(self.state.columns), self.state.rows
        below = [row.values["id"] for row in rows if (row.values["id"] or 0) > 10]
        some = theirs.to_table(columns=["id"], filter="id > 10")
        assert sorted(some["id"].to_pylist()) == sorted(below)
        assert theirs.count_rows("id = 7") == sum(1 for row in rows if row.values["id"] == 7)
        if rows:
            places = [0, len(rows) // 2, len(rows) - 1]
            taken = theirs.take(places, columns=names)
            assert taken.to_pylist() == [rows[place].values for place in places]
        if self.stable:
            versions = theirs.to_table(columns=ID_COLUMNS)
            assert [tuple(row.values()) for row in versions.to_pylist()] == [
                (row.id, row.created, row.updated) for row in rows
            ]

    def teardown(self) -> None:
        # After a step that failed, its own error tells more than a comparison.
        if self.is_settled and lt.open_table(self.uri).version == self.version:
            self.compare_with_pylance()
        super().teardown()


class AlternatingMachine(CheckedMachine):
    """We and pylance write and compact in turn; pylance also builds indices."""

    actors: ClassVar[tuple[Actor, ...]] = (Ours(), Theirs())
    each: ClassVar[int] = 1

    @precondition(lambda self: bool(self.state.rows))
    @rule(kind=st.sampled_from(["BTREE", "BITMAP"]))
    def index(self, kind: str) -> None:
        """Let pylance index the numbers by which rows are looked up."""
        lance.dataset(self.uri).create_scalar_index("id", kind, replace=True)
        self.settle(self.state.rows, ordered=True)


def _run(machine: type[TableMachine], examples: int, steps: int, **more: Any) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, suppress_health_check=_slow, **more
        ),
    )


def test_pylance_reads_every_few_changes_of_ours() -> None:
    _run(CheckedMachine, EXAMPLES, STEPS)


def test_both_change_one_table_in_turn() -> None:
    _run(AlternatingMachine, EXAMPLES, STEPS)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [CheckedMachine, AlternatingMachine])
def test_both_change_one_table_at_length(machine: type[TableMachine]) -> None:
    _run(machine, SOAK, 40, derandomize=False)
