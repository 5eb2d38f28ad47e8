"""`tiedtools compare`: how alike two files of vectors are."""

import click

from tiedtools.cli.eval_sim import DIFFERENCE_COLUMNS, set_options
from tiedtools.cli.options import errors_option, format_option, json_option, option
from tiedtools.text.sources import read_once


@click.command(short_help="How alike two sets of word vectors are.")
@click.argument("a")
@click.argument("b")
@option(
    "words",
    "limit",
    type=click.IntRange(min=2),
    default=10_000,
    metavar="N",
    help="Words whose pairs are ranked: all that A and B share, or N drawn from them if they are more.",
)
@option("top", also="k", type=click.IntRange(min=1), default=10, metavar="N", help="Neighbours of each word.")
@set_options("")
@option("seed", type=click.IntRange(min=0), default=1, help="Seed of the drawing and resampling.")
@format_option
@errors_option
@json_option("Print one JSON object instead of tables.")
def command(a, b, limit, top, sets, data, oov, case, bootstrap, seed, format, errors, as_json):
    """Compare two files of word vectors, A and B, by the words that both have.

    Either may be `-`, standard input, or a matrix of a model file: MODEL:in or MODEL:out.

    \b
    cosines_rho          Spearman's rho of the cosines of all pairs of --words words (Press and Wolf 2017, Table 4)
    subspace_distance    of the spaces that the columns span (Inan et al. 2017, appendix B): 0 where they are the same
                         or one holds the other, 1 where they are orthogonal
    subspace_random      the same of random spaces of these ranks
    neighbours_shared    the part of a word's N nearest neighbours that is the same, in the mean over at most 1000 words
    neighbours_jaccard   the part of the union of these neighbours that is the same

    low and high bound the 95% interval of what the figure would be on all words that both have, and are `-` where all
    were taken: of rho by how much each word moves it (the infinitesimal jackknife, since pairs share words), of
    neighbours by how words differ.

    With --set, a second table has B's correlation with people less A's, as `tiedtools eval-sim A B`.
    """
    from tiedtools.cli.tables import echo_table
    from tiedtools.evaluation import comparison, similarity
    from tiedtools.figures import to_json
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    read_once(a, b)
    sets = locate(sets, data) if sets else {}
    one, two = (Vectors.read(path, format, errors) for path in (a, b))
    found = comparison.compare(one, two, limit, top, seed)
    differences = []
    if sets:
        _, differences = similarity.evaluate([a, b], {a: one, b: two}.get, sets, oov, case, bootstrap, seed)
    policy = {"seed": seed, "interval": similarity.INTERVAL}
    if sets:
        policy |= {"oov": oov, "case": case, "bootstrap": bootstrap}
    if as_json:
        paths = {name: str(path) for name, path in sets.items()}
        click.echo(to_json({"a": a, "b": b, **policy, "set_paths": paths, **found, "differences": differences}))
        return
    cosines, spaces, near = found["cosines"], found["subspaces"], found["neighbours"]
    settings = {name: found[name] for name in ("words", "words_other", "common")}
    settings |= {"rank": spaces["rank"], "rank_other": spaces["rank_other"], "top": top, **policy}
    click.echo("# " + " ".join(f"{key}={value}" for key, value in settings.items()))
    lines = [
        {"measure": "cosines_rho", **cosines, "value": cosines["rho"]},
        {"measure": "subspace_distance", "value": spaces["distance"], "words": found["common"]},
        {"measure": "subspace_random", "value": spaces["random"], "words": found["common"]},
        {"measure": "neighbours_shared", **near["share"], "words": near["words"]},
        {"measure": "neighbours_jaccard", **near["jaccard"], "words": near["words"]},
    ]
    echo_table(["measure", "value", "low", "high", "words"], lines)
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, differences)
