"""Compiled kernels: arrays and scalars in, results written into arrays that the caller owns."""

from tiedtools.processor import choose_processor

choose_processor()
