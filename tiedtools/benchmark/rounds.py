"""The measuring itself: rounds of all contenders, and what comes of them as rows of a table."""

import contextlib
import platform
import statistics

from tiedtools import __version__
from tiedtools.benchmark.contenders import Ours, contenders, whole
from tiedtools.benchmark.limits import Machine, kept_fraction, mean_context, needs
from tiedtools.report import say


def measure(task, variants, modes, rivals, threads, runs, out=None):
    """Measure all contenders with each number of `threads`, `runs` times, and return what --json shows.

    out  a file that is written over and over, to measure whole processes; or None for training alone
    """
    words = int(task.text.vocab.counts[1:].sum())
    # All take turns, so that a slow minute of the machine hurts all alike.
    with contextlib.ExitStack() as processes:
        everyone = contenders(task, variants, modes, rivals, processes)
        config = everyone[0].config
        models = sorted({matrices(c) for c in everyone if isinstance(c, Ours)})
        machine = None if out else Machine(task.text.vocab, config, models)
        results = {(c, t): [] for t in threads for c in everyone}
        for r in range(runs):
            for c, t in results:
                if machine and c is everyone[0]:
                    machine.measure(t)
                result = whole(c, t, out) if out else c.train(t)
                results[c, t].append(result)
                speed = words * (1 if out else result[1]) / result[0]
                say(f"run {r + 1} of {runs}: {c.name}, {number(t)}: {speed:,.0f} words/s")

    kept, context = kept_fraction(task.text.vocab, config.sample), mean_context(task.text, config)
    rows = []
    for c, t in sorted(results, key=lambda key: everyone.index(key[0])):
        found = results[c, t]
        speeds = [words * (1 if out else share) / seconds for seconds, share in found]
        row = dict(
            name=c.name, threads=t, words_per_s=statistics.median(speeds), slowest=min(speeds), fastest=max(speeds)
        )
        if out:
            row["seconds"] = statistics.median(seconds for seconds, _ in found)
            row["megabytes"] = max(peak for _, peak in found) / 1e6
        elif isinstance(c, Ours):
            flops, moved = needs(c.config, context)
            slow = {"flops": flops / machine.flops[t], "bytes": moved / machine.bytes[t, matrices(c)]}
            bound = max(slow, key=slow.get)
            limit = 1 / (kept * slow[bound])
            row |= dict(limit=limit, share=row["words_per_s"] / limit, bound=bound, flops=flops, bytes=moved)
        rows.append(row)
    return dict(
        processor=processor(), words=words, vocabulary=len(task.text.vocab), kept=kept, context=context,
        **task.options, runs=runs, whole=bool(out),
        gflops={} if out else {t: machine.flops[t] / 1e9 for t in threads},
        gbytes={} if out else {t: {n: machine.bytes[t, n] / 1e9 for n in models} for t in threads},
        rows=rows,
    )  # fmt: skip


def matrices(contender):
    return 1 if contender.config.sharing != "untied" else 2


HEAD = {
    "name": "", "threads": "threads", "words_per_s": "words/s", "slowest": "slowest", "fastest": "fastest",
    "seconds": "seconds", "megabytes": "MB", "limit": "limit", "share": "share", "bound": "bound by",
}  # fmt: skip
MODELS = {1: "tied", 2: "untied"}  # by matrices
FORM = {"seconds": ",.1f", "share": ".0%", "name": "", "bound": "", "threads": "d"}


def number(threads):
    return f"{threads} thread{'s' * (threads > 1)}"


def processor():
    """The name of this machine's processor."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def table(result):
    """The result of `measure` as aligned lines."""
    columns = [name for name in HEAD if any(name in row for row in result["rows"])]
    cells = [[HEAD[name] for name in columns]]
    cells += [[format(row[k], FORM.get(k, ",.0f")) if k in row else "" for k in columns] for row in result["rows"]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    align = [str.ljust if name in ("name", "bound") else str.rjust for name in columns]
    lines = ["  ".join(f(cell, w) for f, cell, w in zip(align, line, widths)).rstrip() for line in cells]
    head = (
        f"tiedtools {__version__} on {result['processor']}\n"
        f"{result['words']:,} words, vocabulary {result['vocabulary']:,}; size {result['size']}, window {result['window']},"
        f" {result['negative']} negatives, sample {result['sample']:g}: {result['kept']:.0%} of the words kept,"
        f" with {result['context']:.1f} words of context"
    )
    foot = [
        f"{number(t)}: {flops:,.0f} GFLOP/s in products of tiles"
        + "".join(f", {rate:,.0f} GB/s in rows of {MODELS[n]} models" for n, rate in result["gbytes"][t].items())
        for t, flops in result["gflops"].items()
    ]
    return "\n".join([head, "", *lines, *[""] * bool(foot), *foot]) + "\n"
