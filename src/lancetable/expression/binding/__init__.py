"""Expressions fitted to the columns of a schema."""
