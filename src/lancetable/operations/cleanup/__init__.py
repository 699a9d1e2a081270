"""Removing old versions, and the files that no version needs."""
