"""Crafted tables and files: nothing outside the table is read, written or called."""
