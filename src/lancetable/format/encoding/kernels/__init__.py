"""Plain functions on NumPy arrays that do the heavy work of decoding."""
