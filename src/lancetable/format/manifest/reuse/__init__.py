"""The Fragment Reuse Index, which maps rows of rewritten fragments to their new place."""

from lancetable.format.manifest.reuse.model import (
    Built,
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)

__all__ = ["Built", "FragmentDigest", "FragmentReuse", "ReuseGroup", "ReuseVersion"]
