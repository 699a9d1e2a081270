"""How to look at, and repair, a table that cannot be opened any more."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lancetable.store import TableLocation
from lancetable.table.argument_errors import explains

if TYPE_CHECKING:
    from os import PathLike

    from lancetable.operations.check.model import CheckResult, Progress
    from lancetable.operations.check.repair import RepairPlan


@explains
def check_table(  # noqa: PLR0913 - each has a default
    uri: "str | PathLike[str]",
    level: str = "files",
    *,
    branch: str | None = None,
    all_versions: bool = True,
    journal: str | None = None,
    progress: "Progress | None" = None,
    storage_options: Mapping[str, str] | None = None,
) -> "CheckResult":
    """Look for damage like :meth:`Table.check`, also in a table that cannot be opened.

    Raises:
        TableNotFoundError: there is no table.
    """
    from lancetable.operations.check.model import Level
    from lancetable.operations.check.run import check

    return check(
        TableLocation(str(uri), dict(storage_options or {})),
        level=Level.named(level),
        branch=branch,
        all_versions=all_versions,
        journal=journal,
        progress=progress,
    )


@explains
def repair_table(
    uri: "str | PathLike[str]",
    level: str = "files",
    *,
    branch: str | None = None,
    revive: bool = False,
    journal: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "RepairPlan":
    """Plan a repair like :meth:`Table.repair`, also of a table that cannot be opened.

    Raises:
        TableNotFoundError: there is no table.
        CorruptError: no version can be opened at all.
    """
    from lancetable.operations.check.model import Level
    from lancetable.operations.check.repair import plan_repair

    return plan_repair(
        TableLocation(str(uri), dict(storage_options or {})),
        level=Level.named(level),
        branch=branch,
        revive=revive,
        journal=journal,
    )
