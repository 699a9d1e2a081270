"""What the table remembers about its write-ahead log."""
