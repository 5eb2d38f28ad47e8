"""`tiedtools bench lm` and `bench lstm`: training speed of language models, compared to hardware limits and PyTorch."""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import announced
from tiedtools.base.processor import processor_name
from tiedtools.base.version import __version__
from tiedtools.benchmark import subwords, zipf
from tiedtools.benchmark.machine import Multiplication
from tiedtools.benchmark.processes import Worker, refuse_uninstalled
from tiedtools.benchmark.rounds import aligned, in_turns, spread
from tiedtools.models.lm.config import LstmConfig
from tiedtools.text.sources import counted

# name -> precision of matrix products
RIVALS = {"torch": "float32", "torch-bf16": "bfloat16", "torch-compile": "float32", "torch-compile-bf16": "bfloat16"}
# Models of other cells and regularizers: name -> fields of Task.
CELLS = {
    "awd": dict(
        layer_widths="1150,1150,400", layers=3, hidden=400, size=400, tying="tied", dropout_kind="locked",
        drop_weights=0.5, ar=2.0, tar=1.0,
    ),  # Merity et al.
    "gru": dict(cell="gru", hidden=650, size=650, tying="tied"),
    "rhn": dict(
        cell="rhn", depth=10, hidden=830, size=830, tying="tied", layers=1, dropout_kind="gal"
    ),  # Zilly et al., PTB
}  # fmt: skip
WINDOWS = 50  # length of the text in windows; then it repeats
WARM_UP = 2  # windows


@dataclasses.dataclass(frozen=True)
class Task:
    """Settings of a benchmark run, passed to a contender's process as JSON.

    path       file of int32 IDs [rows, batch]; each row is a step whose targets are the next row
    hidden, size, tying, layers, layer_widths, batch, steps, cell, depth, dropout_kind, drop_weights, ar, tar
               as in LstmConfig
    dropout    probability at all sites of this kind of dropout, except word types
    lr, clip   of SGD, for the mean loss over a window's tokens
    precision  of matrix products
    subwords   as in LstmConfig: word vectors are composed, and all of the composition is reused
    compile    PyTorch compiles a step of a cell that it has no layer for
    """

    path: str
    vocabulary: int
    hidden: int
    size: int
    tying: str = "untied"
    layers: int = 2
    layer_widths: str | None = None
    batch: int = 20
    steps: int = 35
    dropout: float = 0.3
    lr: float = 1.0
    clip: float = 0.25
    threads: int = 1
    precision: str = "float32"
    subwords: str | None = None
    cell: str = "lstm"
    depth: int | None = None
    dropout_kind: str = "standard"
    drop_weights: float = 0.0
    ar: float = 0.0
    tar: float = 0.0
    compile: bool = False

    @property
    def config(self):
        """The LstmConfig, without dropout."""
        names = "hidden", "size", "tying", "layers", "layer_widths", "subwords", "cell", "depth"
        config: Any = LstmConfig(**{name: getattr(self, name) for name in names})
        return config

    @classmethod
    def of(cls, path, variant, options):
        """Return the task of a variant; options: other fields."""
        return cls(path, **{**options, **shape(variant)})

    @property
    def rows(self):
        return WINDOWS * self.steps + 1

    @property
    def given(self):
        """What a worker gets, a dict."""
        return dataclasses.asdict(self) | dict(rows=self.rows)

    def tokens(self, windows):
        """Return the number of tokens in that many windows."""
        return windows * self.steps * self.batch

    def write(self):
        """Write the text: independent words with Zipfian frequencies and a fixed random seed."""
        ids = zipf.draw(np.random.default_rng(1), self.rows * self.batch, zipf.shares(self.vocabulary))
        ids.astype(np.int32).tofile(self.path)

    def flops(self):
        """Return {part of a step: floating-point operations per token}, forward and backward.

        Only matrix products count: each weight takes one multiply-add in the forward pass and two in the backward pass,
        for the gradients of the input and of the weight. Embedding rows are only copied.
        """
        c = self.config
        m, n = c.width, c.hidden
        gates, cell = {"lstm": 4, "gru": 3, "rhn": 2}[c.cell], c.cell.upper()
        pairs = itertools.pairwise([m, *c.units])
        weights = sum(gates * after * (before + (c.depth or 1) * after) for before, after in pairs)
        linear = c.tying == "linear"
        parts = {f"{cell} forward": 2 * weights, f"{cell} backward": 4 * weights, "L": 6 * n * m * linear}
        parts |= {"softmax": 6 * self.vocabulary * (m if linear else n)}
        return parts | (subwords.flops(self) if self.subwords else {})


def shape(variant):
    """Parse "HIDDEN/EMB", "HIDDEN/EMB-tied", or "HIDDEN/EMB-linear" into a dict of hidden, size, and tying.

    The name of a kind of subwords gives its small model, and names in CELLS give theirs. Raises TiedtoolsError for any
    other string, and if tied sizes differ.
    """
    if variant in CELLS:
        return CELLS[variant]
    if variant in subwords.KINDS:
        return dict(subwords.KINDS[variant].sizes, subwords=variant)
    found = re.fullmatch(r"([1-9]\d{0,4})/([1-9]\d{0,4})(?:-(tied|linear))?", variant)
    if not found:
        raise Contradiction(
            f"--variants: {variant!r} is not HIDDEN/EMB, HIDDEN/EMB-tied, or HIDDEN/EMB-linear, or"
            f" {', '.join([*subwords.KINDS, *CELLS])}"
        )
    given: dict = dict(hidden=int(found[1]), size=int(found[2]), tying=found[3] or "untied")
    LstmConfig(**given)
    return given


def refuse_missing(rivals, choices=RIVALS):
    """Raise TiedtoolsError for a rival that is not one of `choices`, or not installed."""
    for rival in rivals:
        if rival not in choices:
            raise Contradiction(f"--against {rival}: no such rival; choose {' or '.join(choices)}")
        refuse_uninstalled("torch", rival)


class Contender:
    """A program trained in separate processes, one per number of threads, so that memory is measured for each.

    modules  the workers of tiedtools and of its rivals
    """

    modules = "lstmworker", "torchlm"

    def __init__(self, program, variant, task, processes):
        """Prepare the contender. program: "tiedtools" or one of RIVALS; processes: an ExitStack for its processes."""
        self.name, self.ours, self.processes = f"{program} {variant}", program == "tiedtools", processes
        compiled = dict(compile=True) if program.startswith("torch-compile") else {}
        self.task = dataclasses.replace(task, precision=RIVALS.get(program, task.precision), **compiled)
        self.module = f"tiedtools.benchmark.{self.modules[not self.ours]}"
        self.workers = {}

    def start(self, threads):
        task = dataclasses.replace(self.task, threads=threads)
        worker = Worker(self.name, [sys.executable, "-m", self.module, json.dumps(task.given)], self.processes)
        with announced(f"{self.name}: still starting; the first run compiles kernels", after=10):
            worker(WARM_UP)
        self.workers[threads] = worker

    def train(self, threads, windows):
        """Train; return a dict of seconds, nats per token, peak bytes so far, and, for tiedtools, seconds by part."""
        return self.workers[threads](windows)


def measure(variants, options, rivals, threads, runs, windows, kind=Task, contender=Contender):
    """Measure all contenders with each number of threads and return the result that --json shows.

    variants  strings as parsed by `shape`
    options   other fields of the tasks
    rivals    names in RIVALS
    runs      number of runs of `windows` windows each
    kind, contender  classes of the tasks and the contenders
    """
    found = []
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory(prefix="tiedtools-") as folder:
        machine = Multiplication(stack, options.get("precision", "float32"))
        for variant in variants:
            task = kind.of(os.path.join(folder, "ids"), variant, options)
            task.write()
            with contextlib.ExitStack() as processes:
                everyone = [contender(program, variant, task, processes) for program in ("tiedtools", *rivals)]
                for program in everyone:
                    for t in threads:
                        program.start(t)
                tokens = task.tokens(windows)
                results = in_turns(
                    everyone,
                    threads,
                    runs,
                    lambda program, t: program.train(t, windows),
                    lambda result: f"{tokens / result['seconds']:,.0f} tokens/s",
                    machine.measure,
                )
            found.append((everyone, tokens, results))

    rows = [row for each in found for row in rows_of(*each, threads, machine)]
    libraries = {result["library"] for _, _, all in found for r in all.values() for result in r if "library" in result}
    return dict(
        processor=processor_name(), **options, windows=windows, runs=runs,
        gflops={t: machine.gflops(t) for t in threads},
        libraries=[machine.blas, *sorted(libraries)], rows=rows,
    )  # fmt: skip


def rows_of(everyone, tokens, results, threads, machine):
    """Yield the table rows of one variant, tiedtools first; each run trained on `tokens` tokens."""
    ours = {}
    for c in everyone:
        needed, precision = c.task.flops(), c.task.precision
        flops = sum(needed.values())
        for t in threads:
            runs = results[c, t]
            row = dict(name=c.name, threads=t, **spread("tokens_per_s", (tokens / run["seconds"] for run in runs)))
            speed = row["tokens_per_s"]
            if c.ours:
                ours[t] = speed
                row["parts"] = list(parts_of(needed, tokens, runs, machine.peak(t, precision)))
            else:
                row["ratio"] = ours[t] / speed
            row |= dict(megabytes=max(run["bytes"] for run in runs) / 1e6, flops=flops, gflops=speed * flops / 1e9)
            if c.ours or precision == "float32":
                limit = machine.peak(t, precision) / flops
                row |= dict(limit=limit, share=speed / limit)
            yield row | dict(nats=runs[-1]["nats"])


def parts_of(needed, tokens, runs, peak):
    """Yield a row for each part of a step, with the median time over all runs, per token."""
    total = statistics.median(run["seconds"] for run in runs)
    for part in runs[0]["parts"]:
        seconds = statistics.median(run["parts"][part] for run in runs)
        row = dict(part=part, microseconds=1e6 * seconds / tokens, of_step=seconds / total)
        if needed.get(part):
            rate = needed[part] * tokens / seconds
            row |= dict(flops=needed[part], gflops=rate / 1e9, share=rate / peak)
        yield row


def table(result):
    """Format the result of `measure` as text; see `report`."""
    r = result
    settings = f"vocabulary {r['vocabulary']:,}, batch {r['batch']}, {r['steps']} steps, {r['layers']} layers"
    return report(r, settings, "windows")


def report(result, settings, windows):
    """Format a result as text: all contenders, then the parts of a step with the most threads.

    settings  what is the same for all        windows  the name of the training steps
    """
    r = result
    most = max(r["gflops"])
    parts = [
        dict(name=row["name"], **part) for row in r["rows"] if row["threads"] == most for part in row.get("parts", ())
    ]
    return "\n".join(
        [
            f"tiedtools {__version__} on {r['processor']}",
            f"{settings}, dropout {r['dropout']:g}, tiedtools in {r['precision']};"
            f" {r['windows']} {windows} a run, {r['runs']} run{'s' * (r['runs'] > 1)}",
            "",
            *aligned(r["rows"]),
            "",
            f"Parts of a step, {counted(most, 'thread')}; us, and thousands of operations, for each token",
            "",
            *aligned([dict(part, kflops=part["flops"] / 1e3) if "flops" in part else part for part in parts]),
            "",
            *(
                f"{counted(t, 'thread')}: {rates['tiles']:,.0f} GFLOP/s in products of tiles,"
                f" {rates['sgemm']:,.0f} in NumPy's"
                + (f", {rates['bfloat16']:,.0f} in tiles of bfloat16" if "bfloat16" in rates else "")
                for t, rates in r["gflops"].items()
            ),
            *(f"with {library}" for library in r["libraries"]),
            "",
        ]
    )
