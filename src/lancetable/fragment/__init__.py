"""The rows of one fragment: data files put side by side, deleted rows left out, row ids added."""
