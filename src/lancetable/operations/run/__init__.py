"""Run the steps of an operation, again after conflicts, within a memory limit."""
