"""Rounds of all contenders, and rows of figures as a table."""

import statistics

from tiedtools.messages import log
from tiedtools.text.sources import counted


def in_turns(contenders, threads, runs, go, tell, machine=None):
    """Call go(contender, number of threads) `runs` times for all: {(contender, threads): list of what it returned}.

    The result has them in their order, each with all its threads; they take turns, so that a slow minute of the machine
    hurts all alike. A contender with `alone` true knows one thread only and is called with the first of `threads`.

    tell     what to say of a result;  machine  called with a number of threads before the contenders, in each round
    """
    results = {(c, t): [] for t in threads for c in contenders if t == threads[0] or not getattr(c, "alone", False)}
    for r in range(runs):
        for c, t in results:
            if machine and c is contenders[0]:
                machine(t)
            results[c, t].append(go(c, t))
            log.info(f"run {r + 1} of {runs}: {c.name}, {counted(t, 'thread')}: {tell(results[c, t][-1])}")
    return dict(sorted(results.items(), key=lambda item: contenders.index(item[0][0])))


def spread(name, speeds):
    """Columns of a row: the median under `name`, slowest and fastest."""
    speeds = list(speeds)
    return {name: statistics.median(speeds), "slowest": min(speeds), "fastest": max(speeds)}


def peaks(result, rows):
    """What `gflops` and `gbytes` of a result say, a line for each number of threads; rows(kind of them): in words."""
    for threads, flops in result["gflops"].items():
        moved = (f", {rate:,.0f} GB/s in rows of {rows(kind)}" for kind, rate in result["gbytes"][threads].items())
        yield f"{counted(threads, 'thread')}: {flops:,.0f} GFLOP/s in products of tiles{''.join(moved)}"


# key: (head, format); numbers stand to the right.
COLUMNS = {
    "name": ("", ""),
    "part": ("", ""),
    "threads": ("threads", "d"),
    "words_per_s": ("words/s", ",.0f"),
    "tokens_per_s": ("tokens/s", ",.0f"),
    "slowest": ("slowest", ",.0f"),
    "fastest": ("fastest", ",.0f"),
    "ratio": ("ours / its", ".2f"),
    "seconds": ("seconds", ",.1f"),
    "microseconds": ("us", ",.2f"),
    "of_step": ("of the step", ".0%"),
    "megabytes": ("MB", ",.0f"),
    "kflops": ("kFLOP", ",.0f"),
    "gflops": ("GFLOP/s", ",.0f"),
    "limit": ("limit", ",.0f"),
    "share": ("share", ".0%"),
    "bound": ("bound by", ""),
}


def aligned(rows):
    """Rows, dicts with keys of COLUMNS and others, as aligned lines; what a row does not have stays empty."""
    columns = [key for key in COLUMNS if any(key in row for row in rows)]
    cells = [[COLUMNS[key][0] for key in columns]]
    cells += [[format(row[key], COLUMNS[key][1]) if key in row else "" for key in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    align = [str.rjust if COLUMNS[key][1] else str.ljust for key in columns]
    return ["  ".join(f(cell, w) for f, cell, w in zip(align, line, widths)).rstrip() for line in cells]
