"""Create, optimize and drop indices."""
