"""Remember what a check has looked at, and go on where a long one was stopped.

The journal is one JSON object: for every file, named by store, path and size, what was wrong with
it, or null. It is written every few seconds, and can be removed at any time.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lancetable.errors import (
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
)
from lancetable.operations.check.model import DAMAGE, Level
from lancetable.store import Store, TableLocation

PAUSE = 5.0
_NOTED = ("data", "nulls", "no nulls")
"""The kinds of keys that a journal keeps; the others take little time."""

Finding = tuple[str, bool] | None
"""What is wrong with a file, and whether it is damage; ``None`` when all is well."""


@dataclass(slots=True)
class Journal:
    """The findings of a check at one level, kept in a file."""

    store: Store
    name: str
    level: int
    found: dict[str, Finding] = field(default_factory=dict)
    saved: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, path: str, level: int) -> "Journal":
        """Return the journal in a file; one of another level starts empty.

        Raises:
            InputError: the file is something else.
        """
        folder, _, name = path.replace("\\", "/").rpartition("/")
        store = TableLocation(folder or ("/" if path.startswith("/") else ".")).open()
        journal = cls(store, name, level)
        try:
            content = json.loads(store.read(name))
            if content["level"] == level:
                for key, finding in content["files"].items():
                    journal.found[str(key)] = finding and (str(finding[0]), bool(finding[1]))
        except FileNotFoundInStoreError:
            pass
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{path} is not a journal of a check; name another file") from None
        return journal

    def note(self, key: str, finding: Finding) -> None:
        """Keep what was found out about a file."""
        self.found[key] = finding
        if time.monotonic() - self.saved > PAUSE:
            self.save()

    def save(self) -> None:
        """Write the journal."""
        content = {"level": self.level, "files": self.found}
        self.store.put(self.name, json.dumps(content).encode())
        self.saved = time.monotonic()


@dataclass(slots=True)
class Memory:
    """Findings about files and fragments so far."""

    level: Level
    found: dict[tuple[object, ...], Finding] = field(default_factory=dict)
    journal: Journal | None = None

    def look(self, key: tuple[object, ...], look: Callable[[], object]) -> Finding:
        """Return what is wrong, and whether it is damage; ``None`` when all is well."""
        if self.knows(key):
            return self.found[key]
        finding: Finding = None
        try:
            look()
        except DAMAGE as error:
            finding = (said(error), True)
        except LanceTableError as error:
            finding = (said(error), False)
        except MemoryError as error:
            finding = (f"there is not enough memory to look at it ({error})", False)
        self.learn(key, finding)
        return finding

    def knows(self, key: tuple[object, ...]) -> bool:
        """Say whether something was looked at, by this check or by the one it goes on with."""
        if key not in self.found and self.journal is not None and repr(key) in self.journal.found:
            self.found[key] = self.journal.found[repr(key)]
        return key in self.found

    def learn(self, key: tuple[object, ...], finding: Finding) -> None:
        """Remember what was found."""
        self.found[key] = finding
        # What could not be looked at is looked at again by the check that goes on.
        is_known = finding is None or finding[1]
        if self.journal is not None and key[0] in _NOTED and is_known:
            self.journal.note(repr(key), finding)


def said(error: LanceTableError) -> str:
    """Return the message of an error without the path of its file."""
    if isinstance(error, FileNotFoundInStoreError):
        return "the file is missing"
    return error.message if isinstance(error, CorruptError) else str(error)
