"""From data to fragments: sources, types, schemas and new data files."""
