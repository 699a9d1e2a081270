"""Changes that each version made, and differences between two versions."""
