"""Find vectors near others: exactly, and in the segments of vector indices."""
