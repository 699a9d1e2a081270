"""Merge a source into a table on key columns."""
