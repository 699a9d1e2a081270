"""One fragment of a manifest or a transaction, between its message and its value."""
