"""Transactions as they are written."""
