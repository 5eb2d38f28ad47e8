"""`tiedtools nn`: the nearest neighbours of words."""

import click

from tiedtools.cli.options import errors_option, option


@click.command(short_help="Nearest neighbours of words by cosine.")
@click.argument("path", metavar="VECTORS")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@option("top", "-k", type=click.IntRange(min=1), default=10, metavar="N", help="Neighbours of each word.")
@option("restrict", type=click.IntRange(min=1), metavar="N", help="Only the first N words can be neighbours.")
@option("format", type=click.Choice(["text", "binary", "glove", "npy"]), help="Format of VECTORS, else detected.")
@errors_option
@option("json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
@click.pass_context
def command(ctx, path, words, top, restrict, format, errors, as_json):
    """Print the nearest neighbours of each WORD: the word, the neighbour and their cosine, tab separated.

    Without WORDs they are read from standard input, one a line. VECTORS is a file of word vectors, `-` for standard
    input. Words are looked up exactly as written; an unknown one is told on standard error, the others are still
    answered, and the exit status is 1.
    """
    import json
    import sys

    from tiedtools.evaluation.neighbours import neighbours
    from tiedtools.vectors import Vectors

    if not words and path == "-":
        raise click.UsageError("VECTORS comes from standard input, so name the words as arguments", ctx)
    vectors = Vectors.read(path, format, errors)
    if not words:
        lines = sys.stdin.buffer.read().decode("utf-8", "replace").split("\n")
        words = [word for line in lines if (word := line.rstrip("\r"))]
    answers = list(zip(words, neighbours(vectors, words, top, restrict)))
    unknown = [word for word, found in answers if found is None]
    if as_json:
        answered = {word: found for word, found in answers if found is not None}
        settings = {"vectors": path, "top": top, "restrict": restrict}
        click.echo(json.dumps({**settings, "neighbours": answered, "unknown": unknown}))
    else:
        lines = [f"{word}\t{neighbour}\t{cosine:.4f}\n" for word, found in answers for neighbour, cosine in found or []]
        click.echo("".join(lines).encode(), nl=False)
    for word in unknown:
        click.echo(f"tiedtools: {path}: no vector for {word!r}", err=True)
    return 1 if unknown else 0
