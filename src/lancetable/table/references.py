"""The names of versions as users hold them: tags and branches, to look at and to change."""

from abc import abstractmethod
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Generic, TypeVar

from lancetable.commit import refs, versions
from lancetable.errors import InputError, RefNotFoundError
from lancetable.table.argument_errors import explaining

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.commit.refs import BranchInfo, TagInfo
    from lancetable.commit.snapshot import Snapshot
    from lancetable.commit.tagging import TagMove
    from lancetable.operations.branch.cherry_pick import PickResult
    from lancetable.operations.branch.fast_forward import PublishResult

Info = TypeVar("Info")
Handle = TypeVar("Handle")


class UnknownNameError(RefNotFoundError, KeyError):
    """The table has no such tag or branch; a mapping is expected to say so with a ``KeyError``."""

    __str__ = Exception.__str__


class Named(Mapping[str, Info]):
    """Names and what they stand for, read anew whenever they are looked at."""

    __slots__ = ()

    @abstractmethod
    def _all(self) -> dict[str, Info]:
        """Return all names."""

    def __getitem__(self, name: object) -> Info:
        found = self._all()
        if not isinstance(name, str) or name not in found:
            kind = type(self).__name__.lower()
            known = ", ".join(found) or "none"
            raise UnknownNameError(f"there is no {name!r} among the {kind}; there are: {known}")
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, Info]:
        """Return names and what they stand for."""
        return self._all().items()

    def values(self) -> ValuesView[Info]:
        """Return what the names stand for."""
        return self._all().values()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._all()!r})"


def _chosen(
    held: "Snapshot", version: int | None, tag: str | None, branch: str | None
) -> "Snapshot":
    """Return the version that arguments name; without any the one that the handle holds."""
    if version is None and tag is None and branch is None:
        return held
    if tag is None and branch is None:
        branch = held.branch
    return versions.load(held.location, version=version, tag=tag, branch=branch)


@explaining
class Tags(Named["TagInfo"]):
    """The tags of a table by name."""

    __slots__ = ("_snapshot",)

    def __init__(self, snapshot: "Snapshot") -> None:
        self._snapshot = snapshot

    def _all(self) -> "dict[str, TagInfo]":
        return refs.tags(self._snapshot.location)

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
        """Give a version a name; without arguments the version of the handle.

        Args:
            name: letters, digits, dots, dashes and underscores.
            version: a version of the handle's branch, or of ``branch``.
            branch: another branch; its latest version unless one is named.
            metadata: notes kept with the tag.

        Raises:
            InputError: tags cannot be called so.
            ExistsError: there is such a tag.
            VersionNotFoundError: there is no such version.
        """
        from lancetable.commit.tagging import create_tag

        refs.tag_path(name)
        return create_tag(_chosen(self._snapshot, version, None, branch), name, metadata)

    def move(
        self, name: str, version: int | None = None, *, branch: str | None = None
    ) -> "TagMove":
        """Let a tag name another version; its metadata stays. Say where it was and where it is.

        Of several who move one tag at once the last one wins.

        Raises:
            RefNotFoundError: there is no such tag.
            VersionNotFoundError: there is no such version.
        """
        from lancetable.commit.tagging import move_tag

        refs.tag_path(name)
        return move_tag(_chosen(self._snapshot, version, None, branch), name)

    def delete(self, name: str) -> "TagInfo":
        """Remove a tag and return what it was; the version stays until a cleanup.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        from lancetable.commit.tagging import delete_tag

        return delete_tag(self._snapshot.location, name)

    def describe(self, name: str, metadata: Mapping[str, str]) -> "TagInfo":
        """Replace the notes kept with a tag.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        from lancetable.commit.tagging import describe_tag

        return describe_tag(self._snapshot.location, name, metadata)


@explaining
class Branches(Named["BranchInfo"], Generic[Handle]):
    """The branches of a table by name, the main one left out."""

    __slots__ = ("_move_table", "_opened", "_snapshot")

    def __init__(
        self,
        snapshot: "Snapshot",
        opened: "Callable[[Snapshot], Handle]",
        move: "Callable[[Snapshot], None]",
    ) -> None:
        self._snapshot = snapshot
        self._opened = opened
        self._move_table = move

    def _move(self, snapshot: "Snapshot") -> None:
        self._snapshot = snapshot
        self._move_table(snapshot)

    def _all(self) -> "dict[str, BranchInfo]":
        return refs.branches(self._snapshot.location)

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
    ) -> Handle:
        """Begin a branch and open it; without arguments it begins with the handle's version.

        A branch has a history of its own. No file is copied: it refers to those of its parent.

        Args:
            name: parts of letters, digits, dots, dashes and underscores joined by slashes.
            version: a version of the handle's branch, or of ``branch``.
            tag: a tag that names the version.
            branch: another branch; its latest version unless one is named.
            metadata: notes kept with the branch.

        Raises:
            InputError: branches cannot be called so.
            ExistsError: there is such a branch.
            VersionNotFoundError: there is no such version.
            RefNotFoundError: there is no such tag or branch.
        """
        from lancetable.commit.branch.branching import create_branch

        refs.check_branch_name(name)
        source = _chosen(self._snapshot, version, tag, branch)
        return self._opened(create_branch(source, name, metadata))

    def delete(self, name: str) -> "BranchInfo | None":
        """Remove a branch with all its versions and return what it was.

        Raises:
            RefNotFoundError: there is no such branch.
            InputError: it is in use: a tag or another branch needs it.
        """
        from lancetable.commit.branch.branching import delete_branch

        if name == self._snapshot.branch:
            raise InputError(
                f"branch {name!r} is in use: this handle is on it; check out another one first"
            )
        return delete_branch(self._snapshot.location, name)

    def fast_forward(
        self,
        name: str,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "PublishResult":
        """Bring everything a branch did to this history, as one version, and move there.

        Nobody may have written to this history since the branch began; otherwise pick its
        versions. The branch stays and may be deleted.

        Raises:
            RefNotFoundError: there is no such branch.
            ConflictError: this history moved on since the branch began.
            InputError: the branch began elsewhere, or changed what cannot be brought along.
        """
        from lancetable.operations.branch.fast_forward import fast_forward
        from lancetable.table.writing import commit_options

        options = commit_options(commit, commit_message, properties)
        done = fast_forward(self._snapshot, name, options=options)
        self._move(done.snapshot)
        return done.result

    def cherry_pick(
        self,
        name: str,
        versions: "int | Sequence[int] | None" = None,
        *,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> "PickResult":
        """Replay versions of a branch on this history, and move to the last one it makes.

        Each becomes a version of its own, with the notes of the original. Appended rows, deletes,
        updates, changes of columns and of settings can be replayed as long as nobody changed here
        what they build on. When one cannot, those before it stay, and the error names them.

        Args:
            name: the branch.
            versions: which of its versions; all that it made when left out.
            commit: how long to try.
            commit_message: a note for the history instead of the original one.
            properties: further notes for the history.

        Raises:
            RefNotFoundError: there is no such branch.
            VersionNotFoundError: the branch has no such version, or it was cleaned away.
            ConflictError: this history changed what a version builds on.
            InputError: a version was brought here before, or cannot be replayed.
        """
        from lancetable.operations.branch.cherry_pick import cherry_pick
        from lancetable.table.writing import commit_options

        options = commit_options(commit, commit_message, properties)
        wanted = [versions] if isinstance(versions, int) else versions
        done = cherry_pick(self._snapshot, name, wanted, options=options)
        self._move(done.snapshot)
        return done.result

    def describe(self, name: str, metadata: Mapping[str, str]) -> "BranchInfo":
        """Replace the notes kept with a branch.

        Raises:
            RefNotFoundError: there is no such branch.
        """
        from lancetable.commit.branch.branching import describe_branch

        return describe_branch(self._snapshot.location, name, metadata)
