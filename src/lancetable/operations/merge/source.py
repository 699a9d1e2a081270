"""Choose the source columns that a merge uses, and the schema of the table afterwards.

Keys, and all columns when a clause takes them all, are brought to the types of the table; others
are there for the expressions of clauses and keep their own type, or one that can be kept.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError, SchemaError
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import resolve, split_path
from lancetable.format.schema.types import storage_type
from lancetable.operations.input.casts import Step
from lancetable.operations.input.fit import Fit, fit
from lancetable.operations.input.prepare import grown
from lancetable.operations.input.sources import RowSource
from lancetable.operations.input.write import next_field_id
from lancetable.operations.keys.spill import kept_step, kept_type
from lancetable.operations.merge.clauses import Clause, source_columns


class SourcePlan(NamedTuple):
    """Plan that turns batches of a source into the columns that a merge keeps."""

    fit: Fit
    fitted: tuple[str, ...]
    extra: tuple[tuple[str, Step | None], ...]
    """Further columns, and how they become what can be kept."""
    kept: pa.Schema

    def batches(self, source: RowSource) -> Iterator[pa.RecordBatch]:
        """Yield all rows as they are kept.

        Raises:
            InputError: a value does not fit its column.
        """
        return (self.apply(batch) for batch in source.batches)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as it is kept."""
        fitted = self.fit.apply(batch.select(list(self.fitted)))
        arrays = list(fitted.columns)
        for name, step in self.extra:
            array = batch.column(name)
            arrays.append(array if step is None else step(array))
        return pa.RecordBatch.from_arrays(arrays, schema=self.kept)


def merged_schema(
    snapshot: Snapshot, source: pa.Schema, clauses: Sequence[Clause], *, evolves: bool
) -> Schema:
    """Return the schema of the table after a merge: the same, or with the source's new columns."""
    schema = snapshot.manifest.schema
    if not evolves:
        return schema
    wanted = {split_path(name)[0] for clause in clauses for name in clause.values or ()}
    takes_all = any(clause.takes_all for clause in clauses)
    chosen = [field for field in source if takes_all or field.name in wanted]
    return grown(schema, pa.schema(chosen), next_field_id(snapshot.manifest))


def plan_source(
    source: pa.Schema, schema: Schema, on: Sequence[str], clauses: Sequence[Clause]
) -> SourcePlan:
    """Plan what is kept of a source.

    Raises:
        SchemaError: a column does not fit the table, or would be ignored.
    """
    known = {field.name for field in schema.fields}
    takes_all = any(clause.takes_all for clause in clauses)
    named = source_columns(clauses, source)
    tops = {resolve(schema, name)[0].name for name in on}
    for name in tops:
        if name not in source.names:
            raise SchemaError(f"the source has no column {name!r}, which the rows are matched on")
    fitted = [name for name in source.names if name in tops or (takes_all and name in known)]
    extra = [name for name in source.names if name not in fitted and name in named]
    ignored = [name for name in source.names if name not in (*fitted, *extra)]
    if takes_all and ignored:
        raise SchemaError(
            f"the source has columns that are not in the table: {ignored}; leave them out or use "
            "with_schema_evolution() to add them"
        )
    chosen = pa.schema([source.field(name) for name in fitted])
    planned = fit(chosen, schema, is_complete=False)
    # Arrow makes no empty arrays of extension types inside others.
    bare = pa.schema([field.with_type(storage_type(field.type)) for field in chosen])
    bare_fit = planned if bare == chosen else fit(bare, schema, is_complete=False)
    sample = bare_fit.apply(_empty(bare))
    fields = [
        *(
            pa.field(name, array.type)
            for name, array in zip(_names(planned), sample.columns, strict=True)
        ),
        *(pa.field(name, kept_type(source.field(name).type)) for name in extra),
    ]
    steps = tuple((name, kept_step(name, source.field(name).type)) for name in extra)
    return SourcePlan(planned, tuple(fitted), steps, pa.schema(fields))


def _names(planned: Fit) -> list[str]:
    return [field.name for field in planned.schema.fields]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def check_keys(schema: Schema, on: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the key columns.

    Raises:
        InputError: there is none, or one occurs twice.
        SchemaError: one is unknown.
    """
    if isinstance(on, str) or not on:
        raise InputError("give the columns to match rows on as a list, such as on=['id']")
    ids = tuple(resolve(schema, name)[-1].id for name in on)
    if len(set(ids)) != len(ids):
        raise InputError(f"duplicate column in on={list(on)}; name each column once")
    return ids
