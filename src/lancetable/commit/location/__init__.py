"""Where the versions of a table are recorded, and how one is claimed."""
