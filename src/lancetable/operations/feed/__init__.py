"""What changed between two versions of a table, row by row."""
