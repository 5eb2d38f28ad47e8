"""`tiedtools eval-analogy`: evaluate word vectors on analogy questions."""

import click

from tiedtools.cli.options import case_option, data_option, json_option, option, reading_options
from tiedtools.text.sources import read_once

COLUMNS = ["section", "questions", "covered", "correct", "accuracy", "low", "high", "method", "file"]
DIFFERENCE_COLUMNS = [
    "section", "questions", "accuracy", "accuracy_first", "difference", "low", "high", "p", "method", "file"
]  # fmt: skip


@click.command(short_help="Evaluate word vectors on analogy questions.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@option("set", "name", default="google-analogies", metavar="NAME|PATH",
        help="google-analogies, or a file of `a b c d` lines under `: section` lines.")  # fmt: skip
@data_option
@option(
    "method",
    type=click.Choice(["add", "mul", "both"]),
    default="add",
    help="Scoring method: 3CosAdd, 3CosMul, or both.",
)
@option("restrict", type=click.IntRange(min=1), metavar="N",
        help="Use only the first N words, in questions and as answers; word2vec's script uses 30000.")  # fmt: skip
@case_option
@reading_options
@json_option("Print one JSON object instead of tables.")
def command(files, name, data, method, restrict, case, format, errors, skip_bad, as_json):
    """Print the accuracy on analogy questions: a is to b as c is to d.

    VECTORS is a vector file, `-` for standard input, or MODEL:out for a model's output vectors. A question is covered
    if all four words have vectors; other questions are skipped. The answer is the word x with the highest score, a, b,
    and c excluded, and is correct if it is d. The score is cos(x, b) - cos(x, a) + cos(x, c) (3CosAdd), or cos(x, b)
    cos(x, c) / (cos(x, a) + 0.001) with cosines shifted to 0..1 (3CosMul; Levy and Goldberg 2014).

    The table has a line for each section, for all semantic and all syntactic sections, and for the total: number of
    questions, covered questions, correct answers, accuracy on covered questions (`nan` if there are none), and its 95%
    Wilson interval. Sections whose names begin with "gram" count as syntactic, the others as semantic.

    With several files, a second table compares each file with the first, on the questions covered by both: the
    difference in accuracy, its 95% interval (Bonett and Price, paired proportions), and the two-sided p-value of
    McNemar's exact test. All intervals and p-values assume independent questions; since questions share words, the true
    uncertainty is larger.

    word2vec's compute-accuracy and gensim uppercase all words: an answer in another case is correct, and the first of
    several words that differ only in case represents them all in questions.
    """
    from tiedtools.base.messages import to_json
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.analogysets import evaluate, read_set
    from tiedtools.evaluation.similarity import INTERVAL
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors, refuse_absent

    read_once(*files)
    refuse_absent(files, format)
    ((_, path),) = locate([name], data).items()
    methods = ["add", "mul"] if method == "both" else [method]
    results, differences = evaluate(
        files, lambda file: Vectors.read(file, format, errors, skip_bad), read_set(path), methods, restrict, case
    )
    policy = {"set": name, "restrict": restrict, "case": case, "interval": INTERVAL}
    if as_json:
        click.echo(to_json({**policy, "set_path": str(path), "results": results, "differences": differences}))
        return
    click.echo("# " + " ".join(f"{key}={value}" for key, value in policy.items() if value is not None))
    echo_table(COLUMNS, list(in_lines(results)))
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, list(in_lines(differences)))


def in_lines(results):
    """Yield a dict for each section of each result."""
    for result in results:
        yield from ({**line, "method": result["method"], "file": result["file"]} for line in result["sections"])
