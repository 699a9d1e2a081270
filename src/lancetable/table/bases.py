"""Bases of a table: further folders that hold some of its files."""

from typing import TYPE_CHECKING

from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.named import Named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from lancetable.commit.options import CommitOptions
    from lancetable.format.manifest import BasePath
    from lancetable.operations.results import WriteResult


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
