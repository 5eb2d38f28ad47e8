"""Compiled kernels: arrays and scalars in, results written into arrays that the caller owns."""
