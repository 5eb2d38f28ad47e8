"""`tiedtools compare`: measure the similarity of two sets of word vectors."""

import click

from tiedtools.cli.eval_sim import DIFFERENCE_COLUMNS, set_options
from tiedtools.cli.options import json_option, option, reading_options
from tiedtools.text.sources import read_once


@click.command(short_help="Measure the similarity of two sets of word vectors.")
@click.argument("a")
@click.argument("b")
@option(
    "words",
    "limit",
    type=click.IntRange(min=2),
    default=10_000,
    metavar="N",
    help="Maximum number of shared words whose pairs are ranked; a random sample if there are more.",
)
@option(
    "top", also="k", type=click.IntRange(min=1), default=10, metavar="N", help="Number of nearest neighbors per word."
)
@set_options("")
@option("seed", type=click.IntRange(min=0), default=1, help="Random seed of sampling and resampling.")
@reading_options
@json_option("Print one JSON object instead of tables.")
def command(a, b, limit, top, sets, data, oov, case, bootstrap, seed, format, errors, skip_bad, as_json):
    """Compare two files of word vectors, A and B, on the words they share.

    A or B may be `-` for standard input, or a matrix of a model file, MODEL:in or MODEL:out.

    \b
    cosines_rho          Spearman's rho of the cosines of all pairs of --words words (Press and Wolf 2017, Table 4)
    subspace_distance    distance between the column spaces (Inan et al. 2017, appendix B): 0 if they are equal or one
                         contains the other, 1 if they are orthogonal
    subspace_random      expected distance between random spaces of the same ranks
    neighbors_shared     proportion of a word's N nearest neighbors found in both, mean over at most 1000 words
    neighbors_jaccard    Jaccard index of these sets of neighbors, mean over the same words

    low and high bound the 95% confidence interval of the value on all shared words; they are `-` if all words were
    used. The interval of rho is from the infinitesimal jackknife (pairs share words), that of the neighbor measures
    from their variance over words.

    With --set, a second table compares B with A on similarity sets, as `tiedtools eval-sim A B`.
    """
    from tiedtools.base.messages import to_json
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation import comparison, similarity
    from tiedtools.models.composing import needed
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    read_once(a, b)
    sets = locate(sets, data) if sets else {}
    one, two = (Vectors.read(path, format, errors, skip_bad) for path in (a, b))
    found = comparison.compare(one, two, limit, top, seed)
    differences = []
    if sets:
        _, differences = similarity.evaluate([a, b], {a: one, b: two}.get, sets, oov, case, bootstrap, seed, needed)
    policy = {"seed": seed, "interval": similarity.INTERVAL}
    if sets:
        policy |= {"oov": oov, "case": case, "bootstrap": bootstrap}
    if as_json:
        paths = {name: str(path) for name, path in sets.items()}
        click.echo(to_json({"a": a, "b": b, **policy, "set_paths": paths, **found, "differences": differences}))
        return
    cosines, spaces, near = found["cosines"], found["subspaces"], found["neighbors"]
    settings = {name: found[name] for name in ("words", "words_other", "common")}
    settings |= {"rank": spaces["rank"], "rank_other": spaces["rank_other"], "top": top, **policy}
    click.echo("# " + " ".join(f"{key}={value}" for key, value in settings.items()))
    lines = [
        {"measure": "cosines_rho", **cosines, "value": cosines["rho"]},
        {"measure": "subspace_distance", "value": spaces["distance"], "words": found["common"]},
        {"measure": "subspace_random", "value": spaces["random"], "words": found["common"]},
        {"measure": "neighbors_shared", **near["share"], "words": near["words"]},
        {"measure": "neighbors_jaccard", **near["jaccard"], "words": near["words"]},
    ]
    echo_table(["measure", "value", "low", "high", "words"], lines)
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, differences)
