"""Index segments: open their files and find the rows that part of a predicate selects."""
