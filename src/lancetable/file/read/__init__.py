"""Read rows and columns of a data file."""
