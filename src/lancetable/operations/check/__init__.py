"""Finding damage in a table, and making a version without it."""
