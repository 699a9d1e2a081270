"""Read versions, changes and their schemas in Spark."""
