"""Plot results with Matplotlib, as PNG or SVG; read logs of training runs, tables, speeds, and attention weights."""

import contextlib
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError, library
from tiedtools.base.messages import log
from tiedtools.evaluation.similarity import Judged, SimilaritySet
from tiedtools.files.modelfile import LARGEST
from tiedtools.files.output import open_output
from tiedtools.text.sources import json_lines, numbered_lines, shown

FORMATS = ("png", "svg")
STYLE = {
    "font.size": 9, "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "grid.alpha": 0.25, "legend.frameon": False, "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "svg.fonttype": "none",  # text, which is a tenth of the size of outlines
    "svg.hashsalt": "tiedtools",  # makes SVG output reproducible
}  # fmt: skip
# The palette of Okabe and Ito, whose colors are also distinct for color-blind readers.
COLORS = BLUE, RED, *_ = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
GRAY = "#999999"
LONGEST_NAME = 50
PERPLEXITIES = {"valid_ppl": "validation perplexity", "train_ppl": "training perplexity"}
LOSS = "loss, nats per prediction"
BLEU = "valid_bleu"
FIGURES = {**PERPLEXITIES, BLEU: "validation BLEU, %", "valid_loss": f"validation {LOSS}", "loss": LOSS}
AXES = "epoch", "seconds"
CLOCK = (("hours", 3600), ("minutes", 60), ("seconds", 1))


def read_log(path: Any) -> list[dict[str, Any]]:
    """Read the epochs of a log, a list of dicts of metrics (docs/formats.md).

    Raises TiedtoolsError with file and line for a line that is not a JSON object, and if there are no epochs.
    """
    file, epochs, remedy = shown(str(path)), [], "give a file written by `log_json`"
    for number, figures in json_lines(path, remedy):
        if "run" in figures:
            raise TiedtoolsError(f"{file}:{number}: is of one of several runs, which have no curve; {remedy}")
        if "epoch" in figures:
            for name in (*AXES, *FIGURES):
                value = figures.get(name)
                if not is_number(value) and (value is not None or name in AXES):
                    raise TiedtoolsError(f"{file}:{number}: {name} is missing or not a valid number; {remedy}")
            epochs.append(figures)
    if not epochs:
        raise TiedtoolsError(f"{file}: holds no epochs; {remedy}")
    return epochs


def read_points(path: Any, x: str, y: str, by: str | None = None) -> list[tuple[float, float, str]]:
    """Read a tab-separated table with column names in the first line; return (x, y, group) for each row.

    `x` and `y` name columns of numbers, `by` names the column of the group. None: all rows are in one group, "".
    Raises TiedtoolsError if a column is missing, and with file and line for a malformed row.
    """
    file = shown(str(path))
    lines = ((n, line.rstrip("\r").split("\t")) for n, line in numbered_lines(path) if line.strip())
    _, header = next(lines, (1, []))
    columns = [x, y] if by is None else [x, y, by]
    for name in columns:
        if name not in header:
            raise TiedtoolsError(f"{file}: has no column {name!r}; its columns: {', '.join(header) or 'none'}")
    points = []
    for number, cells in lines:
        if len(cells) != len(header):
            raise TiedtoolsError(f"{file}:{number}: expected {len(header)} columns, found {len(cells)}; correct it")
        row = dict(zip(header, cells))
        try:
            point = float(row[x]), float(row[y])
        except ValueError:
            point = (math.nan,)
        if not all(map(is_number, point)):
            raise TiedtoolsError(f"{file}:{number}: {x} and {y} must be numbers; correct them")
        points.append((*point, "" if by is None else row[by]))
    if not points:
        raise TiedtoolsError(f"{file}: has no rows to plot; add some below the column names")
    return points


def read_speeds(path: Any) -> tuple[str, list[tuple[str, int, float, float, float]]]:
    """Read the rows of a benchmark's JSON: (unit, list of (name, threads, median, slowest, fastest)).

    Raises TiedtoolsError if the file was not written by examples/benchmarks with --json.
    """
    file, text = shown(str(path)), "\n".join(line for _, line in numbered_lines(path))
    try:
        rows = json.loads(text)["rows"]
        unit, *_ = (unit for unit in ("words_per_s", "tokens_per_s", "sentences_per_s") if unit in rows[0])
        names = "name", "threads", unit, "slowest", "fastest"
        speeds = [tuple(row[name] for name in names) for row in rows if unit in row]
        if not speeds or not all(isinstance(name, str) and all(map(is_number, figures)) for name, *figures in speeds):
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise TiedtoolsError(f"{file}: not a benchmark's result; give the output of a benchmark with --json") from None
    return unit.replace("_per_s", " per second"), speeds


def read_attention(path: Any, line: int) -> tuple[list[str], list[str], np.ndarray]:
    """Read (source, target, weights float [T, S]) of the first translation of a line, numbered from 1.

    source, target  lists of S and T str

    Raises TiedtoolsError if the file was not written by `tiedtools translate --align`, or lacks the line.
    """
    remedy = "give a file written by `tiedtools translate --align`"
    for number, entry in json_lines(path, remedy):
        try:
            if entry["line"] == line:
                source, target, weights = entry["source"], entry["target"], np.array(entry["weights"], float)
                if weights.shape != (len(target), len(source)) or not np.isfinite(weights).all():
                    raise ValueError
                return [str(word) for word in source], [str(word) for word in target], weights
        except (ValueError, KeyError, TypeError, OverflowError):
            raise TiedtoolsError(f"{shown(path)}:{number}: not attention weights; {remedy}") from None
    raise TiedtoolsError(f"{shown(path)}: holds no weights of line {line}; give another `line`")


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


@contextlib.contextmanager
def picture(path: str, width: float = 6.4) -> Iterator[Any]:
    """Yield Matplotlib axes; write the plot to `path` when the block ends, in the format of its file extension.

    width   in inches; the height is 4.2

    Raises TiedtoolsError immediately for another extension, without Matplotlib, and if `path` cannot be written.
    """
    format = path.rpartition(".")[2].lower()
    if format not in FORMATS:
        raise Contradiction(f"{path}: plots are written as PNG or SVG; use a name ending in .png or .svg")
    matplotlib = library("matplotlib", "plots need Matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.rcsetup import cycler

    style = {**STYLE, "axes.prop_cycle": cycler(linestyle=["-", "--", ":"]) * cycler(color=COLORS)}
    with open_output(path) as file, matplotlib.rc_context(style), warnings.catch_warnings(record=True) as caught:
        figure = Figure((width, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure.add_subplot()
        figure.savefig(file, format=format, metadata={"Date": None} if format == "svg" else None)
    if any("missing from" in str(warning.message) for warning in caught):
        log.warning(f"{path}: Matplotlib's fonts lack some characters, which are shown as boxes")


def drawable(name: str) -> str:
    """Return a file name with U+FFFD for invalid UTF-8 and for control characters, which SVG does not allow."""
    return re.sub("[\0-\x1f\ufffe\uffff]", "\ufffd", os.fsencode(name).decode("utf-8", "replace"))


def legend(axes: Any, lines: Sequence[Any], names: Sequence[str], place: str = "best") -> None:
    """Add a legend of `lines` with `names`, omitting leading folders common to all names.

    The names are set after creation, since Matplotlib ignores labels that begin with `_` and parses `$` as math.
    """
    shared = os.path.commonprefix(names).rfind("/") + 1  # noqa: RUF071
    names = [drawable(name[shared:]) for name in names]
    names = [name if len(name) <= LONGEST_NAME else "..." + name[3 - LONGEST_NAME :] for name in names]
    box = axes.legend(lines, ["x" * len(name) for name in names], loc=place, fontsize=8)
    for text, name in zip(box.get_texts(), names):
        text.set_text(name)
        text.set_parse_math(False)


def curves(axes: Any, logs: Sequence[tuple[str, list[dict[str, Any]]]], y: Sequence[str], x: str = "epoch") -> None:
    """Plot metrics of training runs, `logs`: (name, dicts of metrics, one per epoch); mark the best of each curve.

    `y` lists names of metrics, from FIGURES, and `x` is "epoch" or "seconds". Epochs without the metric are skipped.
    Raises TiedtoolsError if a log lacks one of the metrics.
    """
    unit, size = x, 1
    if x == "seconds":
        longest = max(figures[x] for _, epochs in logs for figures in epochs)
        unit, size = next((unit, size) for unit, size in CLOCK if longest >= 2 * size or size == 1)
    lines, labels = [], []
    brief = [FIGURES[figure].split()[0].rstrip(",") for figure in y]
    whats = dict(zip(y, brief if len(set(brief)) == len(set(y)) else map(FIGURES.get, y)))
    for name, epochs in logs:
        for figure in y:
            points = [(epoch[x] / size, epoch[figure]) for epoch in epochs if epoch.get(figure) is not None]
            if not points:
                available = ", ".join(figures_of(epochs)) or "nothing to plot"
                raise TiedtoolsError(f"{name}: has no {figure}; it has {available}")
            labels.append(name if len(y) == 1 else f"{name}, {whats[figure]}")
            lines += axes.plot(*zip(*points))
            best = max if figure == BLEU else min
            axes.plot(*best(points, key=lambda point: point[1]), "o", color=lines[-1].get_color(), markersize=4)
    axes.set_xlabel(x if x == "epoch" else f"elapsed time, {unit}")
    axes.set_ylabel(FIGURES[y[0]] if len(y) == 1 else "perplexity" if set(y) <= set(PERPLEXITIES) else ", ".join(y))
    if set(y) <= set(PERPLEXITIES):
        logarithmic(axes)
    if x == "epoch":
        axes.xaxis.get_major_locator().set_params(integer=True)
    legend(axes, lines, labels)


def means(axes: Any, points: list[tuple[float, float, str]], names: Sequence[str]) -> None:
    """Plot the mean of y for each x, with error bars of one standard deviation and one curve per group.

    `points` is a list of (x, y, group); `names` are the labels of the axes.
    """
    lines, groups = {}, {}
    for x, y, group in points:
        groups.setdefault(group, {}).setdefault(x, []).append(y)
    for group, runs in groups.items():
        xs, ys = zip(*sorted(runs.items()))
        spread = [np.std(some, ddof=1) if len(some) > 1 else 0 for some in ys]
        lines[group] = axes.errorbar(xs, [np.mean(some) for some in ys], spread, marker="o", markersize=4, capsize=3)
    axes.set_xlabel(names[0], parse_math=False)
    axes.set_ylabel(names[1], parse_math=False)
    if all(float(x).is_integer() for x, _, _ in points):
        axes.xaxis.get_major_locator().set_params(integer=True)
    if len(lines) > 1:
        legend(axes, list(lines.values()), list(lines))


def speeds(axes: Any, rows: list[tuple[str, float, float, float]], unit: str) -> None:
    """Plot speeds, rows of (name, median, slowest, fastest), as bars with ranges; tiedtools is blue, others gray."""
    from matplotlib.ticker import EngFormatter

    names, medians, slowest, fastest = zip(*rows)
    medians = np.array(medians)
    axes.figure.set_figheight(0.8 + 0.28 * len(rows))
    colors = [BLUE if name.startswith("tiedtools") else GRAY for name in names]
    reach = [medians - slowest, np.array(fastest) - medians]
    axes.barh(range(len(rows)), medians, 0.7, color=colors, xerr=reach, error_kw=dict(ecolor="black", lw=0.8))
    axes.set_yticks(range(len(rows)), [drawable(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 500k, 1M
    axes.set_xlabel(unit)


def common_figure(logs: Sequence[tuple[str, list[dict[str, Any]]]]) -> str:
    """Return the first metric of FIGURES that every log has in some epoch, or "valid_ppl" if there is none."""
    return next((figure for figure in FIGURES if all(figure in figures_of(epochs) for _, epochs in logs)), "valid_ppl")


def figures_of(epochs: list[dict[str, Any]]) -> list[str]:
    """List the metrics of FIGURES that at least one epoch has."""
    return [figure for figure in FIGURES if any(epoch.get(figure) is not None for epoch in epochs)]


def logarithmic(axes: Any) -> None:
    """Make the y axis logarithmic, with tick labels in plain decimal notation."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    low, high = axes.get_ylim()
    axes.set_yscale("log")
    wide = high > 10 * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(8, steps=(1, 2, 2.5, 5, 10)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def retained(axes: Any, spectra: Sequence[tuple[str, np.ndarray]]) -> None:
    """Plot the proportion of variance that principal components retain: (name, float [E]) for each matrix.

    If dimensions differ, the x axis shows percentages of the dimension instead of numbers of components.
    """
    dims = {len(shares) for _, shares in spectra}
    same = len(dims) == 1
    drawn = []
    for _, shares in spectra:
        count = np.arange(len(shares) + 1)
        drawn += axes.plot(count if same else 100 * count / len(shares), 100 * np.append(0, shares))
    axes.set(xlabel="principal components" if same else "principal components, % of the dimension", ylim=(0, 101))
    axes.set(ylabel="variance retained, %", xlim=(0, max(dims) if same else 100))
    legend(axes, drawn, [name for name, _ in spectra], "lower right")


def densities(axes: Any, samples: Iterable[tuple[str, np.ndarray]], label: str) -> None:
    """Plot the density of values between 0 and 1, `samples`: (name, array), as a curve through 100 bins."""
    drawn = []
    for _, values in samples:
        heights, edges = np.histogram(values, 100, (0, 1))
        drawn += axes.plot((edges[1:] + edges[:-1]) / 2, 100 * heights / values.size)
    axes.set(xlabel=label, ylabel="density", xlim=(0, 1), ylim=(0, None))
    legend(axes, drawn, [name for name, _ in samples])


def attention(axes: Any, source: list[str], target: list[str], weights: np.ndarray) -> None:
    """Plot attention weights, float [T, S], as shades of gray: a row per target word.

    source, target  lists of str
    """
    T, S = weights.shape
    axes.figure.set_size_inches(2 + 0.24 * S, 1.6 + 0.22 * T)
    axes.pcolormesh(weights, cmap="Greys", vmin=0, vmax=1, edgecolors="#eeeeee", linewidth=0.5)
    axes.set_xticks(np.arange(S) + 0.5, [drawable(word) for word in source], rotation=90, parse_math=False)
    axes.set_yticks(np.arange(T) + 0.5, [drawable(word) for word in target], parse_math=False)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.invert_yaxis()
    axes.grid(visible=False)


def words(
    axes: Any, points: np.ndarray, names: Sequence[str], marked: Sequence[int] = (),
    axis_names: Sequence[str] = ("", ""),
) -> None:  # fmt: skip
    """Plot labeled points (V, 2) with equal scales of the axes; the rows `marked` have another color."""
    colors = np.array([BLUE] * len(points))
    colors[list(marked)] = RED
    width, height = np.ptp(points, 0)
    axes.figure.set_figheight(axes.figure.get_figwidth() * np.clip(height / max(width, 1e-9), 0.4, 1.25))
    axes.scatter(*points.T, s=9, c=colors, linewidths=0, zorder=2)
    axes.set(xlabel=axis_names[0], ylabel=axis_names[1])
    axes.set_aspect("equal", "datalim")
    axes.margins(0.08)
    place_labels(axes, points, names, colors)


def similarity(axes: Any, pairs: SimilaritySet, judged: Judged, line: dict[str, Any], named: Sequence[int]) -> None:
    """Plot the cosines of a similarity set's pairs against human scores.

    `pairs` is a SimilaritySet, `judged` its Judged, and `line` its results, from `similarity.summarize`; `named` lists
    the rows of the pairs to label.
    """
    points = np.stack([pairs.scores, judged.cosines], 1)
    used = points[judged.used]
    axes.scatter(*used.T, s=9, c=BLUE, alpha=min(0.8, 0.15 + 200 / max(len(used), 1)), linewidths=0)
    axes.set(xlabel="human score", ylabel="cosine")
    rho = "-" if np.isnan(line["rho"]) else "{rho:.3f} [{low:.3f}, {high:.3f}]".format(**line)
    title = f"{drawable(os.path.basename(line['set']))}: Spearman's rho {rho}, {len(used):,} of {line['pairs']:,} pairs"
    axes.set_title(title, parse_math=False)
    axes.scatter(*points[named].T, s=12, c=RED, linewidths=0)
    place_labels(axes, points[named], ["-".join(pairs.pairs[row]) for row in named], [RED] * len(named))


def place_labels(axes: Any, points: np.ndarray, names: Sequence[str], colors: Sequence[str] | np.ndarray) -> None:
    """Label points (R, 2), each in the nearest position around it that overlaps no point and no other label.

    A label that is not next to its point is connected to it by a line. If no position is free, overlap is minimized.
    """
    axes.figure.draw_without_rendering()  # computes the layout, which determines sizes in pixels
    renderer, pixel = axes.figure.canvas.get_renderer(), axes.figure.dpi / 72
    to_pixels, to_data = axes.transData.transform, axes.transData.inverted().transform
    plate = dict(facecolor="white", alpha=0.8, edgecolor="none", pad=0)
    ring = np.exp(1j * np.pi / 8 * np.arange(16))
    around = np.concatenate([ring * radius for radius in np.arange(4, 240, 4) * pixel])
    around = np.stack([around.real, around.imag], 1).round(6)
    at = to_pixels(points)
    taken = np.hstack([at - 2 * pixel, at + 2 * pixel])  # left, bottom, right, top
    left_bottom, right_top = axes.bbox.min, axes.bbox.max
    for point, name, color in zip(at, names, colors):
        text = axes.text(0, 0, name, fontsize=7.5, color=color, parse_math=False, ha="center", va="center")
        text.set_bbox(plate)
        box = text.get_window_extent(renderer)
        half = np.array([box.width / 2 + 1.5 * pixel, box.height / 2])
        middles = point + around + np.sign(around) * half
        low, high = middles - half, middles + half
        covers = (low[:, None] < taken[:, 2:]).all(2) & (high[:, None] > taken[:, :2]).all(2)
        outside = (low < left_bottom).any(1) | (high > right_top).any(1)
        spot = int((covers.sum(1) + len(names) * outside).argmin())
        taken = np.vstack([taken, np.append(low[spot], high[spot])])
        text.set_position(to_data(middles[spot]))
        if spot >= len(ring):
            ends = to_data([point, np.clip(point, low[spot], high[spot])])
            line = dict(color=color, linestyle="-", linewidth=0.5, alpha=0.6, zorder=1)
            axes.plot(*ends.T, scalex=False, scaley=False, **line)
