"""Where rows went when fragments were rewritten: the Fragment Reuse Index."""

from lancetable.format.manifest.reuse.model import (
    Built,
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)

__all__ = ["Built", "FragmentDigest", "FragmentReuse", "ReuseGroup", "ReuseVersion"]
