"""`tiedtools bench mpi`: measurement of word2vec on several ranks, and the result table."""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores, processor_name
from tiedtools.base.version import __version__
from tiedtools.benchmark.processes import failed, running
from tiedtools.benchmark.rounds import aligned, in_turns, spread
from tiedtools.models.word2vec.ranksrun import DELAY
from tiedtools.text.counting import count
from tiedtools.text.sources import counted

TRAFFIC = "exchanges", "exchanged_mb", "waiting_share"  # in the last line of the log


def launcher():
    """Return the path of mpiexec. Raises TiedtoolsError if it or mpi4py is missing."""
    folders = os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)
    path = shutil.which("mpiexec", path=os.pathsep.join(folders))
    for name, found in ("mpiexec", path), ("mpi4py", importlib.util.find_spec("mpi4py")):
        if not found:
            raise TiedtoolsError(f'{name} is not installed; run pip install "tiedtools[mpi]" mpich')
    return path


class Contender:
    """`tiedtools w2v` with `options`, its arguments, on a number of ranks; 0: one process without MPI.

    threads  numbers of threads of each rank to measure
    log      path of the log, written by each run
    delay    seconds that each exchange takes at least
    """

    def __init__(self, ranks, threads, options, log, delay=0.0):
        self.ranks, self.threads, self.log = ranks, threads, log
        self.name = counted(ranks, "rank") if ranks else "without MPI"
        launch = [launcher(), "-n", str(ranks)] if ranks else []
        self.command = [*launch, sys.executable, "-m", "tiedtools", "w2v", *options, "--log-json", log]
        self.environment = {**os.environ, DELAY: str(delay)}

    def train(self, threads):
        """Train in new processes; return the figures of the log's last two lines, a dict."""
        command = [*self.command, "-threads", str(threads)]
        pipes = dict(stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with running(command, env=self.environment, **pipes) as process:
            _, errors = process.communicate()
        if process.returncode:  # the launcher also writes to standard error
            raise failed(self.name, "\n".join(line for line in errors.splitlines() if "tiedtools:" in line) or errors)
        with open(self.log) as lines:
            *_, epoch, last = map(json.loads, lines)
        os.remove(self.log)
        return last | epoch


def measure(path, options, tie_signs, ranks, threads, runs, exchange, log, delay=0.0):
    """Measure `runs` runs with each number of ranks and of one process; return the result that --json shows.

    path        of the text, an uncompressed file
    options     of w2v, a dict with the names of the command line
    tie_signs   train vectors tied with fixed signs
    threads     of each rank; one process is measured with one, and with as many as all ranks have, up to the cores
    exchange    options of the exchange, a dict; None: default
    log         as for Contender
    delay       minimum duration of an exchange in milliseconds
    """
    vocab, _ = count([path])[0].vocab(options["min-count"], None)
    words, tokens = int(vocab.counts[1:].sum()), int(vocab.counts.sum())
    arguments = lambda options: [f"-{name}={value}" for name, value in options.items() if value is not None]
    given = [*arguments(options), *["--tie-signs"] * tie_signs, "-debug=0", "-binary=1", "-output", os.devnull, path]
    fair = {n: min(n * threads, available_cores()) for n in ranks}  # threads of the process to compare with
    everyone = [Contender(0, sorted({1, *fair.values()}), given, log)]
    everyone += [Contender(n, [threads], [*arguments(exchange), *given], log, delay / 1000) for n in ranks]
    speed = lambda figures: figures["words_per_s"] * words / tokens
    measured = sorted({t for contender in everyone for t in contender.threads})
    results = in_turns(everyone, measured, runs, Contender.train, lambda figures: f"{speed(figures):,.0f} words/s")
    rows, alone = [], {}
    for (contender, t), found in results.items():
        row = dict(name=contender.name, threads=t, **spread("words_per_s", map(speed, found)))
        if contender.ranks:
            row |= dict(ranks=contender.ranks, of_process=row["words_per_s"] / alone[fair[contender.ranks]])
            row |= {name: statistics.median(figures[name] for figures in found) for name in TRAFFIC}
        else:
            alone[t] = row["words_per_s"]
        rows.append(row)
    return dict(
        processor=processor_name(), cores=available_cores(), words=words, vocabulary=len(vocab), **options,
        tie_signs=tie_signs, **exchange, delay=delay, runs=runs, rows=rows,
    )  # fmt: skip


def table(result):
    """Format the result of `measure` as text."""
    kind = f"{'CBOW' if result['cbow'] else 'skip-gram'}, {'tied, fixed signs' if result['tie_signs'] else 'untied'}"
    head = (
        f"tiedtools {__version__} on {result['processor']}, {counted(result['cores'], 'core')}\n"
        f"{kind}; {result['words']:,} words, {counted(result['iter'], 'epoch')}, vocabulary {result['vocabulary']:,};"
        f" size {result['size']}, window {result['window']}, {result['negative']} negatives, sample"
        f" {result['sample']:g}; {result['exchange-precision']} exchanges"
    )
    head += f" of at least {result['delay']:g} ms" * bool(result["delay"])
    return "\n".join([head, "", *aligned(result["rows"])]) + "\n"
