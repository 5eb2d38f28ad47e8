"""`tiedtools nn`: the nearest neighbours of words."""

import click

from tiedtools.cli.queries import query_options, respond


@click.command(short_help="Nearest neighbours of words by cosine.")
@query_options("[WORD]...")
def command(top, **options):
    """Print the nearest neighbours of each WORD: the word, the neighbour and their cosine, tab separated.

    Without WORDs they are read from standard input, one a line, and answered as they come. VECTORS is a file of
    word vectors, `-` for standard input or MODEL:out; each file that --with names adds a column of neighbours
    and one of cosines.
    A WORD may be a sum of words, as "king - man + woman" or "san francisco": of their vectors, each at length 1, and
    none of them is its neighbour. Blanks part its words, unless all of it is a word.
    Words are looked up exactly as written; an unknown one is told on standard error, the others are still
    answered, and the exit status is 1. Words that begin with a dash, as -lrb-, stand behind `--`.
    """
    from tiedtools.evaluation.neighbours import neighbours, summands

    def answer(candidates, questions):
        return neighbours(candidates, [word for (word,) in questions], top)

    return respond(1, "neighbours", answer, summands, top=top, **options)
