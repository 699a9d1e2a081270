"""Places that record the versions of a table, and ways to claim the next one."""
