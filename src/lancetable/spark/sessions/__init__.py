"""Sessions: create one, register the data source, show progress."""
