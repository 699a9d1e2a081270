"""Merge data frames into tables."""
