"""Word vectors and language models with tied input and output embeddings."""

__version__ = "0.1.0"
