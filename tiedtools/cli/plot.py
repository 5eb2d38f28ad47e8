"""`tiedtools plot`: plot training runs, speeds, words, word similarity, gates, and attention."""

import click

from tiedtools.cli.options import case_option, data_option, option, reading_options
from tiedtools.text.sources import counted, read_once

output_option = option("output", required=True, metavar="FILE", help="Output file, .png or .svg.")


@click.group(short_help="Plot training runs, speeds, words, word similarity, gates, and attention.")
def command():
    """Plot training runs, speeds, words, word similarity, gates, and attention, as PNG or SVG by the output's name.

    Requires Matplotlib: pip install "tiedtools[plot]".
    """


@command.command(short_help="Plot the learning curves of training runs.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@output_option
@option(
    "y",
    multiple=True,
    type=click.Choice(["valid_ppl", "valid_bleu", "train_ppl", "loss"]),
    help="Metric to plot; repeatable.  [default: the first of these that all logs contain]",
)
@option("x", type=click.Choice(["epoch", "seconds"]), default="epoch", help="Horizontal axis.")
def curves(logs, output, y, x):
    """Plot the perplexity or loss of training runs by epoch, from logs written with --log-json.

    The axis of perplexities is logarithmic. A dot marks the best epoch of each run. Perplexities that count `<unk>`
    cannot be compared with those that leave unknown words out.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_log

    read_once(*logs)
    with pictures.picture(output) as axes:
        runs = [(log, read_log(log)) for log in logs]
        pictures.curves(axes, runs, list(dict.fromkeys(y)) or [pictures.common_figure(runs)], x)


@command.command(short_help="Plot means with error bars from a table.")
@click.argument("table", metavar="TABLE")
@output_option
@option("x", required=True, metavar="COLUMN", help="Horizontal axis.")
@option("y", required=True, metavar="COLUMN", help="Vertical axis: mean over rows with the same X.")
@option("by", metavar="COLUMN", help="Plot one curve for each value of COLUMN.")
def means(table, output, x, y, by):
    """Plot the mean of a metric over several runs, with error bars of one standard deviation.

    TABLE is tab-separated, with column names in the first line and one run per line; - is standard input.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_points

    with pictures.picture(output) as axes:
        pictures.means(axes, read_points(table, x, y, by), (x, y))


@command.command(short_help="Plot training speeds from a benchmark.")
@click.argument("path", metavar="[JSON]", default="-")
@output_option
@option("threads", type=click.IntRange(1), metavar="N", help="Number of threads to plot.  [default: the largest]")
def speed(path, output, threads):
    """Plot speeds that a benchmark measured (examples/benchmarks, --json), with the slowest and the fastest run.

    JSON is a file with the benchmark's output; `-` or no argument reads standard input. Programs that were measured
    with other numbers of threads only are omitted.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_speeds

    with pictures.picture(output) as axes:
        unit, rows = read_speeds(path)
        threads = threads or max(row[1] for row in rows)
        chosen = [(name, *speeds) for name, own, *speeds in rows if own == threads]
        if not chosen:
            raise click.UsageError(f"{path} has no speeds with {threads} threads")
        pictures.speeds(axes, chosen, f"{unit}, {counted(threads, 'thread')}")


@command.command(short_help="Plot words in two dimensions.")
@click.argument("path", metavar="VECTORS")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@output_option
@option(
    "top",
    also="k",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also plot the N nearest neighbors of each WORD.",
)
@option("first", type=click.IntRange(min=3), default=100, metavar="N", help="Without WORD, plot the first N words.")
@option(
    "method",
    type=click.Choice(["pca", "tsne"]),
    default="pca",
    help="Projection: principal components, or t-SNE (requires scikit-learn).",
)
@option("seed", type=click.IntRange(min=0, max=2**32 - 1), default=1, help="Random seed of t-SNE.")
@reading_options
def words(path, words, output, top, first, method, seed, format, errors, skip_bad):
    """Plot words in two dimensions, so that words with similar vectors are close together.

    Without WORD, the first words of VECTORS are plotted, in most files the most frequent. Vectors are scaled to unit
    length. Unknown words are reported on stderr; the others are still plotted, and the exit status is 1.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.components import word_map
    from tiedtools.vectors.neighbors import Candidates, neighbors
    from tiedtools.vectors.vectors import Vectors

    with pictures.picture(output, 8) as axes:
        vectors = Vectors.read(path, format, errors, skip_bad)
        unknown = [word for word in words if word not in vectors]
        for word in unknown:
            click.echo(f"tiedtools: {path}: no vector for {word!r}", err=True)
        known = [word for word in dict.fromkeys(words) if word in vectors]
        shown = dict.fromkeys(known if words else vectors.words[:first])
        if top:
            shown |= dict.fromkeys(word for found in neighbors(Candidates(vectors), known, top) for word, _ in found)
        points, axis_names = word_map(vectors, [vectors.index[word] for word in shown], method, seed)
        pictures.words(axes, points, list(shown), range(len(known)) if top else (), axis_names)
    return 1 if unknown else 0


@command.command(short_help="Plot cosine similarity against human scores.")
@click.argument("path", metavar="VECTORS")
@option(
    "set",
    "name",
    required=True,
    metavar="NAME|PATH",
    help="simlex, men, rw, verb143, mturk771, simverb, ws353-sim, ws353-rel, mturk287, or a file of `word word score`"
    " lines.",
)
@output_option
@data_option
@case_option
@option("label", type=click.IntRange(min=0), default=10, metavar="N", help="Label the N pairs whose ranks differ most.")
@reading_options
def similarity(path, name, output, data, case, label, format, errors, skip_bad):
    """Plot the cosine similarity of each pair of a similarity set against its human score.

    Pairs with an out-of-vocabulary word are omitted. The title shows Spearman's rho with its 95% interval, as in
    `tiedtools eval-sim`.
    """
    from tiedtools.evaluation import pictures, similarity
    from tiedtools.text.datasets import locate
    from tiedtools.vectors.vectors import Vectors

    with pictures.picture(output) as axes:
        ((name, path),) = locate([name], data).items()
        pairs = similarity.read_set(path, name)
        judged = similarity.judge(Vectors.read(path, format, errors, skip_bad), pairs, case=case)
        named = similarity.disagreements(pairs, judged, label)
        pictures.similarity(axes, pairs, judged, similarity.summarize(pairs, judged)[0], named)


@command.command(short_help="Plot densities of the transform gates of highway layers.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@output_option
@option("layer", type=click.IntRange(1), metavar="N", help="Plot highway layer N only.  [default: all]")
def gates(models, output, layer):
    """Plot the densities of the transform gates of highway layers, over all words and dimensions.

    MODEL is a model trained with `lstm --subwords`. At a gate of 0 the layer copies its input, at 1 it replaces it.
    Gates of input and output embeddings are plotted separately, or as `tied` where they are equal.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.models.composing import gates

    with pictures.picture(output) as axes:
        samples = []
        for path in dict.fromkeys(models):
            prefix = f"{path}, " if len(models) > 1 else ""
            named = [(prefix + name, t) for name, t in gates(path) if layer is None or name.startswith(f"hw{layer},")]
            if not named:
                raise click.UsageError(f"{path} has no highway layer {layer}")
            samples += named
        pictures.densities(axes, samples, "transform gate")


@command.command(short_help="Plot the attention weights of a translation.")
@click.argument("path", metavar="[WEIGHTS]", default="-")
@output_option
@option("line", type=click.IntRange(1), default=1, metavar="N", help="Number of the line whose translation to plot.")
def attention(path, output, line):
    """Plot the attention weights of a translation: the words of the source that each word was translated from.

    WEIGHTS was written by `tiedtools translate --align`; `-` or no argument reads standard input. Of several
    translations of a line, the first is plotted.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.logs import read_attention

    with pictures.picture(output) as axes:
        pictures.attention(axes, *read_attention(path, line))
