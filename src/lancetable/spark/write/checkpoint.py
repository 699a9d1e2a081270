"""Which fragments got their new file in an attempt that did not end: notes in a folder.

Each note is one JSON object under a name that is another one when the fragment has another content
or the new columns other ids. The file itself stays where it is; if a cleanup took it meanwhile, the
note counts for nothing.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import StoreError
from lancetable.format.manifest import DataFile
from lancetable.operations.columns.column_values import remove_checkpoint
from lancetable.operations.columns.extend import place_of

_SUFFIX = ".file.json"


@dataclass(frozen=True, slots=True)
class Finished:
    """The notes of a backfill; without a folder there are none."""

    folder: str | None

    def note(self, part: Snapshot, ids: tuple[int, ...], file: DataFile) -> None:
        """Note the file that a fragment got."""
        path = self._path(part, ids)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".part")
            draft.write_text(json.dumps(file._asdict()))
            draft.rename(path)

    def find(self, part: Snapshot, ids: tuple[int, ...]) -> DataFile | None:
        """Return the file that a fragment got before, if it is still there."""
        path = self._path(part, ids)
        if path is None or not path.exists():
            return None
        try:
            noted = json.loads(path.read_text())
            lists = {name: tuple(noted[name]) for name in ("fields", "column_indices")}
            file = DataFile(**(noted | lists))
            store, place = part.data_file_place(file)
            return file if store.exists(place) else None
        except (ValueError, TypeError, KeyError, StoreError):
            return None

    def forget(self) -> None:
        """Remove the notes."""
        if self.folder is not None:
            remove_checkpoint(self.folder)

    def _path(self, part: Snapshot, ids: tuple[int, ...]) -> Path | None:
        if self.folder is None:
            return None
        fields = "_".join(map(str, ids))
        return Path(self.folder) / f"{place_of(part, f'fields_{fields}')}{_SUFFIX}"
