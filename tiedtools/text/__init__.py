"""Text sources, their encoding as ids of a vocabulary, and the data sets that the commands know."""
