"""`tiedtools plot`: plot training runs, speeds, words, word similarity, gates, and attention; and `explore`."""

import functools
from collections.abc import Callable
from typing import Any

import click

from tiedtools.cli.command import Answer, command, warn_idle
from tiedtools.cli.options import Decorator, choice, integer, option
from tiedtools.cli.queries import show_progress
from tiedtools.cli.shared import case_option, data_option, reading_options
from tiedtools.text.datasets import locate
from tiedtools.text.sources import counted, shown

output_option = option("output", "target", required=True, metavar="FILE", help="Output file, .png or .svg.")
METHODS = "Projection: principal components, t-SNE (requires scikit-learn), or UMAP (requires umap-learn)."
seed_of_map = integer("seed", 1, "Random seed of t-SNE and UMAP.", least=0, most=2**32 - 1, metavar=None)


@click.group(short_help="Plot training runs, speeds, words, word similarity, gates, and attention.")
def plot() -> None:
    """Plot training runs, speeds, words, word similarity, gates, and attention, as PNG or SVG by the output's name.

    Requires Matplotlib: pip install "tiedtools[plot]".
    """


def plot_command(name: str, short_help: str, width: float = 6.4, **attributes: Any) -> Decorator:
    """Return a decorator that makes a subcommand of `plot` of a function of the module `pictures` and axes."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def run(target: str, **options: Any) -> Any:
            from tiedtools.evaluation import pictures

            with pictures.picture(target, width) as axes:
                return function(pictures, axes, **options)

        return command(name, short_help, plot, writes="target", **attributes)(run)

    return decorate


@plot_command("curves", "Plot the learning curves of training runs.", reads="logs")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@output_option
@option("y", multiple=True, type=click.Choice(["valid_ppl", "train_ppl", "valid_bleu", "valid_loss", "loss"]),
        help="Metric to plot; repeatable.  [default: the first of these that all logs contain]")  # fmt: skip
@choice("x", "epoch seconds", "Horizontal axis.", "epoch")
def curves(pictures: Any, axes: Any, logs: tuple[str, ...], y: tuple[str, ...], x: str) -> None:
    """Plot the perplexity or loss of training runs by epoch, from logs written with --log-json.

    The axis of perplexities is logarithmic. A dot marks the best epoch of each run. Do not compare perplexities that
    count `<unk>` as a word with perplexities that skip unknown words.
    """
    runs = [(log, pictures.read_log(log)) for log in logs]
    pictures.curves(axes, runs, list(dict.fromkeys(y)) or [pictures.common_figure(runs)], x)


@plot_command("means", "Plot means with error bars from a table.", reads="table")
@click.argument("table", metavar="TABLE")
@output_option
@option("x", required=True, metavar="COLUMN", help="Horizontal axis.")
@option("y", required=True, metavar="COLUMN", help="Vertical axis: mean over rows with the same X.")
@option("by", metavar="COLUMN", help="Plot one curve for each value of COLUMN.")
def means(pictures: Any, axes: Any, table: str, x: str, y: str, by: str | None) -> None:
    """Plot the mean of a metric over several runs, with error bars of one standard deviation.

    TABLE is tab-separated, with column names in the first line and one run per line; - is standard input.
    """
    pictures.means(axes, pictures.read_points(table, x, y, by), (x, y))


@plot_command("speed", "Plot training speeds from a benchmark.", reads="path")
@click.argument("path", metavar="[JSON]", default="-")
@output_option
@integer("threads", None, "Number of threads to plot.  [default: the largest]")
def speed(pictures: Any, axes: Any, path: str, threads: int | None) -> None:
    """Plot speeds that a benchmark measured (examples/benchmarks, --json), with the slowest and the fastest run.

    JSON is a file with the benchmark's output; `-` or no argument reads standard input. Programs that were measured
    with other numbers of threads only are omitted.
    """
    unit, rows = pictures.read_speeds(path)
    threads = threads or max(row[1] for row in rows)
    chosen = [(name, *speeds) for name, count, *speeds in rows if count == threads]
    if not chosen:
        raise click.UsageError(f"{shown(path)}: has no speeds with {counted(threads, 'thread')}; omit --threads")
    pictures.speeds(axes, chosen, f"{unit}, {counted(threads, 'thread')}")


@plot_command("words", "Plot words in two dimensions.", width=8, reads="path")
@click.argument("path", metavar="VECTORS")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@output_option
@integer("top", 0, "Also plot the N nearest neighbors of each WORD.", least=0, also="k")
@integer("first", 100, "Without WORD, plot the first N words.", least=3)
@choice("method", "pca tsne umap", METHODS, "pca")
@seed_of_map
@reading_options
def words(
    pictures: Any, axes: Any, path: str, words: tuple[str, ...], top: int, first: int, method: str, seed: int,
    **reading: Any
) -> Answer:  # fmt: skip
    """Plot words in two dimensions, so that words with similar vectors are close together.

    Without WORD, the first words of VECTORS but `</s>` are plotted, in most files the most frequent. Vectors are scaled
    to unit length. Unknown words are reported on stderr; the others are still plotted, and the exit status is 1.
    """
    from tiedtools.evaluation.comparison import word_map
    from tiedtools.text.vocab import END
    from tiedtools.vectors.neighbors import Candidates, neighbors
    from tiedtools.vectors.vectors import Vectors

    idle = {"first": "with WORD"} if words else {"top": "without WORD"}
    warn_idle(click.get_current_context(), idle | ({"seed": "with --method pca"} if method == "pca" else {}))
    vectors = Vectors.read(path, **reading)
    for word in (unknown := [word for word in words if word not in vectors]):
        click.echo(f"tiedtools: {path}: no vector for {word!r}", err=True)
    known = [word for word in dict.fromkeys(words) if word in vectors]
    plotted = dict.fromkeys(known if words else [word for word in vectors.words if word != END][:first])
    if top:
        plotted |= dict.fromkeys(word for nearest in neighbors(Candidates(vectors), known, top) for word, _ in nearest)
    chosen = vectors.restrict(plotted)  # without words whose bytes were replaced in decoding
    points, axis_names = word_map(chosen.matrix, method, seed)
    pictures.words(axes, points, chosen.words, range(len(known)) if top else (), axis_names)
    return Answer(status=int(bool(unknown)))


@plot_command("similarity", "Plot cosine similarity against human scores.", reads="path")
@click.argument("path", metavar="VECTORS")
@option("set", "name", required=True, metavar="NAME|PATH", help="Similarity set: a name of `tiedtools data list`, or a"
        " file of `word word score` lines.")  # fmt: skip
@output_option
@data_option
@case_option
@integer("label", 10, "Label the N pairs whose ranks differ most.", least=0)
@reading_options
def similarity(
    pictures: Any, axes: Any, path: str, name: str, data: str | None, case: str, label: int, **reading: Any
) -> None:
    """Plot the cosine similarity of each pair of a similarity set against its human score.

    Pairs with an out-of-vocabulary word are omitted. The title shows Spearman's rho with its 95% interval, as in
    `tiedtools eval-sim`.
    """
    from tiedtools.evaluation import similarity
    from tiedtools.vectors.vectors import Vectors

    ((name, set_path),) = locate([name], data).items()
    pairs = similarity.read_set(set_path, name)
    judged = similarity.judge(Vectors.read(path, **reading), pairs, case=case)
    similarity.log_undefined([path], [pairs], [judged])
    labeled = similarity.disagreements(pairs, judged, label)
    pictures.similarity(axes, pairs, judged, similarity.summarize(pairs, judged)[0], labeled)


@plot_command("gates", "Plot densities of the transform gates of highway layers.", reads="models")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@output_option
@integer("layer", None, "Plot highway layer N only.  [default: all]")
def gates(pictures: Any, axes: Any, models: tuple[str, ...], layer: int | None) -> None:
    """Plot the densities of the transform gates of highway layers, over all words and dimensions.

    MODEL is a model trained with `lstm --subwords`. At a gate of 0 the layer copies its input, at 1 it replaces it.
    Gates of input and output embeddings are plotted separately, or as `tied` where they are equal.
    """
    from tiedtools.models.composing import gates

    samples = []
    for path in dict.fromkeys(models):
        prefix = f"{path}, " if len(models) > 1 else ""
        layers = [(prefix + name, t) for name, t in gates(path) if layer is None or name.startswith(f"hw{layer},")]
        if not layers:
            raise click.UsageError(f"{path}: has no highway layer {layer}; omit --layer")
        samples += layers
    pictures.densities(axes, samples, "transform gate")


@plot_command("attention", "Plot the attention weights of a translation.", reads="path")
@click.argument("path", metavar="[WEIGHTS]", default="-")
@output_option
@integer("line", 1, "Number of the line whose translation to plot.")
def attention(pictures: Any, axes: Any, path: str, line: int) -> None:
    """Plot the attention weights of a translation: the words of the source that each word was translated from.

    WEIGHTS was written by `tiedtools translate --align`; `-` or no argument reads standard input. Of several
    translations of a line, the first is plotted.
    """
    pictures.attention(axes, *pictures.read_attention(path, line))


@command("explore", "Write an interactive map of words.", reads="path", writes="target")
@click.argument("path", metavar="VECTORS")
@option("output", "target", also="o", required=True, metavar="FILE", help="Output file, an HTML page.")
@choice("projection", "pca tsne umap", METHODS, "pca")
@integer("first", None, "Show the N most frequent words.  [default: 20000; 5000 of several runs]", least=3)
@integer("top", 10, "Number of nearest neighbors.", most=1000, also="k")
@integer("min-count", None, "Leave out words that occur less often than this.  [default: as in `nn`]", least=0)
@seed_of_map
@reading_options
def explore(path: str, target: str, **options: Any) -> None:
    """Write a page with a map of words; search or click a word to see its nearest neighbors.

    VECTORS is anything that `nn` reads, such as a vector file, a model, MODEL:out, or a file of runs (.runs), or a
    folder from `w2v --slices`. The page is one HTML file that needs no server and no network. The larger a point, the
    more frequent is its word; if counts are unknown, the first words of the file count as the most frequent.

    For several runs, each neighbor has the 95% interval of its cosine and the share of the runs that list it among the
    --top nearest; neighbors that few runs list are faded. For slices, the page shows the path of a word on the map, and
    its neighbors in each slice. Requires Plotly: pip install "tiedtools[explore]".
    """
    from tiedtools.api.explore import explore

    warn_idle(click.get_current_context(), {"seed": "with --projection pca"} if options["projection"] == "pca" else {})
    show_progress()
    explore(path, target, **options)
