"""`tiedtools data`: get the published test sets and find them again."""

import click

from tiedtools.cli.options import option

NAMES = "NAME is simlex, men, rw, verb143, mturk771, or wordsim for all five."
data_option = option("data", type=click.Path(exists=True, file_okay=False), help="Look in this folder first.")


@click.group(short_help="Download the published test sets and find them.")
def command():
    """Download the published test sets and find them.

    A set is looked for in --data, then in TIEDTOOLS_DATA, in each as wordsim/FILE and as FILE, then among the
    downloads in TIEDTOOLS_CACHE (default: a tiedtools folder in the user's cache).
    """


@command.command(epilog=NAMES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@option("to", type=click.Path(file_okay=False), help="Folder to put them in instead of the cache.")
def get(names, to):
    """Download sets, check them, and print their paths.

    What is there already and unchanged is not fetched again. TIEDTOOLS_MIRROR, a base URL or a folder, replaces the
    source. Needs pooch: pip install "tiedtools[data]".
    """
    from tiedtools import datasets

    for name in datasets.expand(names):
        click.echo(datasets.download(name, to))


@command.command("list", short_help="List the sets and where they were found.")
@data_option
def list_sets(data):
    """List the sets: name, file, and the path where it was found, or `-`; tab separated."""
    from tiedtools import datasets

    for name, (file, _) in datasets.WORDSIM.items():
        click.echo(f"{name}\t{file}\t{datasets.find(name, data) or '-'}")


@command.command(epilog=NAMES)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@data_option
def path(names, data):
    """Print the path of each set, one a line."""
    from tiedtools import datasets

    for found in datasets.locate(datasets.expand(names), data).values():
        click.echo(found)
