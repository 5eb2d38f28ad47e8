"""Text sources, their encoding as vocabulary ids, and named data sets."""
