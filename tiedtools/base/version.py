"""The version of tiedtools."""

__version__ = "0.2.0.dev0"
