"""The SQL of predicates and computed columns."""
