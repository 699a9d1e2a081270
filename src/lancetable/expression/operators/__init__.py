"""Comparisons, arithmetic and casts of Arrow values."""
