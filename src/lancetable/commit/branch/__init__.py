"""Create and delete branches and clones."""
