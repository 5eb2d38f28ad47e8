"""`tiedtools plot`: pictures of training runs, of words, and of similarity."""

import click

from tiedtools.cli.options import case_option, data_option, errors_option, format_option, option
from tiedtools.text.sources import read_once

output_option = option("output", required=True, metavar="FILE", help="The picture; the name ends in .png or .svg.")


@click.group(short_help="Pictures of training runs, of words, and of similarity.")
def command():
    """Draw a picture, PNG or SVG by the name of the output.

    Needs Matplotlib: pip install "tiedtools[plot]".
    """


@command.command(short_help="How training runs went.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@output_option
@option(
    "y",
    multiple=True,
    type=click.Choice(["valid_ppl", "train_ppl", "loss"]),
    help="What to draw; may be repeated.  [default: the first of these that all logs have]",
)
@option("x", type=click.Choice(["epoch", "seconds"]), default="epoch", help="Against what.")
def curves(logs, output, y, x):
    """Draw the perplexity or the loss of training runs, epoch by epoch, from what --log-json wrote.

    Perplexities have a logarithmic axis. A dot marks the best epoch of each.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_log

    read_once(*logs)
    with pictures.picture(output) as axes:
        runs = [(log, read_log(log)) for log in logs]
        pictures.curves(axes, runs, list(dict.fromkeys(y)) or [pictures.common_figure(runs)], x)


@command.command(short_help="Means of a table's figures, with their spread.")
@click.argument("table", metavar="TABLE")
@output_option
@option("x", required=True, metavar="COLUMN", help="Horizontal axis.")
@option("y", required=True, metavar="COLUMN", help="Vertical axis: the mean of the lines with the same X.")
@option("by", metavar="COLUMN", help="Draw one line for each value of COLUMN.")
def means(table, output, x, y, by):
    """Draw the mean of a figure over several runs, with error bars of one standard deviation.

    TABLE is tab-separated, a run each line, with the names of its columns in the first line; - is standard input.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_points

    with pictures.picture(output) as axes:
        pictures.means(axes, read_points(table, x, y, by), (x, y))


@command.command(short_help="A map of words.")
@click.argument("path", metavar="VECTORS")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@output_option
@option(
    "top", also="k", type=click.IntRange(min=0), default=0, metavar="N", help="Nearest neighbours of each WORD, too."
)
@option("first", type=click.IntRange(min=3), default=100, metavar="N", help="Without WORDs: the first N of VECTORS.")
@option(
    "method",
    type=click.Choice(["pca", "tsne"]),
    default="pca",
    help="Principal components, or t-SNE, which needs scikit-learn.",
)
@option("seed", type=click.IntRange(min=0, max=2**32 - 1), default=1, help="Seed of t-SNE.")
@format_option
@errors_option
def words(path, words, output, top, first, method, seed, format, errors):
    """Draw a map in which words with like vectors lie together.

    Without WORDs these are the first of VECTORS, in most files the most frequent. Vectors are scaled to unit length. An
    unknown word is told on standard error, the others are still drawn, and the exit status is 1.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.components import word_map
    from tiedtools.evaluation.neighbours import Candidates, neighbours
    from tiedtools.vectors.vectors import Vectors

    with pictures.picture(output, 8) as axes:
        vectors = Vectors.read(path, format, errors)
        unknown = [word for word in words if word not in vectors]
        for word in unknown:
            click.echo(f"tiedtools: {path}: no vector for {word!r}", err=True)
        known = [word for word in dict.fromkeys(words) if word in vectors]
        shown = dict.fromkeys(known if words else vectors.words[:first])
        if top:
            shown |= dict.fromkeys(word for found in neighbours(Candidates(vectors), known, top) for word, _ in found)
        points, axis_names = word_map(vectors, [vectors.index[word] for word in shown], method, seed)
        pictures.words(axes, points, list(shown), range(len(known)) if top else (), axis_names)
    return 1 if unknown else 0


@command.command(short_help="What vectors find similar, and what people do.")
@click.argument("path", metavar="VECTORS")
@option(
    "set",
    "name",
    required=True,
    metavar="NAME|PATH",
    help="simlex, men, rw, verb143, mturk771, or a file of `word word score` lines.",
)
@output_option
@data_option
@case_option
@option("label", type=click.IntRange(min=0), default=10, metavar="N", help="Name the N pairs ranked most differently.")
@format_option
@errors_option
def similarity(path, name, output, data, case, label, format, errors):
    """Draw the cosine of each pair of a similarity set against the score that people gave it.

    Pairs with an unknown word are left out. The title has Spearman's rho and its 95% interval, as `tiedtools eval-sim`.
    """
    from tiedtools.evaluation import pictures, similarity
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    with pictures.picture(output) as axes:
        ((name, path),) = locate([name], data).items()
        pairs = similarity.read_set(path, name)
        judged = similarity.judge(Vectors.read(path, format, errors), pairs, case=case)
        named = similarity.disagreements(pairs, judged, label)
        pictures.similarity(axes, pairs, judged, similarity.summarise(pairs, judged)[0], named)
