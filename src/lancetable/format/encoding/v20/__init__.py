"""Pages of 2.0 files: one array encoding each, structs and lists in columns of their own."""
