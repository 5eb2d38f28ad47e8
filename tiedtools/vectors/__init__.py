"""Word vectors: reading, writing, checking and editing them."""
