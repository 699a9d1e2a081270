"""Change feed: the rows that changed between two versions of a table."""
