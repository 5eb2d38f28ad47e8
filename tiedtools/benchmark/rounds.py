"""Interleaved measurement of contenders, and formatting of result tables."""

import statistics

from tiedtools.base.messages import log
from tiedtools.text.sources import counted


def in_turns(contenders, threads, runs, go, tell, machine=None):
    """Call go(contender, threads) `runs` times for all; return {(contender, threads): list of results}.

    Runs of different contenders alternate, so that a slow period of the machine affects all equally. The result is in
    the order of the contenders. A single-threaded contender, with `alone` true, is called with the first of `threads`,
    and one that has `threads` with these.

    tell     returns the text to log for a result
    machine  called with the number of threads in each round, before the contenders; None: not called
    """
    own = lambda c: threads[:1] if getattr(c, "alone", False) else getattr(c, "threads", threads)
    results = {(c, t): [] for t in threads for c in contenders if t in own(c)}
    for r in range(runs):
        for c, t in results:
            if machine and c is contenders[0]:
                machine(t)
            results[c, t].append(go(c, t))
            log.info(f"run {r + 1} of {runs}: {c.name}, {counted(t, 'thread')}: {tell(results[c, t][-1])}")
    return dict(sorted(results.items(), key=lambda item: contenders.index(item[0][0])))


def spread(name, speeds):
    """Return columns of a row: the median of the speeds under `name`, and the slowest and fastest."""
    speeds = list(speeds)
    return {name: statistics.median(speeds), "slowest": min(speeds), "fastest": max(speeds)}


def peaks(result, rows):
    """Yield a line with the peak rates for each number of threads; rows(kind) describes a kind of rows."""
    for threads, flops in result["gflops"].items():
        moved = (f", {rate:,.0f} GB/s in rows of {rows(kind)}" for kind, rate in result["gbytes"][threads].items())
        yield f"{counted(threads, 'thread')}: {flops:,.0f} GFLOP/s in products of tiles{''.join(moved)}"


# key: (header, format); columns with a format are right-aligned.
COLUMNS = {
    "name": ("", ""),
    "part": ("", ""),
    "threads": ("threads", "d"),
    "words_per_s": ("words/s", ",.0f"),
    "tokens_per_s": ("tokens/s", ",.0f"),
    "sentences_per_s": ("sentences/s", ",.0f"),
    "slowest": ("slowest", ",.0f"),
    "fastest": ("fastest", ",.0f"),
    "ratio": ("ours / its", ".2f"),
    "of_process": ("x process", ".2f"),
    "exchanges": ("exchanges", ",.0f"),
    "exchanged_mb": ("MB exchanged", ",.0f"),
    "waiting_share": ("waiting", ".0%"),
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
    """Return rows, dicts with keys of COLUMNS and others, as a list of aligned lines; missing cells are empty."""
    columns = [key for key in COLUMNS if any(key in row for row in rows)]
    cells = [[COLUMNS[key][0] for key in columns]]
    cells += [[format(row[key], COLUMNS[key][1]) if key in row else "" for key in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    align = [str.rjust if COLUMNS[key][1] else str.ljust for key in columns]
    return ["  ".join(f(cell, w) for f, cell, w in zip(align, line, widths)).rstrip() for line in cells]
