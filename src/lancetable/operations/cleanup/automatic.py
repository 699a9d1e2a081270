"""Run a cleanup after a commit when the config of the table requests one.

===================================  ===========================================================
key of the config                    meaning
===================================  ===========================================================
``lance.auto_cleanup.interval``      clean up after every version whose number it divides
``lance.auto_cleanup.older_than``    versions of this age go, such as ``14days`` or ``1h 30m``
``lance.auto_cleanup.retain_versions``  at least this many of the newest versions stay
===================================  ===========================================================

Without ``older_than`` versions of 14 days go, unless ``retain_versions`` is given, which then
decides alone. Tags, branches, leases and the latest version are respected as by every cleanup. The
commit is done already, so a cleanup that fails is logged and raises nothing.
"""

import logging
import re
from collections.abc import Mapping
from datetime import timedelta

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.operations.cleanup.options import CleanupOptions

INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"

_LOG = logging.getLogger(__name__)
_PART = re.compile(r"\s*([0-9]+)\s*([A-Za-zµ]+)")
_SECONDS = {
    "ns nsec": 1e-9,
    "us µs usec": 1e-6,
    "ms msec": 1e-3,
    "s sec secs second seconds": 1.0,
    "m min mins minute minutes": 60.0,
    "h hr hrs hour hours": 3600.0,
    "d day days": 86_400.0,
    "w week weeks": 7 * 86_400.0,
    "M month months": 30.44 * 86_400.0,
    "y year years": 365.25 * 86_400.0,
}
_UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names.split()}


def clean_if_due(snapshot: Snapshot) -> None:
    """Clean up after a version was made, if its config and its number say so."""
    config = snapshot.manifest.config
    if not config or INTERVAL not in config:
        return
    from lancetable.operations.cleanup.run import cleanup  # noqa: PLC0415 - seldom needed

    try:
        if snapshot.version % _count(config, INTERVAL):
            return
        cleanup(snapshot, automatic_options(config))
    except Exception as cause:
        # The version is there, so that no error may pass for a failure of the change.
        _LOG.warning(
            "%s: the automatic cleanup after version %d failed: %s",
            snapshot.store.root,
            snapshot.version,
            cause,
        )


def automatic_options(config: Mapping[str, str]) -> CleanupOptions:
    """Return the cleanup that a config requests.

    Raises:
        InputError: a value is not understood.
    """
    retained = _count(config, RETAIN_VERSIONS) if RETAIN_VERSIONS in config else 1
    if OLDER_THAN in config:
        return CleanupOptions(older_than=duration(config[OLDER_THAN]), keep_last=retained)
    if RETAIN_VERSIONS in config:
        return CleanupOptions(older_than=timedelta(0), keep_last=retained)
    return CleanupOptions()


def duration(text: str) -> timedelta:
    """Return a duration written as numbers with units, such as ``2days`` or ``1h 30m``.

    Raises:
        InputError: the text is not a duration.
    """
    seconds, end = 0.0, 0
    while match := _PART.match(text, end):
        count, unit = match.groups()
        if unit not in _UNITS:
            break
        seconds, end = seconds + int(count) * _UNITS[unit], match.end()
    if not end or text[end:].strip():
        raise InputError(f"{text!r} is not a duration; write it like '14days' or '1h 30m'")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def _count(config: Mapping[str, str], key: str) -> int:
    text = config[key].strip()
    if not (text.isascii() and text.isdigit()) or not int(text[:18]):
        raise InputError(f"{key} is {text[:40]!r}; expected a whole number from 1")
    return int(text[:18])
