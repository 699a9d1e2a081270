"""Encode and decode values, for data files 2.0 to 2.2; no I/O."""
