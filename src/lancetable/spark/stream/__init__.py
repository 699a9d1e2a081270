"""Streaming source and sink."""
