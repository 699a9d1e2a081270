"""Add, drop, rename, reorder, cast and replace columns."""
