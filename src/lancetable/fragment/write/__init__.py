"""Write new fragments."""
