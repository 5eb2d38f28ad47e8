"""Compiled kernels. They take arrays and scalars and write their results into arrays of the caller."""

from tiedtools.base.processor import choose_processor

choose_processor()
