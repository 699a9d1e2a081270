"""Ways to select the rows of a window that match a predicate."""
