"""`tiedtools bench w2v`: measurement of all contenders, and the result table."""

import contextlib
import statistics

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import processor_name
from tiedtools.base.version import __version__
from tiedtools.benchmark.processes import whole
from tiedtools.benchmark.rounds import aligned, in_turns, peaks, spread
from tiedtools.benchmark.w2vcontenders import Ours, contenders
from tiedtools.benchmark.w2vlimits import Machine, kept_fraction, mean_context, needs


def measure(task, variants, modes, rivals, threads, runs, out=None):
    """Measure all contenders `runs` times with each number of `threads`; return the result that --json shows.

    out  path of a vector file, overwritten in every run, to measure whole processes; None: training alone
    """
    words = int(task.text.vocab.counts[1:].sum())
    kept = kept_fraction(task.text.vocab, task.options["sample"])
    if not kept:
        raise TiedtoolsError(f"--sample {task.options['sample']:g} leaves no word to train on; give a larger one, or 0")
    with contextlib.ExitStack() as processes:
        everyone = contenders(task, variants, modes, rivals, processes)
        config = everyone[0].config
        models = sorted({matrices(c) for c in everyone if isinstance(c, Ours)})
        machine = None if out else Machine(task.text.vocab, config, models)
        if out:
            go = lambda c, t: whole(c.name, c.command(t, out))
            speed = lambda result: words / result[0]
        else:
            go = lambda c, t: c.train(t)
            speed = lambda result: words * result[1] / result[0]
        tell = lambda result: f"{speed(result):,.0f} words/s"
        results = in_turns(everyone, threads, runs, go, tell, machine and machine.measure)

    context = mean_context(task.text, config)
    rows = []
    for (c, t), found in results.items():
        row = dict(name=c.name, threads=t, **spread("words_per_s", map(speed, found)))
        if out:
            row["seconds"] = statistics.median(seconds for seconds, _ in found)
            row["megabytes"] = max(peak for _, peak in found) / 1e6
        elif machine and isinstance(c, Ours):
            flops, moved = needs(c.config, context, machine.half(t))
            centers, bound = machine.limit(flops, moved, t, matrices(c))
            limit = centers / kept
            row |= dict(limit=limit, share=row["words_per_s"] / limit, bound=bound, flops=flops, bytes=moved)
        rows.append(row)
    return dict(
        processor=processor_name(), words=words, vocabulary=len(task.text.vocab), kept=kept, context=context,
        **task.options, runs=runs, whole=bool(out),
        gflops={t: machine.flops[t] / 1e9 for t in threads} if machine else {},
        gbytes={t: {n: machine.bytes[t, n] / 1e9 for n in models} for t in threads} if machine else {},
        rows=rows,
    )  # fmt: skip


def matrices(contender):
    """Return the number of embedding matrices that a contender trains: 1 if they are tied, otherwise 2."""
    return 1 if contender.config.tying != "untied" else 2


MODELS = {1: "tied", 2: "untied"}  # by matrices


def table(result):
    """Format the result of `measure` as text."""
    head = (
        f"tiedtools {__version__} on {result['processor']}\n"
        f"{result['words']:,} words, vocabulary {result['vocabulary']:,}; size {result['size']},"
        f" window {result['window']}, {result['negative']} negatives, sample {result['sample']:g}:"
        f" {result['kept']:.0%} of the words kept, with {result['context']:.1f} words of context"
    )
    foot = [*peaks(result, lambda count: f"{MODELS[count]} models")]
    return "\n".join([head, "", *aligned(result["rows"]), *[""] * bool(foot), *foot]) + "\n"
