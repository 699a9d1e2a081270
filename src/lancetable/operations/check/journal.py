"""What a long check has looked at already, so that it can go on where it was stopped.

The journal is one JSON object: for every file, named by store, path and size, what was wrong with
it, or null. It is written every few seconds, and can be removed at any time.
"""

import json
import time
from dataclasses import dataclass, field

from lancetable.errors import FileNotFoundInStoreError, InputError
from lancetable.store import Store, TableLocation

PAUSE = 5.0

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
        """Return the journal in a file; one of another level begins anew.

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
            raise InputError(f"{path} is no journal of a check; name another file") from None
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
