"""Extend indices to new rows after a change, where the config of the table requests it.

================================  ==============================================================
key of the config                 meaning
================================  ==============================================================
``lancetable.index.auto``         ``append`` or ``auto``: optimize in this mode; ``off`` by
                                  default
``lancetable.index.auto.rows``    how many rows an index may leave uncovered, 10000 by default
================================  ==============================================================

The format has no change of rows and indices at once, so the segments come with a version of their
own that follows the change. The change is done already: an error of the extension is logged and
raises nothing.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.operations.results import RunOptions
from lancetable.operations.retry import repeat
from lancetable.operations.run.runner import Runner

R = TypeVar("R")
MODE = "lancetable.index.auto"
ROWS = "lancetable.index.auto.rows"
DEFAULT_ROWS = 10_000
_MODES = ("off", "append", "auto")
_LOG = logging.getLogger(__name__)


def repeat_and_cover(
    snapshot: Snapshot,
    attempt: Callable[[Snapshot], R],
    options: CommitOptions,
    runner: Runner | None = None,
) -> R:
    """Repeat a change until it is a version, as ``retry.repeat`` does, and extend indices then.

    Where the attempt returns a result, it comes with the last version.

    Raises:
        ConflictError: the change did not become a version.
    """
    done: Any = repeat(snapshot, attempt, options)
    made: Snapshot = getattr(done, "snapshot", done)
    if made.version == snapshot.version or options.detached:
        return cast("R", done)
    extended = extend_indices(made, options, runner)
    if extended is not made and made is not done:
        done = done._replace(snapshot=extended)
    return cast("R", done)


def extend_indices(made: Snapshot, options: CommitOptions, runner: Runner | None) -> Snapshot:
    """Return a version, or the one that follows it with indices on its new rows."""
    config = made.manifest.config
    if not config or MODE not in config or made.manifest.index_section is None:
        return made
    from lancetable.operations.index.optimize import (  # noqa: PLC0415 - seldom needed
        OptimizeOptions,
        optimize_indices,
        uncovered_indices,
    )

    try:
        mode, rows = wanted(config)
        names = uncovered_indices(made, rows) if mode != "off" else []
        if not names:
            return made
        message = f"indices extended after version {made.version}"
        settled = replace(options, message=message, properties={}, strict=False)
        chosen: Any = mode
        run = RunOptions(runner, settled)
        return optimize_indices(made, names, OptimizeOptions(chosen), run).snapshot
    except Exception as cause:
        # The version is there, so that no error may pass for a failure of the change.
        _LOG.warning(
            "%s: the indices were not extended after version %d: %s",
            made.store.root,
            made.version,
            cause,
        )
        return made


def wanted(config: Mapping[str, str]) -> tuple[str, int]:
    """Return the mode, and how many rows may stay uncovered.

    Raises:
        InputError: a value is not understood.
    """
    mode, rows = config.get(MODE, "off"), config.get(ROWS, str(DEFAULT_ROWS)).strip()
    if mode not in _MODES:
        raise InputError(f"{MODE} is {mode[:40]!r}; expected one of {', '.join(_MODES)}")
    if not (rows.isascii() and rows.isdigit() and len(rows) < 19):
        raise InputError(f"{ROWS} is {rows[:40]!r}; expected a whole number")
    return mode, int(rows)
