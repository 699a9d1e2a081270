"""Full-text search in a version: segments of indices, and all rows that none describes."""
