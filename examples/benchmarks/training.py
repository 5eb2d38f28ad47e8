"""Measure models that train in batches: tiedtools and PyTorch in worker processes, and the parts of a step.

`kind` is the module lm or nmt. Each has a dataclass Task; `shape`, which returns its fields for a variant; WORKERS, the
worker functions of tiedtools and PyTorch; STEPS, the name of training steps; and `heading`, which describes settings.
"""

import contextlib
import dataclasses
import os
import statistics
import tempfile
import threading

from benchmarks import rounds
from benchmarks.machine import Multiplication
from benchmarks.processes import Worker, worker
from tiedtools.base.messages import log
from tiedtools.base.processor import processor_name
from tiedtools.text.sources import counted

# name -> precision of matrix products
RIVALS = {"torch": "float32", "torch-bf16": "bfloat16", "torch-compile": "float32", "torch-compile-bf16": "bfloat16"}
WARM_UP = 2  # steps


class Contender(rounds.Contender):
    """A program in separate processes, one per number of threads, so that memory is measured for each.

    program    "tiedtools" or one of RIVALS
    task       a Task of the benchmark
    workers    the worker functions of tiedtools and PyTorch
    steps      number of training steps of a run
    machine    a Multiplication
    processes  an ExitStack that ends the processes
    """

    def __init__(self, program, variant, task, workers, steps, machine, processes):
        self.name, self.ours, self.peer = f"{program} {variant}", program == "tiedtools", variant
        compiled = dict(compile=True) if program.startswith("torch-compile") else {}
        self.task = dataclasses.replace(task, precision=RIVALS.get(program, task.precision), **compiled)
        self.function, self.steps, self.machine, self.processes = workers[not self.ours], steps, machine, processes
        self.tokens, self.workers = task.tokens(steps), {}

    def start(self, threads):
        task = dataclasses.asdict(dataclasses.replace(self.task, threads=threads))
        self.workers[threads] = Worker(self.name, worker(self.function, task), self.processes)
        timer = threading.Timer(10, log.info, [f"{self.name}: still starting; the first run compiles kernels"])
        timer.start()
        try:
            self.workers[threads](WARM_UP)
        finally:
            timer.cancel()

    def run(self, threads):
        result = self.workers[threads](self.steps)
        return result | dict(rate=self.tokens / result["seconds"])

    def columns(self, speed, threads, runs):
        needed = self.task.flops()
        flops = sum(needed.values())
        row = dict(megabytes=max(run["bytes"] for run in runs) / 1e6, flops=flops, gflops=speed * flops / 1e9)
        if self.ours or self.task.precision == "float32":
            peak = self.machine.peak(threads, self.task.precision)
            row |= dict(limit=peak / flops, share=speed * flops / peak)
        if self.ours:
            row["parts"] = list(parts_of(needed, self.tokens, runs, peak))
        return row | dict(nats=runs[-1]["nats"])


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


def measure(kind, variants, options, rivals, threads, runs, steps):
    """Measure all contenders with each number of threads and return the result that --json shows.

    variants  strings that kind.shape parses
    options   other fields of the tasks
    rivals    names in RIVALS
    runs      number of runs of `steps` training steps each
    """
    results = {}
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory(prefix="tiedtools-") as folder:
        machine = Multiplication(stack, options["precision"])
        for variant in variants:
            task = kind.Task(os.path.join(folder, "ids"), **{**options, **kind.shape(variant)})
            task.write()
            with contextlib.ExitStack() as processes:
                contenders = [
                    Contender(program, variant, task, kind.WORKERS, steps, machine, processes)
                    for program in ("tiedtools", *rivals)
                    if "compile" not in program or task.cell == "rhn"
                ]
                for contender in contenders:
                    for t in threads:
                        contender.start(t)
                results |= rounds.in_turns(contenders, threads, runs, "tokens", machine)
    libraries = {run["library"] for group in results.values() for run in group if "library" in run}
    return dict(
        processor=processor_name(), **options, windows=steps, runs=runs,
        gflops={t: machine.gflops(t) for t in threads},
        libraries=[machine.blas, *sorted(libraries)], rows=rounds.rows(results, "tokens"),
    )  # fmt: skip


def table(kind, result):
    """Format a result as text: all contenders, then the parts of a step with the most threads."""
    r, most = result, max(result["gflops"])
    with_parts = [row for row in r["rows"] if row["threads"] == most and "parts" in row]
    parts = [dict(name=row["name"], **part) for row in with_parts for part in row["parts"]]
    heading = (
        f"{kind.heading(r)}, dropout {r['dropout']:g}, tiedtools in {r['precision']};"
        f" {r['windows']} {kind.STEPS} a run, {counted(r['runs'], 'run')}"
    )
    title = f"Parts of a step, {counted(most, 'thread')}; us, and thousands of operations, for each token"
    rates = [
        f"{counted(t, 'thread')}: {rates['tiles']:,.0f} GFLOP/s in products of tiles, {rates['sgemm']:,.0f} in NumPy's"
        + (f", {rates['bfloat16']:,.0f} in tiles of bfloat16" if "bfloat16" in rates else "")
        for t, rates in r["gflops"].items()
    ]
    thousands = [dict(part, kflops=part["flops"] / 1e3) if "flops" in part else part for part in parts]
    foot = [*rates, *(f"with {library}" for library in r["libraries"])]
    return rounds.report(r, heading, [title], rounds.aligned(thousands), foot)
