"""How values become bytes and back, for data files 2.0 to 2.2; no I/O."""
