"""The operating system does what it is asked and reports an error, as a network file system may.

A version that got its name is recognised. Any other change is made as a whole or not at all, and
the latest version can be read.
"""

import errno
import os
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import lancetable as lt
from lancetable.store import TableLocation, new_file
from tests.acts import ACTS, make_base
from tests.crash.aftermath import check_whole, state
from tests.crash.misled import Fault

CODES = [errno.EEXIST, errno.EIO, errno.ENOENT, errno.ESTALE]
FEW = ["append", "delete rows", "update", "merge", "compact", "add computed", "restore"]


def _answer(code: int) -> Callable[[str], Exception]:
    return lambda _: OSError(code, os.strerror(code))


def _link(patch: pytest.MonkeyPatch, fault: Fault) -> None:
    real = os.link

    def link(*names: Any, **options: Any) -> None:
        real(*names, **options)
        fault.strike("link")

    patch.setattr(os, "link", link)


def _staged_link(patch: pytest.MonkeyPatch, fault: Fault) -> None:
    patch.setattr(new_file, "_NAMELESS", 0)
    _link(patch, fault)


def _rename(patch: pytest.MonkeyPatch, fault: Fault) -> None:
    real = new_file._rename

    def without_links(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def rename(source: bytes, target: bytes) -> int:
        code = real(source, target)
        if code:
            return code
        try:
            fault.strike("rename")
        except OSError as cause:
            return cause.errno or errno.EIO
        return 0

    patch.setattr(new_file, "_NAMELESS", 0)
    patch.setattr(os, "link", without_links)
    patch.setattr(new_file, "_rename", rename)


def _open(patch: pytest.MonkeyPatch, fault: Fault) -> None:
    real = os.open

    def open_(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        descriptor = real(path, flags, *rest, **options)
        if flags & os.O_CREAT:
            try:
                fault.strike("open")
            except OSError:
                os.close(descriptor)
                raise
        return descriptor

    patch.setattr(os, "open", open_)


def _unlink(patch: pytest.MonkeyPatch, fault: Fault) -> None:
    real = os.unlink

    def unlink(*names: Any, **options: Any) -> None:
        real(*names, **options)
        fault.strike("unlink")

    patch.setattr(os, "unlink", unlink)


NAMING = {"link": _link, "link of a staged file": _staged_link, "rename": _rename}
OTHERS = {"open": _open, "unlink": _unlink}


def few_acts() -> list[tuple[str, str, int]]:
    """Give each way to name a file every error, with one act after the other."""
    acts = cycle(FEW)
    return [(next(acts), way, code) for way in NAMING for code in CODES]


@pytest.mark.parametrize(("act", "way", "code"), few_acts())
def test_a_named_version_is_recognised(
    tmp_path: Path, act: str, way: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_base(tmp_path / "t")
    twin = make_base(tmp_path / "twin")
    ACTS[act].run(twin, lt.CommitOptions())
    fault = Fault(0, _answer(code))
    with monkeypatch.context() as patch:
        NAMING[way](patch, fault)
        ACTS[act].run(table, lt.CommitOptions())
    assert fault.has_struck
    after = check_whole(TableLocation(str(tmp_path / "t")))
    assert after.version == table.version == twin.version
    assert state(after) == state(twin)


@pytest.mark.soak
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("way", NAMING)
@pytest.mark.parametrize("act", ACTS)
def test_any_named_version_is_recognised(
    tmp_path: Path, act: str, way: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_a_named_version_is_recognised(tmp_path, act, way, code, monkeypatch)


def sweep(folder: Path, act: str, way: str, code: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Mislead at each call in turn; return how many there are."""
    twin = make_base(folder / "twin")
    old = state(twin)
    ACTS[act].run(twin, lt.CommitOptions())
    for number in range(60):
        table = make_base(folder / str(number))
        fault = Fault(number, _answer(code))
        problem: Exception | None = None
        with monkeypatch.context() as patch:
            OTHERS[way](patch, fault)
            try:
                ACTS[act].run(table, lt.CommitOptions())
            except lt.LanceTableError as error:
                problem = error
        after = check_whole(TableLocation(str(folder / str(number))))
        what = f"call {number}: {problem!r}"
        assert not after.maintenance.check().problems, what
        if problem is None:
            assert state(after) == state(twin), what
        else:
            is_open = isinstance(problem, lt.UnknownOutcomeError)
            assert state(after) in ([old, state(twin)] if is_open else [old]), what
        if not fault.has_struck:
            return number
    raise AssertionError("the change never went through")


@pytest.mark.parametrize(("act", "way", "code"), [
    ("append", "open", errno.EEXIST), ("delete rows", "open", errno.ENOENT),
    ("merge", "open", errno.EIO), ("update", "open", errno.ESTALE),
])  # fmt: skip
def test_a_new_file_is_misreported(
    tmp_path: Path, act: str, way: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sweep(tmp_path, act, way, code, monkeypatch) > 1


@pytest.mark.soak
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("way", OTHERS)
@pytest.mark.parametrize("act", ACTS)
def test_any_call_is_misreported(
    tmp_path: Path, act: str, way: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(tmp_path, act, way, code, monkeypatch)
