"""Rewrite small or heavily deleted fragments into fewer, larger ones."""
