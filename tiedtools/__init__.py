"""Word vectors and language models that share their input and output word representations."""

from tiedtools.blas import choose_kernel

__version__ = "0.1.0"

choose_kernel()
