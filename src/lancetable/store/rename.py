"""How does a file get a name that must not exist yet, where there are no hard links.

Python's own rename replaces what stands under the new name. Linux and macOS have a call that does
not; it is one step for the file system, so nobody ever sees the name with half a content.

========  ======================  ==================================
system    call                    flag
========  ======================  ==================================
Linux     ``renameat2``           1, do not replace
macOS     ``renamex_np``          4, exclusive
Windows   the ordinary rename     none, it never replaces
========  ======================  ==================================
"""

import errno
import os
import sys

_CURRENT_FOLDER = -100
_LINUX_NO_REPLACE = 1
_MACOS_EXCLUSIVE = 4

CANNOT = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.ENOTTY}
)
"""What systems answer that have no such call for this file system."""


def rename_if_absent(source: str, target: str) -> None:
    """Move a file to a name that must be free.

    Raises:
        FileExistsError: there is such a file; nothing was moved.
        OSError: it failed; with a number of ``CANNOT`` when the file system cannot do it at all.
    """
    if sys.platform == "win32":
        os.rename(source, target)  # noqa: PTH104
        return
    code = _rename(os.fsencode(source), os.fsencode(target))
    if code:
        raise OSError(code, os.strerror(code), target)


def _rename(source: bytes, target: bytes) -> int:
    """Return the error number, 0 for none."""
    import ctypes  # noqa: PLC0415 - seldom needed, and a tenth of the time to open a table

    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(source, target, ctypes.c_uint(_MACOS_EXCLUSIVE))
        else:
            here = ctypes.c_int(_CURRENT_FOLDER)
            flag = ctypes.c_uint(_LINUX_NO_REPLACE)
            failed = library.renameat2(here, source, here, target, flag)
    except AttributeError:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0
