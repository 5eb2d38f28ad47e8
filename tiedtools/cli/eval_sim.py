"""`tiedtools eval-sim`: word similarity of one or more files of vectors."""

import click

from tiedtools.cli.options import (
    case_option,
    data_option,
    errors_option,
    format_option,
    json_option,
    option,
    together,
)
from tiedtools.text.sources import read_once

COLUMNS = ["set", "pairs", "covered", "oov_words", "rho", "low", "high", "file"]
DIFFERENCE_COLUMNS = ["set", "pairs", "rho", "rho_first", "difference", "low", "high", "p", "file"]


def set_options(default):
    """What the commands that score vectors on similarity sets share; `default` ends the help of --set."""
    return together(
        option(
            "set",
            "sets",
            multiple=True,
            metavar="NAME|PATH",
            help="simlex, men, rw, verb143, mturk771, or a file of `word word score` lines; may be repeated." + default,
        ),
        data_option,
        option(
            "oov",
            type=click.Choice(["skip", "zero", "mean"]),
            default="skip",
            help="A pair with an unknown word: leave it out, give it cosine 0, or use the mean of all vectors as the"
            " word's.",
        ),
        case_option,
        option(
            "bootstrap",
            type=click.IntRange(0, 10**7),
            default=1000,
            metavar="N",
            help="Resamples behind each 95% interval and each p; 0: neither.",
        ),
    )


@click.command(short_help="Rank correlation of word vectors with human similarity scores.")
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@set_options("  [default: every named set that is found]")
@option("seed", type=click.IntRange(min=0), default=1, help="Seed of the resampling.")
@format_option
@errors_option
@json_option("Print one JSON object instead of tables.")
def command(files, sets, data, oov, case, bootstrap, seed, format, errors, as_json):
    """Spearman correlation of cosines with human similarity scores.

    VECTORS are files of word vectors, `-` for standard input, MODEL:out for a model's output vectors. Each set
    has a line with its pairs, the pairs covered (both words have a vector), the words without a vector, rho with
    average ranks, and its 95% interval from resampling the pairs; `mean` is the plain mean of rho over the sets, and
    its interval that of resampling each. rho is `nan` where it is undefined; a resample in which it is so counts as -1
    and as 1.

    With several files, a second table has each later file's rho less the first's, both taken on the pairs that count
    for both files, the interval of that difference from paired resampling, and p, the two-sided probability of so large
    a difference if the files were alike, from N exchanges of their ranks at random (a paired permutation test); of
    several sets, a line `mean` has the same of the mean over them.
    """
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation.similarity import INTERVAL, evaluate
    from tiedtools.figures import to_json
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    read_once(*files)
    sets = locate(sets, data)
    results, differences = evaluate(files, lambda f: Vectors.read(f, format, errors), sets, oov, case, bootstrap, seed)
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
        lines.append({"set": "mean", **means, "file": result["file"]})
    echo_table(COLUMNS, lines)
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, differences)
