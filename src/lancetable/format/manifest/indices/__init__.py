"""The index segments that a manifest lists."""
