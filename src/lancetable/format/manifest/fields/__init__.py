"""The schema as a manifest and a transaction store it."""
