"""`tiedtools eval-analogy`: analogy questions put to one or more files of vectors."""

import click

from tiedtools.cli.options import case_option, data_option, errors_option, format_option, json_option, option
from tiedtools.text.sources import read_once

COLUMNS = ["section", "questions", "covered", "correct", "accuracy", "low", "high", "method", "file"]
DIFFERENCE_COLUMNS = [
    "section", "questions", "accuracy", "accuracy_first", "difference", "low", "high", "p", "method", "file"
]  # fmt: skip


@click.command(short_help="Share of analogy questions that word vectors answer.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@option("set", "name", default="google-analogies", metavar="NAME|PATH",
        help="google-analogies, or a file of `a b c d` lines under `: section` lines.")  # fmt: skip
@data_option
@option("method", type=click.Choice(["add", "mul", "both"]), default="add", help="3CosAdd, 3CosMul or both.")
@option("restrict", type=click.IntRange(min=1), metavar="N",
        help="Only the first N words count, in questions and as answers; word2vec's script has 30000.")  # fmt: skip
@case_option
@format_option
@errors_option
@json_option("Print one JSON object instead of tables.")
def command(files, name, data, method, restrict, case, format, errors, as_json):
    """Accuracy on analogy questions: a is to b as c is to d.

    VECTORS are files of word vectors, `-` for standard input, MODEL:out for a model's output vectors. A question
    is covered where its four words have vectors, and only such count. The answer is the word with the best score of
    all but a, b and c, which are never answers, and it is right if it is d. The score is cos(x, b) - cos(x, a) +
    cos(x, c), or cos(x, b) cos(x, c) / (cos(x, a) + 0.001) of cosines shifted to 0..1 (3CosAdd and 3CosMul of Levy
    and Goldberg 2014).

    Each section has a line, as have the semantic ones together, the syntactic ones (named gram...) and the total: its
    questions, those covered, the correct ones, their share of those covered, and its 95% interval (Wilson's, of
    independent questions; these share words, so that the truth is less certain). It is `nan` where nothing is covered.

    With several files, a second table has each later file's accuracy less the first's, both on the questions that both
    cover, the 95% interval of that difference (Bonett and Price's, of paired proportions), and p, the two-sided
    probability of so large a difference if the files were alike (McNemar's exact test). Both take questions for
    independent, too.

    word2vec's compute-accuracy and gensim upper-case all words, so that a word in another case is right, and the first
    of words that differ in case only stands for all of them in questions.
    """
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.analogysets import evaluate, read_set
    from tiedtools.evaluation.similarity import INTERVAL
    from tiedtools.figures import to_json
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    read_once(*files)
    ((_, path),) = locate([name], data).items()
    methods = ["add", "mul"] if method == "both" else [method]
    results, differences = evaluate(
        files, lambda file: Vectors.read(file, format, errors), read_set(path), methods, restrict, case
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
    """A dict for each section of each result."""
    for result in results:
        yield from ({**line, "method": result["method"], "file": result["file"]} for line in result["sections"])
