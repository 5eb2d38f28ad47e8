"""Compiled kernels. They take arrays and scalars and write their results into arrays that the caller owns."""

from tiedtools.base.processor import choose_processor

choose_processor()
