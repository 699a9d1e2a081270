"""Find, mark and move rows of fragments."""
