"""Text: tokens, numbers, and similarities of vectors."""
