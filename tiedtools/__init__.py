"""Word vectors and language models that share their input and output word representations."""

from tiedtools.processor import choose_processor

__version__ = "0.1.0"

choose_processor()
