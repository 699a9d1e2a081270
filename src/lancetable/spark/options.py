"""Parse the options of reads, writes and streams.

Spark hands options over as texts whose names ignore case. They are parsed here, once, and checked:
a name that is not known is refused, because a misspelled option would silently do nothing.

A ``VersionId`` recognizes a version, also after its table was removed and created again: such a
table counts its versions from one again, so a number alone could mean another version. The
time of a version and the name of its transaction, which holds a random id, tell the two apart.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

from lancetable.commit.location.locate import locate
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.commit.versions.listing import parse_time
from lancetable.errors import ConflictError, InputError, VersionNotFoundError
from lancetable.spark.type_names import parse_hints
from lancetable.store import TableLocation


class VersionId(NamedTuple):
    """The number of a version, and a text that no other version of that number has."""

    version: int = 0
    made: str = ""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "VersionId":
        """Return the id of a version."""
        manifest = snapshot.manifest
        return cls(manifest.version, f"{manifest.timestamp} {manifest.transaction_file}")

    def check(self, snapshot: Snapshot, since: str) -> None:
        """Check that a snapshot is this version; ``since`` ends the message if it is not.

        Raises:
            ConflictError: the table was removed and created again.
        """
        if VersionId.of(snapshot) != self:
            raise ConflictError(
                f"the table at {snapshot.location.uri} was removed and created again since {since}"
            )

    def find(self, latest: Snapshot, branch: str | None, since: str) -> Snapshot | None:
        """Return this version of a table whose latest one is known; ``None`` if cleaned away.

        Raises:
            ConflictError: the table was removed and created again.
        """
        found = latest
        if self.version < latest.version:
            try:
                found = load(latest.location, version=self.version, branch=branch)
            except VersionNotFoundError:
                return None
        self.check(found, since)
        return found


MiB = 1024 * 1024
STORAGE_PREFIX = "storage."
SPARK_OWN = frozenset({"checkpointlocation", "queryname", "path", "paths"})
"""Options that Spark itself reads and passes on."""


class Vectors(enum.Enum):
    """The form of lists of one length of numbers: arrays, or their bytes."""

    ARRAY = "array"
    BINARY = "binary"


class Blobs(enum.Enum):
    """The content of blob columns."""

    DESCRIPTIONS = "descriptions"
    BYTES = "bytes"


class Nanoseconds(enum.Enum):
    """The treatment of times that are finer than the microseconds of Spark."""

    ERROR = "error"
    TRUNCATE = "truncate"


class Rounding(enum.Enum):
    """The treatment of doubles in a float column, which keeps fewer digits."""

    ERROR = "error"
    ALLOW = "allow"


class CreateMode(enum.Enum):
    """Rules for a write to a table that is missing, or that exists already."""

    AUTO = "auto"
    ERROR = "error"
    NEVER = "never"


class ChangeMode(enum.Enum):
    """The treatment of versions that changed or deleted rows.

    A stream of appended rows fails or leaves them out; a feed returns all changes.
    """

    ERROR = "error"
    SKIP = "skip"
    FEED = "feed"


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table and a version of it."""

    location: TableLocation
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    as_of: str | None = None
    id: VersionId | None = None
    """The id of the version, once it was opened."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reads."""

    columns: tuple[str, ...] | None = None
    where: str | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    vectors: Vectors = Vectors.ARRAY
    blobs: Blobs = Blobs.DESCRIPTIONS
    nanoseconds: Nanoseconds = Nanoseconds.ERROR
    batch_rows: int = 64 * 1024
    batch_bytes: int = 8 * MiB
    partition_rows: int = 1024 * 1024
    partition_bytes: int = 64 * MiB
    min_partitions: int = 1


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options of writes."""

    create_mode: CreateMode = CreateMode.AUTO
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    replace_where_check: bool = True
    types: Mapping[str, str] = field(default_factory=dict)
    rounding: Rounding = Rounding.ERROR
    storage_version: str | None = None
    max_rows_per_file: int = 1024 * 1024
    max_bytes_per_file: int = 90 * 1024 * MiB
    stable_row_ids: bool = False
    commit_message: str | None = None
    commit_attempts: int | None = None
    txn_app_id: str | None = None
    txn_version: int | None = None


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options of streams that read a table."""

    starting_version: int | None = None
    starting_timestamp: str | None = None
    starting_tag: str | None = None
    max_versions_per_trigger: int | None = None
    max_rows_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    changes: ChangeMode = ChangeMode.ERROR


@dataclass(frozen=True, slots=True)
class Options:
    """All options, parsed."""

    place: TableRef
    read: ReadOptions
    sink: SinkOptions
    stream: StreamOptions
    checkpoint: str | None = None


Parser = Callable[[str, str], Any]
Kind = TypeVar("Kind", bound=enum.Enum)


def _text(_: str, text: str) -> str:
    return text


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(f"option {name!r} is {text!r}; give a whole number from 0")
    return int(text)


def _count(name: str, text: str) -> int:
    number = _number(name, text)
    if number < 1:
        raise InputError(f"option {name!r} is {text!r}; give a whole number from 1")
    return number


def _flag(name: str, text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.strip().lower() not in known:
        raise InputError(f"option {name!r} is {text!r}; write true or false")
    return known[text.strip().lower()]


def _one_of(kind: type[Kind]) -> Parser:
    def parse(name: str, text: str) -> Kind:
        known = {one.value: one for one in kind}
        if text.strip().lower() not in known:
            raise InputError(f"option {name!r} is {text!r}; use one of {', '.join(known)}")
        return known[text.strip().lower()]

    return parse


def _names(_: str, text: str) -> tuple[str, ...]:
    """Split at commas outside of backticks."""
    names, current, is_quoted = [], "", False
    for letter in text:
        is_quoted ^= letter == "`"
        if letter == "," and not is_quoted:
            names.append(current.strip())
            current = ""
        else:
            current += letter
    return tuple(name for name in (*names, current.strip()) if name)


def _time(name: str, text: str) -> str:
    """Take a time with an offset: a source written in Python does not know the session's zone."""
    if parse_time(text, f"option {name!r}").tzinfo is None:
        raise InputError(
            f"option {name!r} is {text!r}, which names no offset, and the time zone of the session "
            f"is not known to a data source; write it like '2026-01-31T12:00:00+00:00'"
        )
    return text


def _hints(_: str, text: str) -> Mapping[str, str]:
    return parse_hints(text)


_PLACE: dict[str, Parser] = {
    "version": _count,
    "tag": _text,
    "branch": _text,
    "asOf": _time,
}
_READ: dict[str, Parser] = {
    "columns": _names,
    "where": _text,
    "withRowId": _flag,
    "withRowAddress": _flag,
    "vectors": _one_of(Vectors),
    "blobs": _one_of(Blobs),
    "nanoseconds": _one_of(Nanoseconds),
    "batchRows": _count,
    "batchBytes": _count,
    "partitionRows": _count,
    "partitionBytes": _count,
    "minPartitions": _count,
}
_SINK: dict[str, Parser] = {
    "createMode": _one_of(CreateMode),
    "mergeSchema": _flag,
    "overwriteSchema": _flag,
    "replaceWhere": _text,
    "replaceWhereCheck": _flag,
    "types": _hints,
    "rounding": _one_of(Rounding),
    "storageVersion": _text,
    "maxRowsPerFile": _count,
    "maxBytesPerFile": _count,
    "stableRowIds": _flag,
    "commitMessage": _text,
    "commitAttempts": _count,
    "txnAppId": _text,
    "txnVersion": _number,
}
_STREAM: dict[str, Parser] = {
    "startingVersion": _count,
    "startingTimestamp": _time,
    "startingTag": _text,
    "maxVersionsPerTrigger": _count,
    "maxRowsPerTrigger": _count,
    "maxBytesPerTrigger": _count,
    "changes": _one_of(ChangeMode),
}
NAMES = ("path", *_PLACE, *_READ, *_SINK, *_STREAM, f"{STORAGE_PREFIX}*")
"""The names of all options."""


def parse_options(given: Mapping[str, str]) -> Options:
    """Return what options say; their names may be in any case.

    Raises:
        InputError: a name is not known, a value is none, or the path is missing.
    """
    options = {str(name).lower(): str(text) for name, text in given.items()}
    _refuse_unknown(options)
    path = options.get("path", "")
    if not path:
        raise InputError(
            "the option 'path' is missing; give it with .load(path) or .save(path); "
            "tables of a catalog cannot be used, because Spark passes no path for them"
        )
    storage = {
        name.removeprefix(STORAGE_PREFIX): text
        for name, text in options.items()
        if name.startswith(STORAGE_PREFIX)
    }
    place = TableRef(locate(path, storage), **_chosen(TableRef, _PLACE, options))
    return Options(
        place,
        ReadOptions(**_chosen(ReadOptions, _READ, options)),
        SinkOptions(**_chosen(SinkOptions, _SINK, options)),
        StreamOptions(**_chosen(StreamOptions, _STREAM, options)),
        options.get("checkpointlocation"),
    )


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in options:
        if name in known or name in SPARK_OWN or name.startswith(STORAGE_PREFIX):
            continue
        close = [known[one] for one in get_close_matches(name, known, n=3)]
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(f"there is no option {name!r}; {hint}known: {', '.join(NAMES)}")


def _chosen(
    kind: type[Any], parsers: Mapping[str, Parser], options: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of a class of options that were given, parsed."""
    by_field = {one.name.replace("_", ""): one.name for one in fields(kind)}
    return {
        by_field[name.lower()]: parse(name, options[name.lower()])
        for name, parse in parsers.items()
        if name.lower() in options
    }
