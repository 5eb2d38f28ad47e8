"""`tiedtools nn`: find the nearest neighbors of words."""

import click

from tiedtools.cli.options import option
from tiedtools.cli.queries import query_options, respond


@click.command(short_help="Find the nearest neighbors of words by cosine similarity.")
@query_options("[WORD]...")
@option(
    "min-count",
    type=click.IntRange(min=0),
    metavar="N",
    help="Leave out answers that occur less often than this in the training text; 0 includes all. Counts are known for"
    " model files and for vectors next to their manifest.  [default: 100, or 4 per million words of a text below 25"
    " million; 0 with --restrict or without counts]",
)
def command(top, min_count, restrict, **options):
    """Print the nearest neighbors of each WORD: the word, the neighbor, and their cosine similarity, tab-separated.

    Without WORD, words are read from standard input, one per line, and answered immediately. VECTORS is a vector file,
    `-` for standard input, or MODEL:out for a model's output vectors; each --with adds a column of neighbors and a
    column of similarities, and a header names the files.

    A WORD with spaces that is not in the vocabulary is a sum, such as "king - man + woman" or "san francisco": the sum
    of its words' unit-length vectors. These words are excluded from its neighbors.

    Rare words are not answers if their counts are known: their vectors are less reliable (--min-count).

    Words are looked up exactly as written. A model trained with `lstm --subwords` composes the vectors of other words,
    which are not answers. Unknown words are reported on stderr; the others are still answered, and the exit status is
    1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.base.messages import log
    from tiedtools.vectors.counts import default_min_count, frequent, word_counts
    from tiedtools.vectors.neighbors import neighbors, summands

    def limit(path, V):
        """Return how many of the V words of a file may be answers; None: all."""
        if min_count == 0 or restrict and min_count is None:
            return restrict
        counts = word_counts(path, V)
        if counts is None:
            if min_count:
                raise click.UsageError(
                    f"--min-count: no word counts for {path}, which is no model and has no manifest; use --restrict"
                )
            return restrict
        least = min_count or default_min_count(counts)
        known = frequent(counts, least)
        if min_count is None and known < V:
            log.info(
                f"{path}: leaving out {V - known:,} of {V:,} words, which occur less than {least} times;"
                " --min-count 0 includes them"
            )
        return min(known, restrict or known)

    def answer(candidates, questions):
        return neighbors(candidates, [word for (word,) in questions], top)

    return respond(1, "neighbors", answer, summands, top=top, restrict=restrict, limit=limit, **options)
