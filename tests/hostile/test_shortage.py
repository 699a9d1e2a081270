"""A shortage of the machine is no damage of the table."""

import errno
import os
import resource
from pathlib import Path

import pytest

from lancetable import ShortageError, StoreError
from lancetable.store import LocalStore
from lancetable.store.new_file import LocalFile


def test_running_out_of_descriptors_is_a_shortage(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    store = LocalStore(str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with pytest.raises(OSError, match="Too many"):  # noqa: PT012 - until there is none left
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(ShortageError, match="Too many open files"):
            store.read("a")
        with pytest.raises(ShortageError, match="Too many open files"):
            store.open("a")
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.read("a") == b"content"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_a_shortage(tmp_path: Path) -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    file = LocalFile(str(tmp_path / "none"), descriptor, is_durable=False)
    with pytest.raises(ShortageError, match=os.strerror(errno.ENOSPC)) as caught:
        file.write([b"x"])
    assert isinstance(caught.value, StoreError)
    assert isinstance(caught.value, OSError)
    assert caught.value.is_certain
