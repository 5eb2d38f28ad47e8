"""`tiedtools data`: get public test sets and texts and find them again."""

import click

from tiedtools.cli.options import data_option, json_option, option

NAMES = "`tiedtools data list` shows the names; wordsim, ptb, wikitext2 and multi30k stand for all sets of that kind."


def complete(ctx, parameter, incomplete):
    from tiedtools.text.datasets import DATASETS, groups

    return [name for name in (*groups(), *DATASETS) if name.startswith(incomplete)]


names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete)


@click.group(short_help="Download public test sets and texts and find them.")
def command():
    """Download public test sets and texts and find them.

    A set is looked for in --data, then in TIEDTOOLS_DATA, then among the downloads in TIEDTOOLS_CACHE (default: a
    tiedtools folder in the user's cache); in each as GROUP/FILE and as FILE, plain or compressed.
    """


@command.command(epilog=NAMES)
@names_argument
@option("to", type=click.Path(file_okay=False), help="Folder to put them in, as GROUP/FILE, instead of the cache.")
def get(names, to):
    """Download sets, check their SHA-256, unpack them where they are packed, and print their paths.

    What is there already and unchanged is not fetched again. TIEDTOOLS_MIRROR, a base URL or a folder, replaces the
    sources: it has the files under the last parts of their addresses. Needs pooch: pip install "tiedtools[data]".
    """
    from tiedtools.text import datasets

    for name in datasets.expand(names):
        click.echo(datasets.download(name, to))


@command.command("list", short_help="List the sets and where they were found.")
@data_option
@json_option("Print one JSON object, which has the URL and the SHA-256, too.")
def list_sets(data, as_json):
    """List the sets: name, GROUP/FILE, bytes to download, licence, and the path where it was found, or `-`.

    Tab separated. The licence is what is known of it, for you to check.
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
        click.echo("\t".join([name, entry.file, str(entry.size or "-"), entry.licence, str(found[name] or "-")]))


@command.command(epilog=NAMES)
@names_argument
@data_option
def path(names, data):
    """Print the path of each set, one a line."""
    from tiedtools.text import datasets

    for found in datasets.locate(datasets.expand(names), data).values():
        click.echo(found)
