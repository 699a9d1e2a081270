"""Recognize a write that Spark repeats.

A write that has a mark records it in the transaction of its version, so that both come about
together. Before a commit the latest mark of the same application is looked for, back through the
versions that are kept; a write whose number is not greater was done already.
"""

from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.versions import listed
from lancetable.errors import FileNotFoundInStoreError, InputError
from lancetable.format.manifest.codec import decode_manifest

APP_ID = "lancetable.txn_app_id"
VERSION = "lancetable.txn_version"


@dataclass(frozen=True, slots=True)
class Mark:
    """The id of an application and the number of its write, which grows with each write."""

    app_id: str
    version: int

    def properties(self) -> dict[str, str]:
        """Return what is recorded in the transaction."""
        return {APP_ID: self.app_id, VERSION: str(self.version)}


def is_done(latest: Snapshot, mark: Mark) -> bool:
    """Return whether a write with this mark, or a later one, is a version already."""
    found = last_version(latest, mark.app_id)
    return found is not None and found >= mark.version


def last_version(latest: Snapshot, app_id: str) -> int | None:
    """Return the number of the last write of an application, ``None`` if there is no record."""
    store = latest.store
    for info in reversed(listed(store)):
        try:
            data = store.read(info.path)
        except FileNotFoundInStoreError:
            continue  # cleaned away meanwhile
        manifest = decode_manifest(data, shown(store, info.path))
        transaction = read_transaction(store, manifest, info.path, data)
        properties = {} if transaction is None else transaction.properties
        if properties.get(APP_ID) == app_id:
            return _number(properties.get(VERSION, ""))
    return None


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InputError(
            f"a version of the table records {VERSION}={text!r}, which is not a number"
        )
    return int(text)
