"""Benchmark of word vectors on several ranks: measure `tiedtools w2v` under MPI, and format the table."""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys

from benchmarks import rounds
from benchmarks.processes import failed, running
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores, processor_name
from tiedtools.models.word2vec.ranksrun import DELAY
from tiedtools.text.counting import count
from tiedtools.text.sources import counted

TRAFFIC = "exchanges", "exchanged_mb", "waiting_share"  # in the last line of the log


def launcher():
    """Return the path of mpiexec. Raises TiedtoolsError if it or mpi4py is missing."""
    folders = os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)
    path = shutil.which("mpiexec", path=os.pathsep.join(folders))
    for name, installed in ("mpiexec", path), ("mpi4py", importlib.util.find_spec("mpi4py")):
        if not installed:
            raise TiedtoolsError(f'{name} is not installed; run pip install "tiedtools[mpi]" mpich')
    return path


class Contender(rounds.Contender):
    """`tiedtools w2v` with `options`, its arguments, on a number of ranks; 0: one process without MPI.

    threads  numbers of threads of each rank to measure
    log      path of the log, written by each run
    delay    minimum duration of an exchange in seconds
    share    proportion of the tokens that count as words
    fair     number of threads of the process to compare with
    speeds   {threads: words/s} of this process
    """

    def __init__(self, ranks, threads, options, log, delay=0.0, share=1.0, fair=None, speeds=None):
        self.ranks, self.threads, self.log = ranks, threads, log
        self.share, self.fair, self.speeds = share, fair, speeds
        self.name = counted(ranks, "rank") if ranks else "without MPI"
        launch = [launcher(), "-n", str(ranks)] if ranks else []
        self.command = [*launch, sys.executable, "-m", "tiedtools", "w2v", *options, "--log-json", log]
        self.environment = {**os.environ, DELAY: str(delay)}

    def run(self, threads):
        """Train in new processes; return the figures of the last two lines of the log, and the rate."""
        command = [*self.command, "-threads", str(threads)]
        pipes = dict(stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with running(command, env=self.environment, **pipes) as process:
            _, errors = process.communicate()
        if process.returncode:  # the launcher also writes to standard error
            raise failed(self.name, "\n".join(line for line in errors.splitlines() if "tiedtools:" in line) or errors)
        with open(self.log) as lines:
            *_, epoch, last = map(json.loads, lines)
        os.remove(self.log)
        return last | epoch | dict(rate=epoch["words_per_s"] * self.share)

    def columns(self, speed, threads, runs):
        if not self.ranks:
            self.speeds[threads] = speed
            return {}
        traffic = {name: statistics.median(run[name] for run in runs) for name in TRAFFIC}
        return dict(ranks=self.ranks, of_process=speed / self.speeds[self.fair], **traffic)


def measure(path, options, tie_signs, ranks, threads, runs, exchange, log, delay=0.0):
    """Measure `runs` runs with each number of ranks and of one process; return the result that --json shows.

    path        path of the text, an uncompressed file
    options     options of w2v, a dict with the names of the command line
    tie_signs   train vectors tied with fixed signs
    threads     threads of each rank; the process is measured with one and with the total of all ranks, up to the cores
    exchange    options of the exchange, a dict; None: default
    log, delay  as for Contender, but `delay` is in milliseconds
    """
    vocab, _ = count([path])[0].vocab(options["min-count"], None)
    words, tokens = int(vocab.counts[1:].sum()), int(vocab.counts.sum())
    common, extra = ([f"-{k}={v}" for k, v in group.items() if v is not None] for group in (options, exchange))
    command = [*common, *["--tie-signs"] * tie_signs, "-debug=0", "-binary=1", "-output", os.devnull, path]
    fair = {n: min(n * threads, available_cores()) for n in ranks}  # threads of the process to compare with
    shared = dict(share=words / tokens, speeds={})
    contenders = [Contender(0, sorted({1, *fair.values()}), command, log, **shared)]
    contenders += [Contender(n, [threads], extra + command, log, delay / 1000, fair=fair[n], **shared) for n in ranks]
    thread_counts = sorted({t for contender in contenders for t in contender.threads})
    results = rounds.in_turns(contenders, thread_counts, runs, "words")
    return dict(
        processor=processor_name(), cores=available_cores(), words=words, vocabulary=len(vocab), **options,
        tie_signs=tie_signs, **exchange, delay=delay, runs=runs, rows=rounds.rows(results, "words"),
    )  # fmt: skip


def table(result):
    """Format the result of `measure` as text."""
    kind = f"{'CBOW' if result['cbow'] else 'skip-gram'}, {'tied, fixed signs' if result['tie_signs'] else 'untied'}"
    heading = (
        f"{kind}; {result['words']:,} words, {counted(result['iter'], 'epoch')}, vocabulary {result['vocabulary']:,};"
        f" size {result['size']}, window {result['window']}, {result['negative']} negatives, sample"
        f" {result['sample']:g}; {result['exchange-precision']} exchanges"
    )
    heading += f" of at least {result['delay']:g} ms" * bool(result["delay"])
    return rounds.report(result, heading)
