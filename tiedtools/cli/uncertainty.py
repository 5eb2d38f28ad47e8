"""Results over many training runs: `cosine`, `stability`, and the answers of `nn` and `analogy` for files of runs."""

import math
from collections.abc import Callable
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError, UnknownWord
from tiedtools.base.messages import log
from tiedtools.cli.command import Answer, command, table, warn_idle
from tiedtools.cli.options import Finite, integer, json_option, option
from tiedtools.text.sources import counted

NEIGHBORS = {1: "neighbor", 3: "answer"}  # size of a query -> column of the answers


def brief(x: float | None) -> str:
    """Format a number below 1 without its leading zero; None and NaN as `-`."""
    if x is None or math.isnan(x):
        return "-"
    return f"{x:.2f}".replace("0.", ".", 1) if abs(x) < 1 else f"{x:.2f}"


def span(low: float, high: float) -> str:
    """Format an interval."""
    return "-" if math.isnan(low) else f"{brief(low)} to {brief(high)}"


def aligned(rows: list[dict[str, Any]], left: int = 1) -> str:
    """Format dicts with equal keys as a table: the first `left` columns to the left, the others to the right."""
    return table([*rows[0]], rows, left, file=False) if rows else ""


def run_answers(
    size: int, paths: list[str], questions: list[tuple[str, ...]], limit: Callable[..., tuple[Any, ...]],
    sums: Callable[..., Any], top: int, restrict: int | None,
) -> Answer:  # fmt: skip
    """Return the Answer of `nn` (size 1) and `analogy` (3) for files of runs.

    questions  tuples of words; limit: function (path, words) -> how many words may be answers, and other results
    sums       function (question, index) -> pairs (word, sign) of its sum
    """
    from tiedtools.evaluation.uncertainty import neighbors
    from tiedtools.vectors.neighbors import spellings
    from tiedtools.vectors.runs import Runs, is_runs

    status, objects, lines = 0, [], []
    for path in paths:
        if not is_runs(path):
            raise click.UsageError(f"{path}: holds no runs; query it alone")
        runs = Runs.read(path)
        index = runs.index
        terms = {question: sums(question, index) for question in questions}
        unknown = list(dict.fromkeys(word for pairs in terms.values() for word, _ in pairs if word not in index))
        suggested = {word: f"; did you mean {near!r}?" for word, near in spellings(unknown, index).items()}
        for word in unknown:
            log.error(f"tiedtools: {path}: no vector for {word!r}{suggested.get(word, '')}")
        asked = [q for q in questions if not set(unknown) & {word for word, _ in terms[q]}]
        rows = [[(index[word], sign) for word, sign in terms[question]] for question in asked]
        found = neighbors(runs, rows, top, *limit(path, runs.words)) if rows else []
        for question, terms_of, answer in zip(asked, rows, found):
            n = int((runs.present[:, [row for row, _ in terms_of]] > 0).all(1).sum())
            if not answer and n < (least := max(min(2, len(runs)), math.ceil(len(runs) / 2))):
                what = f"{' '.join(question)!r} is in {n} of {counted(len(runs), 'run')}"
                log.error(f"tiedtools: {path}: {what}; choose words that are in at least {counted(least, 'run')}")
                status = 1
        status |= bool(unknown)
        answers = {" ".join(question): answer for question, answer in zip(asked, found)}
        objects.append(dict(vectors=path, runs=len(runs), top=top, restrict=restrict, answers=answers, unknown=unknown))
        for words, answer in zip(map(" ".join, asked), found):
            lines += [
                {
                    "word" if size == 1 else "a b c": words,
                    NEIGHBORS[size]: line["neighbor"],
                    "cosine": brief(line["cosine"]),
                    "95% interval": span(line["low"], line["high"]),
                    "median rank": f"{line['rank']:g}",
                    "95% of ranks": f"{line['rank_low']:.0f} to {line['rank_high']:.0f}",
                    f"in top {top}": f"{line['in_top']} of {line['runs']}",
                    **({"file": path} if len(paths) > 1 else {}),
                }
                for line in answer
            ]
    return Answer(aligned(lines, 2), objects, status)


@command("cosine", "Print the cosine of two words, or of a word and an axis.", reads="files other")
@click.argument("files", metavar="VECTORS")
@click.argument("terms", nargs=-1, required=True, metavar="A B [A B]...")
@option("with", "other", metavar="VECTORS", help="Second file; the difference of its cosines is printed, too.")
@json_option("Print one JSON object instead of a table.")
def cosine(files: str, terms: tuple[str, ...], other: str | None) -> Answer:
    """Print the cosine of A and B; of a file of runs, the mean over its runs and its 95% interval.

    A and B are words, or sums of words in quotes, such as "man - woman", an axis: the sum of the unit-length vectors
    of its words. A word's position on an axis is its cosine with it.

    A file of runs is written by `tiedtools w2v --runs`. The mean is over the runs on the whole text, if there are
    such runs, else over all; the interval is computed from z = artanh(cosine): mean +- t s, with the standard deviation
    s of the runs that have all words, or, from 40 runs on, the 2.5 and 97.5 percentiles, moved to this mean. The
    interval of a difference is Welch's.
    """
    from tiedtools.api.runs import Runs
    from tiedtools.evaluation.runsets import runs_of
    from tiedtools.evaluation.uncertainty import difference, estimate

    if len(terms) % 2:
        raise click.UsageError(f"give pairs of words, not {counted(len(terms), 'word')}")
    pairs, rows, values = [*zip(terms[::2], terms[1::2])], [], []
    for path in filter(None, [files, other]):
        runs = Runs.of(runs_of(path, skip_bad=None))
        try:
            of_file = [runs.cosines(a, b) for a, b in pairs]
        except UnknownWord as error:
            raise TiedtoolsError(f"{path}: {error}") from None
        values.append(of_file)
        rows += [(*pair, estimate(*of_pair), path) for pair, of_pair in zip(pairs, of_file)]
    for pair, (one, one_whole), (two, two_whole) in zip(pairs, *values) if other else ():
        gap = difference(one, two, one_whole, two_whole)
        rows.append((*pair, gap, f"difference ({other} - {files})"))
    results = [
        dict(a=a, b=b, cosine=value.mean, low=value.low, high=value.high, runs=value.n, file=file)
        for a, b, value, file in rows
    ]
    lines = [
        {"a": a, "b": b, "cosine": brief(value.mean), "95% interval": span(value.low, value.high), "runs": value.n,
         **({"file": file} if other else {})}
        for a, b, value, file in rows
    ]  # fmt: skip
    return Answer(aligned(lines, 2), {"cosines": results})


@command("stability", "Measure how stable the neighbors of words are over training runs.", reads="path", writes="plot")
@click.argument("path", metavar="RUNS")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@integer("top", 10, "Number of nearest neighbors.", also="k")
@integer("sample", 200, "Number of words drawn from each band of frequency.")
@option("below", type=Finite(0, 1), help="Print the words drawn whose share is below this, instead of the bands.")
@integer("seed", 1, "Random seed of the sample.", least=0, metavar=None)
@option("plot", metavar="FILE", help="Also plot the share of each word drawn by its rank, as .png or .svg.")
@json_option("Print one JSON object instead of a table.")
def stability(
    path: str, words: tuple[str, ...], top: int, sample: int, below: float | None, seed: int, plot: str | None
) -> Answer:
    """Print the share of a word's nearest neighbors that two training runs have in common.

    RUNS is written by `tiedtools w2v --runs`. The share is the mean over all pairs of runs that have the word. Without
    WORD, the table has a line for each band of word frequency: the ranks, the number of words drawn, the lowest count
    in the band, the mean number of runs that have a word, and the mean share with its 95% interval over words. In one
    run, trust only neighbors that two resamples of the same documents share.
    """
    from tiedtools.evaluation import uncertainty
    from tiedtools.vectors.runs import Runs

    if words:
        warn_idle(click.get_current_context(), dict.fromkeys(("sample", "seed"), "with WORD"))
    runs = Runs.read(path)
    if top >= (n := int((runs.counts > 0).sum())):  # a slice lacks words of the others
        raise TiedtoolsError(f"{path}: has {n} words, too few for {top} neighbors; lower `top`")
    index = runs.index
    if unknown := [word for word in words if word not in index]:
        raise TiedtoolsError(f"{path}: no vector for {unknown[0]!r}; check its spelling")
    if words:
        rows = [index[word] for word in words]
        lines, measured = [], dict(zip(rows, uncertainty.stability(runs, rows, top).tolist()))
    else:
        lines, measured = uncertainty.bands(runs, sample, seed, top)
    if plot:
        from tiedtools.evaluation import pictures

        with pictures.picture(plot) as axes:
            ranks = {row: rank for rank, row in enumerate(uncertainty.by_rank(runs).tolist(), 1)}
            axes.scatter([ranks.get(row, math.nan) for row in measured], [*measured.values()], s=8)
            axes.set(xscale="log", xlabel="rank by frequency", ylim=(0, 1))
            axes.set_ylabel(f"share of {top} neighbors common to two runs")
    if words or below is not None:
        shown = {row: share for row, share in measured.items() if below is None or share < below}
        present = (runs.present > 0).sum(0)
        lines = [
            dict(word=runs.words[row], count=int(runs.counts[row]), runs=int(present[row]), shared=share)
            for row, share in shown.items()
        ]
    return Answer(aligned(lines), dict(vectors=path, runs=len(runs), top=top, results=lines))
