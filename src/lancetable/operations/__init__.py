"""Recipes that change a table: plan, run, commit; one per module."""
