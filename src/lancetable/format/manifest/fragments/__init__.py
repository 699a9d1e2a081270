"""The fragments that a manifest lists, kept as they are stored until somebody looks at one."""

from lancetable.format.manifest.fragments.edited import EditedFragments

__all__ = ["EditedFragments"]
