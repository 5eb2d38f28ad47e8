"""Options that several commands share."""

import click


def option(name, *args, **kwargs):
    """A click option that answers to word2vec's `-name` and to `--name`."""
    kwargs.setdefault("show_default", True)
    return click.option(f"-{name}", f"--{name}", *args, **kwargs)
