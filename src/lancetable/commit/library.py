"""Who writes: the name and release of this library, as manifests record them."""

from functools import cache
from importlib import import_module

from lancetable.format.manifest import WriterVersion
from lancetable.format.manifest.model import OWN_LIBRARY


@cache
def this_writer() -> WriterVersion:
    """Return what is recorded as the writer of a version."""
    # Looked up by name: the package itself is above everything inside it.
    return WriterVersion(OWN_LIBRARY, str(import_module("lancetable").__version__))
