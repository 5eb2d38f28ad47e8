"""`tiedtools analogy`: solve analogies, A is to B as C is to what."""

import click

from tiedtools.cli.options import option
from tiedtools.cli.queries import query_options, respond


@click.command(short_help="Solve analogies: A is to B as C is to what?")
@query_options("[A B C]...")
@option("method", type=click.Choice(["add", "mul"]), default="add", help="Scoring method: 3CosAdd or 3CosMul.")
def command(top, method, **options):
    """Print the words that are to C as B is to A: for each triple A B C, the answer and its score, tab-separated.

    Without words, triples are read from standard input, one per line, and answered immediately. VECTORS is a vector
    file, `-` for standard input, or MODEL:out for a model's output vectors; each --with adds a column of answers and a
    column of scores, and a header names the files.

    The score of an answer d is cos(d, B) - cos(d, A) + cos(d, C) (3CosAdd), or cos(d, B) cos(d, C) / (cos(d, A) +
    0.001) with cosines shifted to 0..1 (3CosMul; Levy and Goldberg 2014). A, B, and C are excluded from the answers.

    Words are looked up exactly as written. A model trained with `lstm --subwords` composes the vectors of other words,
    which are not answers. Unknown words are reported on stderr; the others are still answered, and the exit status is
    1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.analogies import analogies

    def answer(candidates, questions):
        return analogies(candidates, questions, top, method)

    return respond(3, "analogies", answer, lambda word, _: [(word, 1)], top=top, method=method, **options)
