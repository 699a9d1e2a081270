"""The fragments that a manifest lists, kept as they are stored until one is read."""

from lancetable.format.manifest.fragments.edited import EditedFragments

__all__ = ["EditedFragments"]
