"""`tiedtools nn`: find the nearest neighbors of words."""

import click

from tiedtools.cli.queries import query_options, respond


@click.command(short_help="Find the nearest neighbors of words by cosine similarity.")
@query_options("[WORD]...")
def command(top, **options):
    """Print the nearest neighbors of each WORD: the word, the neighbor, and their cosine similarity, tab-separated.

    Without WORD, words are read from standard input, one per line, and answered immediately. VECTORS is a vector file,
    `-` for standard input, or MODEL:out for a model's output vectors; each --with adds a column of neighbors and a
    column of similarities.

    A WORD with spaces that is not in the vocabulary is a sum, such as "king - man + woman" or "san francisco": the sum
    of its words' unit-length vectors. These words are excluded from its neighbors.

    Words are looked up exactly as written. A model trained with `lstm --subwords` composes the vectors of other words,
    which are not answers. Unknown words are reported on stderr; the others are still answered, and the exit status is
    1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.neighbors import neighbors, summands

    def answer(candidates, questions):
        return neighbors(candidates, [word for (word,) in questions], top)

    return respond(1, "neighbors", answer, summands, top=top, **options)
