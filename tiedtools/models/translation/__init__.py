"""Translation with attention, and shared embeddings on both sides."""
