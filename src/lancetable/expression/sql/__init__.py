"""SQL text as expressions."""
