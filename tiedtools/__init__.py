"""Word vectors and language models that share their input and output word representations."""

__version__ = "0.1.0"
