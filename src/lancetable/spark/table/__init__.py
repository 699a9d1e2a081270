"""LanceTable: the operations of a table on Spark."""
