"""Parsing of command lines without running them."""

import click

from tiedtools.cli import cli


def context(name, *args):
    """Return the context of subcommand `name` with `args`, as `tiedtools` makes it."""
    parent = click.Context(cli, **cli.context_settings)  # click keeps the options of --help that it sees first
    return cli.get_command(parent, name).make_context(name, [str(arg) for arg in args], parent=parent)
