"""Build the merge of a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lancetable.commit.options import CommitOptions
from lancetable.errors import InputError
from lancetable.fragment.write.writer import WriteOptions
from lancetable.operations.merge.run import MergeBuilder, MergeOptions, merge
from lancetable.operations.results import ChangeOptions
from lancetable.options import parse_options
from lancetable.table.handle import Handle

if TYPE_CHECKING:
    from lancetable.operations.merge.clauses import Clause
    from lancetable.operations.results import Done, MergeResult


def merge_builder(
    handle: Handle,
    source: object,
    on: "str | Sequence[str]",
    commit: "CommitOptions | str | None",
    settings: Mapping[str, object],
) -> MergeBuilder:
    """Return the description of a merge, which moves a handle when it is executed."""
    keys = [on] if isinstance(on, str) else list(on)
    write = parse_options(WriteOptions, settings)
    if write.target_bases:
        raise InputError(
            "target_bases is for rows that are created, appended or overwritten; rows that are "
            "merged stay in the folder of the table"
        )

    def run(clauses: "tuple[Clause, ...]", options: MergeOptions) -> "Done[MergeResult]":
        return merge(handle.snapshot, source, keys, clauses, options)

    options = MergeOptions(ChangeOptions(write, CommitOptions.of(commit)))
    return MergeBuilder(run, options, moved=handle.move)
