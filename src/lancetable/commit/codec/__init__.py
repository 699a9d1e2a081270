"""Transactions between their messages and values."""
