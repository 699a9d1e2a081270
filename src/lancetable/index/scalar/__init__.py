"""Kinds of index on plain values."""
