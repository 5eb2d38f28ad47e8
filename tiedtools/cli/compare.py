"""`tiedtools compare`: how alike two files of vectors are."""

import click

from tiedtools.cli.eval_sim import DIFFERENCE_COLUMNS, set_options
from tiedtools.cli.options import errors_option, format_option, option, read_once


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
@option("top", "-k", type=click.IntRange(min=1), default=10, metavar="N", help="Neighbours of each word.")
@set_options("")
@option("seed", type=click.IntRange(min=0), default=1, help="Seed of the drawing and resampling.")
@format_option
@errors_option
@option("json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(a, b, limit, top, sets, data, oov, case, bootstrap, seed, format, errors, as_json):
    """Compare two files of word vectors, A and B, by the words that both have.

    Either may be `-`, standard input, or a matrix of a model file: MODEL.npz:in or MODEL.npz:out.

    \b
    cosines_rho          Spearman's rho of the cosines of all pairs of --words words (Press and Wolf 2017, Table 4)
    subspace_distance    of the spaces that the columns span (Inan et al. 2017, appendix B): 0 where they are the same
                         or one holds the other, 1 where they are orthogonal
    subspace_random      the same of random spaces of these ranks
    neighbours_shared    the part of a word's N nearest neighbours that is the same, in the mean over at most 1000 words
    neighbours_jaccard   the part of the union of these neighbours that is the same

    With --set, a second table has B's correlation with people less A's, as `tiedtools eval-sim A B`.
    """
    from tiedtools.cli.tables import echo_table, to_json
    from tiedtools.datasets import locate
    from tiedtools.evaluation import comparison, similarity
    from tiedtools.vectors import Vectors

    read_once(a, b)
    sets = locate(sets, data) if sets else {}
    one, two = (Vectors.read(path, format, errors) for path in (a, b))
    found = comparison.compare(one, two, limit, top, seed)
    differences = []
    if sets:
        _, differences = similarity.evaluate([a, b], {a: one, b: two}.get, sets, oov, case, bootstrap, seed)
    if as_json:
        click.echo(to_json({"a": a, "b": b, "seed": seed, **found, "differences": differences}))
        return
    cosines, spaces, near = found["cosines"], found["subspaces"], found["neighbours"]
    settings = {name: found[name] for name in ("words", "words_other", "common")}
    settings |= {"rank": spaces["rank"], "rank_other": spaces["rank_other"], "top": top, "seed": seed}
    click.echo("# " + " ".join(f"{key}={value}" for key, value in settings.items()))
    measures = [
        ("cosines_rho", cosines["rho"], cosines["words"]),
        ("subspace_distance", spaces["distance"], found["common"]),
        ("subspace_random", spaces["random"], found["common"]),
        ("neighbours_shared", near["share"], near["words"]),
        ("neighbours_jaccard", near["jaccard"], near["words"]),
    ]
    columns = ["measure", "value", "words"]
    echo_table(columns, [dict(zip(columns, line)) for line in measures])
    if differences:
        click.echo()
        echo_table(DIFFERENCE_COLUMNS, differences)
