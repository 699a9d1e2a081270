"""Picklable locations of tables, which open their stores."""

import os
from collections.abc import Mapping, Sequence
from typing import Self

from lancetable.errors import InputError
from lancetable.store.access import (
    EVERYTHING,
    FILE,
    Access,
    Confined,
    Place,
    access_from,
    is_allowed,
    local_parts,
    refusal,
)
from lancetable.store.base import Credentials, Store
from lancetable.store.local import Durability, LocalStore
from lancetable.store.opened import LOCAL_READS, checked_reads

NO_OPTIONS: Mapping[str, str] = {}


class TableLocation:
    """An immutable reference to a folder of files, local or in an object store.

    ``credentials`` is called for new credentials before those in use expire; ``allow`` names other
    places that the table may refer to, besides those in the options. A subclass adds what its
    stores need. Not a dataclass, as importing `dataclasses` slows down opening a table.
    """

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str] = NO_OPTIONS,
        durability: Durability = Durability.OS,
        credentials: Credentials | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self.uri = uri
        self.options = options
        self.durability = durability
        self.credentials = credentials
        self.allow = allow
        self.below = ""
        """The path from the root of the table to this folder, when it is a branch of it."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        from lancetable.store.cloud.errors import hide_secrets  # noqa: PLC0415 - seldom needed

        return f"{type(self).__name__}({hide_secrets(self.uri)!r})"

    @property
    def access(self) -> Access:
        """The places the table may refer to, from ``allow``, the options and the environment.

        Raises:
            InputError: an option has an invalid value.
        """
        return access_from(self.options, self.allow)

    def open(self) -> Store:
        """Return the store that holds this folder.

        Raises:
            UnsupportedError: the address names a kind of store that is not known.
            InputError: an option is not known.
        """
        path = _local_path(self.uri)
        if path is not None:
            return self._local(path)
        # Imported lazily: only object stores need a client.
        from lancetable.store.cloud.objects import ObjectStore  # noqa: PLC0415

        return ObjectStore(self.uri, self.options, self.credentials)

    def _local(self, path: str) -> LocalStore:
        root = path[: len(path) - len(self.below)].rstrip("/") if self.below else path
        confined = Confined(root, self.below, self._allowed_paths)
        reads = self.options.get(LOCAL_READS)
        if reads is not None:
            reads = checked_reads(reads)
        return LocalStore(path, self.durability, confined=confined, reads=reads)

    def _allowed_paths(self) -> list[str]:
        """Return the local folders that links of the table may point to."""
        allowed = self.access.allowed
        paths = [_local_path(one) for one in allowed if one != EVERYTHING]
        found = [path for path in paths if path is not None]
        return ["/", *found] if EVERYTHING in allowed else found

    def child(self, path: str) -> Self:
        """Return the location of a folder below this one."""
        made = self.moved(f"{self.uri.rstrip('/')}/{self._written(path)}")
        made.below = f"{self.below}/{path}" if self.below else path
        return made

    def _written(self, path: str) -> str:
        """Return a path as it is written in an address, in which ``%`` begins a code."""
        return path.replace("%", "%25") if "%" in path and "://" in self.uri else path

    def moved(self, uri: str, options: Mapping[str, str] | None = None) -> Self:
        """Return the same kind of location at another address, perhaps with other options."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), uri=uri, below="")
        if options is not None:
            made.options = options
        return made

    def allowing(self, *uris: str) -> Self:
        """Return the same location with more allowed addresses."""
        made = self.moved(self.uri)
        made.below = self.below
        made.allow = tuple(dict.fromkeys((*self.allow, *uris)))
        return made

    def elsewhere(self, uri: str) -> "TableLocation":
        """Return another location that is reached with the same settings.

        Credentials go only to the service and the account they were given for. A local table needs
        none for itself, so those given with it are meant for its bases.
        """
        options, credentials = self.options, self.credentials
        if options or credentials:
            own, other = _place(self.uri, self.options), _place(uri, self.options)
            is_shared = own.is_local or own.has_credentials_of(other)
            if not is_shared and not other.is_local:
                from lancetable.store.cloud.settings import carried_over  # noqa: PLC0415 - seldom

                credentials = None
                options = carried_over(options, other.service, other.account)
        return TableLocation(uri, options, self.durability, credentials, self.allow)

    def followed(self, uri: str, what: str, *, is_raw: bool = False) -> "TableLocation":
        """Return the location of a place that the table refers to, when that is allowed.

        ``what`` is named in the message; ``is_raw`` when bytes of any file are read there.

        Raises:
            InputError: it lies outside of the table and is not allowed by name.
        """
        own, other = _place(self.uri, self.options), _place(uri, self.options)
        access = self.access
        named = [_place(one, self.options) for one in access.allowed if one != EVERYTHING]
        if not is_allowed(access, own, other, named, is_raw=is_raw):
            raise refusal(uri, what)
        return self.elsewhere(uri)


def folder_and_name(uri: str) -> tuple[str, str]:
    """Return the folder of a file's address, and the file's name in it."""
    path = _local_path(uri)
    folder, _, name = (uri if path is None else path).rpartition("/")
    return folder or "/", name


def _place(uri: str, options: Mapping[str, str]) -> Place:
    path = _local_path(uri)
    if path is not None:
        return Place(FILE, "", "", local_parts(path))
    from lancetable.store.cloud.address import parse_address  # noqa: PLC0415 - with a client only
    from lancetable.store.cloud.settings import Service, account_of  # noqa: PLC0415

    service, bucket, folder, account = parse_address(uri)
    if service is Service.AZURE:
        account = account or account_of(options)
    parts = tuple(part for part in folder.split("/") if part)
    host = bucket.lower() if service is Service.HTTP else bucket
    return Place(service.value, host, account, parts)


def _local_path(uri: str) -> str | None:
    """Turn a path or a ``file:`` address into an absolute path; others are in an object store."""
    if not uri:
        raise InputError("the address of the table is empty; give a path such as 'data/events'")
    scheme, separator, rest = uri.partition("://")
    if not separator or len(scheme) < 2:  # one letter before a colon is a drive
        if uri.startswith("file:"):
            return _local_path(f"file://{uri[5:]}")
        return _checked(os.path.abspath(os.path.expanduser(uri)))  # noqa: PTH100, PTH111 - no file is touched
    if scheme not in {"file", "file-object-store"}:
        return None
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - seldom needed

    from lancetable.store.cloud.address import check_characters  # noqa: PLC0415

    check_characters(uri)
    host, slash, path = rest.partition("/")
    if host not in {"", "localhost"} or not slash:
        raise InputError(f"{uri}: a file address must not name a host; write file:///path")
    return _checked(os.path.abspath(os.fsdecode(unquote_to_bytes(f"/{path}"))))  # noqa: PTH100


def _checked(path: str) -> str:
    """Return a path that can be handed to the operating system.

    Raises:
        InputError: no file can have this path.
    """
    if "\0" in path:
        raise InputError(f"{path!a}: a path must not contain a NUL character")
    if not path.isascii():
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise InputError(f"{path!a}: the path is not valid in this file system") from None
    return path
