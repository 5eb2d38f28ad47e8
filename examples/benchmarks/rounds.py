"""Shared parts of all benchmarks: the interface of contenders, the measurement in turns, and the table."""

import statistics

from tiedtools.base.messages import log
from tiedtools.base.version import __version__
from tiedtools.text.sources import counted


class Contender:
    """A program that can run with several numbers of threads.

    name     name of its rows
    ours     whether it is tiedtools
    peer     rows of other programs show the ratio to the first row of tiedtools with equal `peer`; None: no ratio
    alone    whether the program has only one thread; it is measured once, with the first number of threads
    threads  numbers of threads to measure; None: all
    """

    name: str
    ours, alone = False, False
    peer, threads = None, None

    def run(self, threads):
        """Run once; return a dict of the speed, `rate`, in units of work per second, and other figures."""
        raise NotImplementedError

    def columns(self, speed, threads, runs):
        """Return additional columns of a row, a dict. speed: the median rate; runs: the results of `run`."""
        return {}

    def measured_with(self, threads):
        """Select from `threads` the numbers of threads that this contender is measured with."""
        return threads[:1] if self.alone else [t for t in threads if self.threads is None or t in self.threads]


def in_turns(contenders, threads, runs, unit, machine=None):
    """Run all contenders `runs` times with each number of threads; return {(contender, threads): results of `run`}.

    Runs of different contenders alternate, so that a slow period of the machine affects all equally. The result has
    the order of the contenders. `machine` measures the hardware in each round, before the contenders.
    """
    pairs = [(c, t) for t in threads for c in contenders if t in c.measured_with(threads)]
    results = {(c, t): [] for c in contenders for t in c.measured_with(threads)}
    for r in range(runs):
        for c, t in pairs:
            if machine and c is contenders[0]:
                machine.measure(t)
            results[c, t].append(c.run(t))
            rate = results[c, t][-1]["rate"]
            log.info(f"run {r + 1} of {runs}: {c.name}, {counted(t, 'thread')}: {rate:,.0f} {unit}/s")
    return results


def rows(results, unit):
    """Return the table rows, dicts, for the results of `in_turns`: the median speed, the slowest, and the fastest."""
    table, ours = [], {}
    for (c, t), runs in results.items():
        rates = [run["rate"] for run in runs]
        speed = statistics.median(rates)
        row = {"name": c.name, "threads": 1 if c.alone else t, f"{unit}_per_s": speed}
        row |= dict(slowest=min(rates), fastest=max(rates))
        if c.ours:
            ours.setdefault((c.peer, t), speed)
        elif c.peer is not None:
            row["ratio"] = ours[c.peer, t] / speed
        table.append(row | c.columns(speed, t, runs))
    return table


def peaks(result, describe):
    """Yield a line with the peak rates for each number of threads; describe(kind) names a kind of memory rows."""
    for threads, flops in result["gflops"].items():
        moved = (f", {rate:,.0f} GB/s in rows of {describe(kind)}" for kind, rate in result["gbytes"][threads].items())
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


def report(result, heading, *sections):
    """Format a result as text: the machine, the heading, the table of its rows, and sections, lists of lines."""
    cores = f", {counted(result['cores'], 'core')}" if "cores" in result else ""
    head = [f"tiedtools {__version__} on {result['processor']}{cores}", heading]
    return "\n\n".join("\n".join(lines) for lines in (head, aligned(result["rows"]), *sections) if lines) + "\n"
