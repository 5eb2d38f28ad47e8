"""`tiedtools data`: download and locate public data sets."""

import click

from tiedtools.cli.options import data_option, json_option, option

NAMES = "`tiedtools data list` lists the names; wordsim, ptb, wikitext2, and multi30k are groups of sets."


def complete(ctx, parameter, incomplete):
    """Return the names of sets and groups that start with `incomplete`, for shell completion."""
    from tiedtools.text.datasets import DATASETS, groups

    return [name for name in (*groups(), *DATASETS) if name.startswith(incomplete)]


names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete)


@click.group(short_help="Download and locate public test sets and texts.")
def command():
    """Download and locate public test sets and texts.

    Sets are searched for in --data, in TIEDTOOLS_DATA, and among the downloads in TIEDTOOLS_CACHE (default: a tiedtools
    folder in the user's cache), in this order; in each as GROUP/FILE and as FILE, plain or compressed.
    """


@command.command(epilog=NAMES)
@names_argument
@option("to", type=click.Path(file_okay=False), help="Save to this folder, as GROUP/FILE, instead of the cache.")
def get(names, to):
    """Download data sets, verify their SHA-256, unpack them if packed, and print their paths.

    Files that exist unchanged are not downloaded again. TIEDTOOLS_MIRROR, a base URL or a folder, replaces the sources;
    it contains the files under the last component of their URLs.
    """
    from tiedtools.text import datasets

    for name in datasets.expand(names):
        click.echo(datasets.download(name, to))


@command.command("list", short_help="List the data sets and their locations.")
@data_option
@json_option("Print one JSON object, which includes URL and SHA-256.")
def list_sets(data, as_json):
    """List the data sets, tab-separated: name, GROUP/FILE, download size in bytes, license, and local path or `-`.

    The license is given to the best of our knowledge; verify it before use.
    """
    import dataclasses
    import json

    from tiedtools.text.datasets import DATASETS, find

    found = {name: find(name, data) for name in DATASETS}
    if as_json:
        path = lambda name: None if found[name] is None else str(found[name])
        sets = {name: {**dataclasses.asdict(entry), "path": path(name)} for name, entry in DATASETS.items()}
        click.echo(json.dumps(sets))
        return
    for name, entry in DATASETS.items():
        click.echo("\t".join([name, entry.file, str(entry.size or "-"), entry.license, str(found[name] or "-")]))


@command.command(epilog=NAMES)
@names_argument
@data_option
def path(names, data):
    """Print the paths of data sets, one per line."""
    from tiedtools.text import datasets

    for found in datasets.locate(datasets.expand(names), data).values():
        click.echo(found)
