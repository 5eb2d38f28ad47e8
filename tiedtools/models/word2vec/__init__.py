"""CBOW and skip-gram."""
