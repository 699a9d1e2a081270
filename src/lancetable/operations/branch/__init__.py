"""Bring changes of a branch to its parent."""
