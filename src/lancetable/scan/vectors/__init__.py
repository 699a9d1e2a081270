"""Search of vectors in a version: segments of indices, and all rows that none describes."""
