"""Pictures of results, by Matplotlib, as PNG or SVG."""

import contextlib
import os
import re
import warnings

import numpy as np

from tiedtools.errors import Contradiction, TiedtoolsError
from tiedtools.files.output import open_output
from tiedtools.messages import log

FORMATS = ("png", "svg")
STYLE = {
    "font.size": 9,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "svg.hashsalt": "tiedtools",  # the same picture is the same bytes
}
# Okabe and Ito's, which those who see no red or no green tell apart, too.
COLOURS = BLUE, RED, *_ = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
LONGEST_NAME = 50
PERPLEXITIES = {"valid_ppl": "validation perplexity", "train_ppl": "training perplexity"}
FIGURES = {**PERPLEXITIES, "loss": "loss, nats per prediction"}
CLOCK = (("hours", 3600), ("minutes", 60), ("seconds", 1))


@contextlib.contextmanager
def picture(path, width=6.4, height=4.2):
    """Yield Matplotlib axes to draw on; the picture is written when the block ends, in the format that `path` ends in.

    width, height  inches

    Raises TiedtoolsError at once for a name of no such format, without Matplotlib, and where nothing can be written.
    """
    format = path.rpartition(".")[2].lower()
    if format not in FORMATS:
        raise Contradiction(f"{path}: a picture is PNG or SVG; give it a name ending in .png or .svg")
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.rcsetup import cycler
    except ImportError:
        raise TiedtoolsError('pictures need Matplotlib: pip install "tiedtools[plot]"') from None
    lines = cycler(linestyle=["-", "--", ":"]) * cycler(color=COLOURS)
    style = {**STYLE, "axes.prop_cycle": lines}
    with open_output(path) as file, matplotlib.rc_context(style), warnings.catch_warnings(record=True) as told:
        figure = Figure((width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure.add_subplot()
        figure.savefig(file, format=format, metadata={"Date": None} if format == "svg" else None)
    if any("missing from" in str(warning.message) for warning in told):
        log.warning(f"{path}: some characters are in no font that Matplotlib has, and shown as boxes")


def drawable(name):
    """The name of a file, with U+FFFD for bytes that are no UTF-8 and for control characters, which no SVG may hold."""
    return re.sub("[\0-\x1f\ufffe\uffff]", "\ufffd", os.fsencode(name).decode("utf-8", "replace"))


def legend(axes, lines, names, place="best"):
    """Name lines; what all names begin with is left out, by folders.

    Not through labels, of which Matplotlib hides those that begin with `_` and takes `$` for formulas.
    """
    shared = os.path.commonprefix(names).rfind("/") + 1  # noqa: RUF071
    names = [drawable(name[shared:]) for name in names]
    names = [name if len(name) <= LONGEST_NAME else "..." + name[3 - LONGEST_NAME :] for name in names]
    box = axes.legend(lines, ["x" * len(name) for name in names], loc=place, fontsize=8)
    for text, name in zip(box.get_texts(), names):
        text.set_text(name)
        text.set_parse_math(False)


def curves(axes, logs, y, x="epoch"):
    """Draw figures of training runs, `logs`: (name, dicts of figures, one an epoch), and mark the lowest of each.

    y  list of names of figures, of FIGURES; epochs that have none are left out        x  "epoch" or "seconds"

    Raises TiedtoolsError where a log has none of a figure.
    """
    unit, size = x, 1
    if x == "seconds":
        longest = max(figures[x] for _, epochs in logs for figures in epochs)
        unit, size = next((unit, size) for unit, size in CLOCK if longest >= 2 * size or size == 1)
    lines = {}
    for name, epochs in logs:
        for figure in y:
            points = [(epoch[x] / size, epoch[figure]) for epoch in epochs if epoch.get(figure) is not None]
            if not points:
                raise TiedtoolsError(
                    f"{name}: has no {figure}; it has {', '.join(figures_of(epochs)) or 'nothing to draw'}"
                )
            label = name if len(y) == 1 else f"{name}, {FIGURES[figure].split()[0].rstrip(',')}"
            lines[label] = axes.plot(*zip(*points))[0]
            axes.plot(*min(points, key=lambda point: point[1]), "o", color=lines[label].get_color(), markersize=4)
    axes.set_xlabel(x if x == "epoch" else f"{unit} of the run")
    axes.set_ylabel(FIGURES[y[0]] if len(y) == 1 else "perplexity" if set(y) <= set(PERPLEXITIES) else ", ".join(y))
    if set(y) <= set(PERPLEXITIES):
        logarithmic(axes)
    if x == "epoch":
        axes.xaxis.get_major_locator().set_params(integer=True)
    legend(axes, list(lines.values()), list(lines))


def means(axes, points, names):
    """Draw the mean of y over the points with one x, and their standard deviation, a line for each group.

    points  (x, y, group) each        names  of the axes
    """
    lines = {}
    for group in dict.fromkeys(group for *_, group in points):
        mine = [(x, y) for x, y, of in points if of == group]
        at = sorted({x for x, _ in mine})
        runs = [[y for x, y in mine if x == here] for here in at]
        spread = [np.std(ys, ddof=1) if len(ys) > 1 else 0 for ys in runs]
        lines[group] = axes.errorbar(at, [np.mean(ys) for ys in runs], spread, marker="o", markersize=4, capsize=3)
    axes.set_xlabel(names[0], parse_math=False)
    axes.set_ylabel(names[1], parse_math=False)
    if len(lines) > 1:
        legend(axes, list(lines.values()), list(lines))


def common_figure(logs):
    """The first of FIGURES that all logs have in some epoch; the first of all, where there is none."""
    return next((figure for figure in FIGURES if all(figure in figures_of(epochs) for _, epochs in logs)), "valid_ppl")


def figures_of(epochs):
    """Those of FIGURES that some epoch has."""
    return [figure for figure in FIGURES if any(epoch.get(figure) is not None for epoch in epochs)]


def logarithmic(axes):
    """Have a logarithmic y axis with plain numbers."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    low, high = axes.get_ylim()
    axes.set_yscale("log")
    wide = high > 10 * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if wide else MaxNLocator(8, steps=(1, 2, 2.5, 5, 10)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def retained(axes, spectra):
    """Draw the share of variance that components keep: (name, float [E]) of each matrix.

    Components are counted where all have as many, and otherwise given in per cent, so that widths can be compared.
    """
    widths = {len(shares) for _, shares in spectra}
    same = len(widths) == 1
    drawn = []
    for _, shares in spectra:
        count = np.arange(len(shares) + 1)
        drawn += axes.plot(count if same else 100 * count / len(shares), 100 * np.append(0, shares))
    axes.set_xlabel("principal components" if same else "principal components, % of the width")
    axes.set_ylabel("variance retained, %")
    axes.set_xlim(0, max(widths) if same else 100)
    axes.set_ylim(0, 101)
    legend(axes, drawn, [name for name, _ in spectra], "lower right")


def words(axes, points, names, marked=(), axis_names=("", "")):
    """Draw named points (V, 2), those of the rows `marked` in another colour, both axes in one scale."""
    colours = np.array([BLUE] * len(points))
    colours[list(marked)] = RED
    width, height = np.ptp(points, 0)
    axes.figure.set_figheight(axes.figure.get_figwidth() * np.clip(height / max(width, 1e-9), 0.4, 1.25))
    axes.scatter(*points.T, s=9, c=colours, linewidths=0, zorder=2)
    axes.set_xlabel(axis_names[0])
    axes.set_ylabel(axis_names[1])
    axes.set_aspect("equal", "datalim")
    axes.margins(0.08)
    place_labels(axes, points, names, colours)


def similarity(axes, pairs, judged, line, named=()):
    """Draw the cosines of a similarity set's pairs against the scores that people gave them.

    pairs, judged  SimilaritySet and Judged        line  their figures, of `similarity.summarize`
    named          rows of the pairs to name
    """
    points = np.stack([pairs.scores, judged.cosines], 1)
    used = points[judged.used]
    axes.scatter(*used.T, s=9, c=BLUE, alpha=min(0.8, 0.15 + 200 / max(len(used), 1)), linewidths=0)
    axes.set_xlabel("score that people gave")
    axes.set_ylabel("cosine")
    rho = "{rho:.3f} [{low:.3f}, {high:.3f}]".format(**line)
    title = f"{drawable(os.path.basename(line['set']))}: Spearman's rho {rho}, {len(used):,} of {line['pairs']:,} pairs"
    axes.set_title(title, parse_math=False)
    axes.scatter(*points[named].T, s=12, c=RED, linewidths=0)
    place_labels(axes, points[named], ["-".join(pairs.pairs[row]) for row in named], [RED] * len(named))


def place_labels(axes, points, names, colours):
    """Write names beside points (R, 2) so that none covers a point or another: in the nearest free place around it.

    A name that is not next to its point is tied to it by a line. Where nothing is free, as little as can be is covered.
    """
    from matplotlib.patheffects import withStroke

    axes.figure.draw_without_rendering()  # lays the axes out, so that sizes in pixels are known
    renderer, pixel = axes.figure.canvas.get_renderer(), axes.figure.dpi / 72
    to_pixels, to_data = axes.transData.transform, axes.transData.inverted().transform
    halo = [withStroke(linewidth=2, foreground="white", alpha=0.8)]
    ring = np.exp(1j * np.pi / 8 * np.arange(16))
    around = np.concatenate([ring * radius for radius in np.arange(4, 240, 4) * pixel])
    around = np.stack([around.real, around.imag], 1).round(6)
    at = to_pixels(points)
    taken = np.hstack([at - 2 * pixel, at + 2 * pixel])  # left, bottom, right, top
    left_bottom, right_top = axes.bbox.min, axes.bbox.max
    for point, name, colour in zip(at, names, colours):
        text = axes.text(0, 0, name, fontsize=7.5, color=colour, parse_math=False, ha="center", va="center")
        text.set_path_effects(halo)
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
            line = dict(color=colour, linestyle="-", linewidth=0.5, alpha=0.6, zorder=1)
            axes.plot(*ends.T, scalex=False, scaley=False, **line)
