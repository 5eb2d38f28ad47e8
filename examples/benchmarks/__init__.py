"""Benchmarks of training and translation speed: python examples/benchmarks COMMAND [OPTIONS]."""
