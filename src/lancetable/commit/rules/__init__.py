"""The conflict rules, one module for each kind of change."""
