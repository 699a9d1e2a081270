"""Keys of rows: compare, join, buffer and spill them."""
