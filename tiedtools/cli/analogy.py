"""`tiedtools analogy`: the word that is to C what B is to A."""

import click

from tiedtools.cli.options import option
from tiedtools.cli.queries import query_options, respond


@click.command(short_help="Answers to analogies: A is to B as C is to what?")
@query_options("[A B C]...")
@option("method", type=click.Choice(["add", "mul"]), default="add", help="3CosAdd or 3CosMul.")
def command(top, method, **options):
    """Print what is to C as B is to A, for every three words A B C: these, the answer and its score, tab separated.

    Without words they are read from standard input, three a line, and answered as they come. VECTORS is a file of
    word vectors, `-` for standard input or MODEL:out; each file that --with names adds a column of answers and
    one of scores.
    The score of an answer d is cos(d, B) - cos(d, A) + cos(d, C), or cos(d, B) cos(d, C) / (cos(d, A) + 0.001) of
    cosines shifted to 0..1 (Levy and Goldberg 2014); A, B and C are no answers.
    Words are looked up exactly as written; an unknown one is told on standard error, the others are still
    answered, and the exit status is 1. Words that begin with a dash, as -lrb-, stand behind `--`.
    """
    from tiedtools.evaluation.analogies import analogies

    def answer(candidates, questions):
        return analogies(candidates, questions, top, method)

    return respond(3, "analogies", answer, lambda word, _: [(word, 1)], top=top, method=method, **options)
