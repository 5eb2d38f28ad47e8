"""The version of tiedtools."""

__version__ = "1.0.0.dev0"
