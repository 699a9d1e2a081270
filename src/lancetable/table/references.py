"""Tags and branches of a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from lancetable.commit import refs, versions
from lancetable.errors import InputError
from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle
from lancetable.table.named import Named, UnknownReferenceError

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.refs import BranchInfo, TagInfo
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.tagging import TagMove
    from lancetable.operations.branch.cherry_pick import PickResult
    from lancetable.operations.branch.fast_forward import PublishResult

Opened = TypeVar("Opened")


def _chosen(
    held: "Snapshot", version: int | None, tag: str | None, branch: str | None
) -> "Snapshot":
    """Return the version that arguments name; without any that of the handle."""
    if version is None and tag is None and branch is None:
        return held
    if tag is None and branch is None:
        branch = held.branch
    return versions.load(held.location, version=version, tag=tag, branch=branch)


@explaining
class Tags(Named["TagInfo"]):
    """The tags of a table by name."""

    __slots__ = ("_handle",)

    _unknown = UnknownReferenceError

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _all(self) -> "dict[str, TagInfo]":
        return refs.tags(self._handle.location)

    def list(self) -> "list[TagInfo]":
        """Return all tags in the order of their names."""
        return [*self._all().values()]

    def create(
        self,
        name: str,
        version: int | None = None,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> "TagInfo":
        """Create a tag; by default for the version of the handle.

        Args:
            name: letters, digits, dots, dashes and underscores.
            version: a version of the handle's branch, or of ``branch``.
            branch: another branch; by default its latest version.
            metadata: notes kept with the tag.

        Raises:
            InputError: the name is not valid for a tag.
            ExistsError: there is such a tag.
            VersionNotFoundError: there is no such version.
        """
        from lancetable.commit.tagging import create_tag

        refs.tag_path(name)
        return create_tag(_chosen(self._handle.snapshot, version, None, branch), name, metadata)

    def move(
        self, name: str, version: int | None = None, *, branch: str | None = None
    ) -> "TagMove":
        """Move a tag to another version; its metadata stays.

        Of several concurrent moves of a tag the last one wins.

        Raises:
            RefNotFoundError: there is no such tag.
            VersionNotFoundError: there is no such version.
        """
        from lancetable.commit.tagging import move_tag

        refs.tag_path(name)
        return move_tag(_chosen(self._handle.snapshot, version, None, branch), name)

    def delete(self, name: str) -> "TagInfo":
        """Delete a tag and return it; the version stays until a cleanup.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        from lancetable.commit.tagging import delete_tag

        return delete_tag(self._handle.location, name)

    def describe(self, name: str, metadata: Mapping[str, str]) -> "TagInfo":
        """Replace the notes kept with a tag.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        from lancetable.commit.tagging import describe_tag

        return describe_tag(self._handle.location, name, metadata)


@explaining
class Branches(Named["BranchInfo"], Generic[Opened]):
    """The branches of a table by name, the main one left out."""

    __slots__ = ("_handle", "_opened")

    _unknown = UnknownReferenceError

    def __init__(self, handle: Handle, opened: "Callable[[Snapshot], Opened]") -> None:
        self._handle = handle
        self._opened = opened

    def _all(self) -> "dict[str, BranchInfo]":
        return refs.branches(self._handle.location)

    def list(self) -> "list[BranchInfo]":
        """Return all branches in the order of their names."""
        return [*self._all().values()]

    def create(
        self,
        name: str,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Opened:
        """Create a branch and open it; by default it starts at the version of the handle.

        A branch has a history of its own. No file is copied: it refers to those of its parent.

        Args:
            name: parts of letters, digits, dots, dashes and underscores joined by slashes.
            version: a version of the handle's branch, or of ``branch``.
            tag: a tag that names the version.
            branch: another branch; by default its latest version.
            metadata: notes kept with the branch.

        Raises:
            InputError: the name is not valid for a branch.
            ExistsError: there is such a branch.
            VersionNotFoundError: there is no such version.
            RefNotFoundError: there is no such tag or branch.
        """
        from lancetable.commit.branch.branching import create_branch

        refs.check_branch_name(name)
        source = _chosen(self._handle.snapshot, version, tag, branch)
        return self._opened(create_branch(source, name, metadata))

    def delete(self, name: str) -> "BranchInfo | None":
        """Delete a branch with all its versions and return it.

        Raises:
            RefNotFoundError: there is no such branch.
            InputError: it is in use: a tag or another branch needs it.
        """
        from lancetable.commit.branch.branching import delete_branch

        if name == self._handle.snapshot.branch:
            raise InputError(
                f"branch {name!r} is in use: this handle is on it; check out another one first"
            )
        return delete_branch(self._handle.location, name)

    def fast_forward(
        self,
        name: str,
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "PublishResult":
        """Publish everything a branch did as one version of this history.

        This history must not have new versions since the branch was created; otherwise use
        :meth:`cherry_pick`. The branch stays and may be deleted.

        Raises:
            RefNotFoundError: there is no such branch.
            ConflictError: this history has new versions since the branch was created.
            InputError: the branch was created elsewhere, or changed what cannot be published.
        """
        from lancetable.operations.branch.fast_forward import fast_forward

        return self._handle.change(
            lambda snapshot, options: fast_forward(snapshot, name, options=options.commit), commit
        )

    def cherry_pick(
        self,
        name: str,
        versions: "int | Sequence[int] | None" = None,
        *,
        commit: "CommitOptions | str | None" = None,
    ) -> "PickResult":
        """Replay versions of a branch on this history.

        Each becomes a version of its own, with the notes of the original. Appended rows, deletes,
        updates, changes of columns and of settings can be replayed unless this history changed
        what they build on. When one fails, those before it stay, and the error names them.

        Args:
            name: the branch.
            versions: which of its versions; all that it made when left out.
            commit: message or options of the commits; a message replaces the original ones.

        Raises:
            RefNotFoundError: there is no such branch.
            VersionNotFoundError: the branch has no such version, or it was cleaned away.
            ConflictError: this history changed what a version builds on.
            InputError: a version was replayed before, or cannot be replayed.
        """
        from lancetable.operations.branch.cherry_pick import cherry_pick

        wanted = [versions] if isinstance(versions, int) else versions
        return self._handle.change(
            lambda snapshot, options: cherry_pick(snapshot, name, wanted, options=options.commit),
            commit,
        )

    def describe(self, name: str, metadata: Mapping[str, str]) -> "BranchInfo":
        """Replace the notes kept with a branch.

        Raises:
            RefNotFoundError: there is no such branch.
        """
        from lancetable.commit.branch.branching import describe_branch

        return describe_branch(self._handle.location, name, metadata)
