"""Functions that predicates and computed columns call."""
