"""`tiedtools eval-sim`: evaluate word vectors on word-similarity sets."""

import click

from tiedtools.cli.options import (
    case_option,
    data_option,
    json_option,
    option,
    reading_options,
    together,
)
from tiedtools.text.sources import read_once

COLUMNS = ["set", "pairs", "covered", "oov_words", "rho", "low", "high", "file"]
DIFFERENCE_COLUMNS = ["set", "pairs", "rho", "rho_first", "difference", "low", "high", "p", "file"]


def set_options(default):
    """Return the options shared by commands that use similarity sets; `default` is appended to the help of --set."""
    return together(
        option(
            "set",
            "sets",
            multiple=True,
            metavar="NAME|PATH",
            help="Similarity set: simlex, men, rw, verb143, mturk771, simverb, ws353-sim, ws353-rel, mturk287 (see"
            " `tiedtools data get`), or a file of `word word score` lines; repeatable." + default,
        ),
        data_option,
        option(
            "oov",
            type=click.Choice(["skip", "zero", "mean", "compose"]),
            default="skip",
            help="Pairs with an out-of-vocabulary word: skip them, use cosine 0, use the mean of all vectors for the"
            " word, or compose its vector with a model trained with `lstm --subwords`.",
        ),
        case_option,
        option(
            "bootstrap",
            type=click.IntRange(0, 10**7),
            default=1000,
            metavar="N",
            help="Number of bootstrap resamples for each 95% interval, and of permutations for each p-value; 0 disables"
            " both.",
        ),
    )


@click.command(short_help="Evaluate word vectors on word-similarity sets.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@set_options("  [default: all named sets that are found; if none is, all are downloaded]")
@option("seed", type=click.IntRange(min=0), default=1, help="Random seed of the resamples and permutations.")
@reading_options
@json_option("Print one JSON object instead of tables.")
def command(files, sets, data, oov, case, bootstrap, seed, format, errors, skip_bad, as_json):
    """Evaluate word vectors: print Spearman's rho between cosine similarities and human similarity scores.

    VECTORS is a vector file, `-` for standard input, or a saved model: MODEL for its input vectors, MODEL:out for its
    output vectors. The table has a line for each set: number of pairs, covered pairs (both words have a vector),
    out-of-vocabulary words (also if composed), rho (ties share their average rank), and the bounds of its 95%
    bootstrap confidence interval. If there are several sets, the line `mean` is the unweighted mean over them. An
    undefined rho is `nan`; the reason is on stderr. A resample with undefined rho counts as -1 for the lower bound and
    as 1 for the upper.

    With several files, a second table compares each file with the first on the pairs covered by both: the difference
    in rho, its paired bootstrap interval, and the two-sided p-value of a paired permutation test. With several sets,
    the line `mean` compares the means over the sets.
    """
    from tiedtools.base.messages import to_json
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.similarity import INTERVAL, evaluate
    from tiedtools.models.composing import needed
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors, refuse_absent

    read_once(*files)
    refuse_absent(files, format)  # before sets are downloaded
    sets = locate(sets, data)
    read = lambda file: Vectors.read(file, format, errors, skip_bad)
    results, differences = evaluate(files, read, sets, oov, case, bootstrap, seed, needed)
    policy = {"oov": oov, "case": case, "bootstrap": bootstrap, "seed": seed, "interval": INTERVAL}
    if as_json:
        paths = {name: str(path) for name, path in sets.items()}
        click.echo(to_json({**policy, "set_paths": paths, "results": results, "differences": differences}))
        return
    click.echo("# " + " ".join(f"{key}={value}" for key, value in policy.items()))
    lines = []
    for result in results:
        lines += [{**line, "file": result["file"]} for line in result["sets"]]
        means = {figure: result[f"mean_{figure}"] for figure in ("rho", "low", "high")}
        if len(sets) > 1:
            lines.append({"set": "mean", **means, "file": result["file"]})
    echo_table(COLUMNS, lines)
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, differences)
