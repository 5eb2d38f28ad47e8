"""`tiedtools lstm`: see lm.py, which has both commands."""

from tiedtools.cli.lm import lstm as command

__all__ = ["command"]
