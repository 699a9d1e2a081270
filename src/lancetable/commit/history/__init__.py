"""What each version did, and how two versions differ."""
