"""Select the version of a table that was the newest at a given time."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from lancetable.errors import InputError
from lancetable.store import spread

Item = TypeVar("Item")


def parse_time(as_of: datetime | str, name: str = "as_of") -> datetime:
    """Return a time as a datetime, which may lack a time zone; ``name`` names the argument.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of)
        except ValueError:
            raise InputError(
                f"{name} is {as_of!r}, which is not a time; "
                "write it like '2026-01-31T12:00:00+00:00'"
            ) from None
    if not isinstance(as_of, datetime):
        raise InputError(f"{name} is {as_of!r}; give a datetime or its ISO text")
    return as_of


def parse_moment(as_of: datetime | str) -> datetime:
    """Return ``as_of`` with a time zone: a time without one is local time, as in Python.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    time = parse_time(as_of)
    if time.tzinfo is not None:
        return time
    try:
        return time.astimezone()
    except (OverflowError, OSError, ValueError):
        # datetime.min and datetime.max leave the range of datetime in some zones.
        return time.replace(tzinfo=UTC)


def newest_at(
    moment: datetime,
    versions: Sequence[Item],
    time_of: Callable[[Item], datetime | None],
    width: int,
) -> Item | None:
    """Return the newest version, in commit order, whose time is not after a moment.

    Times need not follow the order of commits: the clock of one writer may be behind that of
    another, or may have been set back. So the versions are read from the newest on, in rounds that
    grow, and none is skipped because of the times of its neighbours.

    Args:
        moment: the time.
        versions: all versions, oldest first.
        time_of: reads the time of a version; one without a time counts as old.
        width: how many versions are read at the same time.
    """
    end, size = len(versions), 1
    while end > 0:
        start = max(0, end - size)
        times = spread(time_of, versions[start:end], width)
        for index in range(end - 1, start - 1, -1):
            time = times[index - start]
            if time is None or time <= moment:
                return versions[index]
        end, size = start, size * 2
    return None
