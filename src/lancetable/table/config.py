"""Settings, notes and bases of a table as mappings; each change is one commit.

Bases are further folders that hold some of the files of a table.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.named import Named

if TYPE_CHECKING:
    from os import PathLike

    from lancetable.commit.options import CommitOptions
    from lancetable.format.manifest import BasePath
    from lancetable.operations.results import WriteResult

Part = Literal["config", "table_metadata", "schema_metadata"]


@explaining
class Keys(Named[str]):
    """Keys and values kept with a table, of the version that its handle holds."""

    __slots__ = ("_handle", "_part")

    def __init__(self, handle: Handle, part: Part) -> None:
        self._handle = handle
        self._part = part

    def _all(self) -> Mapping[str, str]:
        manifest = self._handle.snapshot.manifest
        if self._part == "schema_metadata":
            return manifest.schema.metadata
        return getattr(manifest, self._part) or {}

    def __repr__(self) -> str:
        return repr(dict(self._all()))

    def __setitem__(self, key: str, value: str) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        self[key]
        self.update({key: None})

    def update(
        self,
        entries: Mapping[str, str | None],
        *,
        replace_all: bool = False,
        commit: "CommitOptions | str | None" = None,
    ) -> "WriteResult":
        """Set keys, and remove those whose value is None.

        Args:
            entries: the keys to set or to remove.
            replace_all: also remove the keys that are not named.
            commit: message or options of the commit.

        Raises:
            ConflictError: another writer changed the same keys.
        """
        from dataclasses import replace

        from lancetable.commit.transaction import UpdateConfig
        from lancetable.operations.config import configure, map_update

        change = map_update(entries, replace=replace_all)
        operation = replace(UpdateConfig(), **cast("dict[str, Any]", {self._part: change}))
        return self._handle.change(
            lambda snapshot, options: configure(
                snapshot, lambda _: operation, commit=options.commit
            ),
            commit,
        )


@explaining
class Bases(Named["BasePath"]):
    """The bases of a table by name; those without a name, such as of clones, by path."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _all(self) -> "dict[str, BasePath]":
        return {
            base.path if base.name is None else base.name: base
            for base in self._handle.snapshot.manifest.base_paths
        }

    def add(
        self,
        folders: "Mapping[str, str | PathLike[str]]",
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "WriteResult":
        """Add named folders for data files, such as other disks.

        New rows go there when the option ``target_bases`` of a write names them. The paths are
        stored as they are, so the folders must not move.

        Raises:
            InputError: a name or a folder is in use.
        """
        from lancetable.operations.config import add_bases

        handle = self._handle
        location = handle.location.allowing(*map(str, folders.values()))
        result = handle.change(
            lambda snapshot, options: add_bases(
                snapshot._replace(location=location), folders, commit=options.commit
            ),
            commit,
        )
        handle.location = location
        return result
