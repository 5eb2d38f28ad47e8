"""Benchmark of RNN language models: train tiedtools, Mikolov's rnnlm, and faster-rnnlm for one epoch of a text."""

import dataclasses
import itertools
import math
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable

from benchmarks import rounds
from benchmarks.processes import failed, program, running
from benchmarks.rnnlmlimits import Machine
from tiedtools.base.errors import Contradiction
from tiedtools.base.processor import processor_name
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.text.lmtext import LmText
from tiedtools.text.sources import counted

VALID_LINES = 10  # for programs that insist on validation


@dataclasses.dataclass(frozen=True)
class Task:
    """The text, an uncompressed file, and the settings that all contenders share.

    bptt, block  bptt and bptt_block of RnnlmConfig
    lr           learning rate
    """

    path: str
    text: LmText
    classes: int = 100
    bptt: int = 4
    block: int = 10
    lr: float = 0.1


def shape(variant):
    """Parse HIDDEN or HIDDEN+DOC, optionally followed by -sentences, -defer, or both, into options of RnnlmConfig.

    Raises TiedtoolsError for any other string.
    """
    match = re.fullmatch(r"([1-9]\d{0,4})(?:\+([1-9]\d{0,4}))?(-sentences)?(-defer)?", variant)
    if not match:
        raise Contradiction(
            f"--variants: {variant!r} is not HIDDEN or HIDDEN+DOC, with or without -sentences and -defer"
        )
    hidden, doc, sentences, defer = match.groups()
    sizes = dict(hidden=int(hidden), doc_dim=int(doc or 0), defer=defer is not None)
    return sizes | dict.fromkeys(["sentences", "learn_start", "shuffle"], sentences is not None)


class Ours(rounds.Contender):
    """tiedtools, trained for one epoch. Contenders with equal hidden sizes are compared."""

    ours = True
    machine: Machine

    def __init__(self, variant, task):
        self.name, self.task = f"tiedtools {variant}", task
        self.config = RnnlmConfig(**shape(variant), classes=task.classes, bptt=task.bptt, bptt_block=task.block)
        self.peer = self.config.hidden

    def run(self, threads):
        model = Rnnlm(self.task.text.vocab, dataclasses.replace(self.config, threads=threads))
        model.compile()
        pieces, learner = model.batches(self.task.text.train), model.learner(0.0)
        pieces.begin(0)
        state = learner.begin()
        nats, words, began = 0.0, 0, time.perf_counter()
        for k in range(pieces.steps):
            nll, predicted, _, state = learner.step(pieces[k], state, k, self.task.lr)
            nats, words = nats + nll, words + predicted
        return dict(rate=words / (time.perf_counter() - began), nats=nats / words)

    def columns(self, speed, threads, runs):
        limit, bound, flops, moved = self.machine.limit_of(self.config, threads)
        row = dict(kflops=flops / 1e3, gflops=speed * flops / 1e9, bytes=moved, nats=runs[-1]["nats"])
        return row | dict(limit=limit, share=speed / limit, bound=bound)


class Rival(rounds.Contender):
    """A program that is run for one epoch and reports its speed in its output.

    options  options(threads): dict of the options that only this program has
    flags    options without a value
    speed    regular expression of a reported speed; the last match counts
    result   result(last speed, complete output): dict of figures
    """

    flags: tuple[str, ...] = ()
    speed: str
    options: Callable
    result: Callable

    def __init__(self, name, path, hidden, task):
        self.name, self.path, self.peer, self.task = f"{name} {hidden}", path, hidden, task

    def run(self, threads):
        with tempfile.TemporaryDirectory(prefix="tiedtools-") as folder:
            # Short names: rnnlm's path buffers have 100 characters.
            os.symlink(os.path.abspath(self.task.path), os.path.join(folder, "text"))
            with open(self.task.path, "rb") as text, open(os.path.join(folder, "valid"), "wb") as valid:
                valid.writelines(itertools.islice(text, VALID_LINES))
            options = dict(train="text", valid="valid", rnnlm="model", hidden=self.peer, alpha=self.task.lr)
            options |= self.options(threads)
            command = [self.path, *(str(item) for name, value in options.items() for item in (f"-{name}", value))]
            with running([*command, *self.flags], cwd=folder, stderr=subprocess.STDOUT) as process:
                output = process.communicate()[0].decode(errors="replace").replace("\r", "\n")
        speeds = re.findall(self.speed, output)
        if process.returncode or not speeds:
            raise failed(self.name, output)
        return self.result(speeds[-1], output)


class MikolovsRnnlm(Rival):
    """Mikolov's rnnlm, run for one epoch."""

    alone = True
    flags = ("-one-iter",)
    speed = r"Words/sec: ([\d.]+)"

    def options(self, threads):
        task = self.task
        return {"class": task.classes, "bptt": task.bptt, "bptt-block": task.block, "rand-seed": 1, "debug": 2}

    def result(self, speed, output):
        bits = re.findall(r"TRAIN entropy: ([\d.]+)", output)[-1]
        return dict(rate=float(speed), nats=float(bits) * math.log(2))

    def columns(self, speed, threads, runs):
        return dict(nats=runs[-1]["nats"])


class FasterRnnlm(Rival):
    """faster-rnnlm with hierarchical softmax and its default backpropagation, 5 of every 6 words."""

    speed = r"([\d.]+) Kwords/sec"
    noise = 0

    def options(self, threads):
        # With this threshold, no epoch counts as an improvement, so that training stops after the first epoch.
        return {"threads": threads, "nce": self.noise, "stop": 1e9, "retry": 0}

    def result(self, speed, output):
        return dict(rate=1000 * float(speed))


class FasterRnnlmNce(FasterRnnlm):
    """faster-rnnlm with noise contrastive estimation, 20 samples, instead of hierarchical softmax."""

    noise = 20


RIVALS = {"rnnlm": MikolovsRnnlm, "faster-rnnlm": FasterRnnlm, "faster-rnnlm-nce": FasterRnnlmNce}


def programs(rivals):
    """Parse rivals NAME=PATH into [(name, path)]. Raises TiedtoolsError if one is unknown or missing."""
    return [program(rival, [f"{name}=PATH" for name in RIVALS]) for rival in rivals]


def contenders(task, variants, rivals):
    """Return the contenders in table order: tiedtools' `variants`, then the `rivals` at each hidden size."""
    ours = [Ours(variant, task) for variant in variants]
    widths = list(dict.fromkeys(c.peer for c in ours))
    return ours + [RIVALS[name](name, path, hidden, task) for name, path in rivals for hidden in widths]


def measure(task, variants, rivals, threads, runs):
    """Train every contender for one epoch, `runs` times per number of threads; return the result that --json shows."""
    all_contenders = contenders(task, variants, rivals)
    models = [c for c in all_contenders if isinstance(c, Ours)]
    widths = sorted({c.config.hidden + c.config.doc_dim for c in models})
    machine = Machine(task.text, task.classes, widths)
    for contender in models:
        contender.machine = machine
    results = rounds.in_turns(all_contenders, threads, runs, "words", machine)
    return dict(
        processor=processor_name(), words=task.text.train.size, vocabulary=len(task.text.vocab),
        classes=machine.classes, expected=machine.expected, bptt=task.bptt, block=task.block, runs=runs,
        gflops={t: machine.flops[t] / 1e9 for t in threads},
        gbytes={t: {width: machine.bytes[t, width] / 1e9 for width in widths} for t in threads},
        rows=rounds.rows(results, "words"),
    )  # fmt: skip


def table(result):
    """Format the result of `measure` as text."""
    r = result
    heading = (
        f"{r['words']:,} words, vocabulary {r['vocabulary']:,}; {r['classes']} classes, {r['expected']:.1f} words"
        f" scored in one; bptt {r['bptt']}, block {r['block']}; {counted(r['runs'], 'run')}"
    )
    return rounds.report(r, heading, list(rounds.peaks(r, str)))
