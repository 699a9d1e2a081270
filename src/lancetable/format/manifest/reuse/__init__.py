"""Where rows went when fragments were rewritten: the Fragment Reuse Index."""

from lancetable.format.manifest.reuse.model import (
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)

__all__ = ["FragmentDigest", "FragmentReuse", "ReuseGroup", "ReuseVersion"]
