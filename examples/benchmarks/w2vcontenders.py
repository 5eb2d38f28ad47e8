"""Contenders in training word vectors: variants of tiedtools, gensim, and word2vec.c; training or whole processes."""

import dataclasses
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import rounds
from benchmarks.processes import Worker, failed, program, refuse_uninstalled, running, whole
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec, resolved
from tiedtools.models.word2vec.run import Run
from tiedtools.text.encoding import EncodedText

# Modes of a variant: options of the command w2v, and the corresponding fields of Config.
MODES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "exact": (["--exact"], dict(exact=True)),
    "deterministic": (["--deterministic"], dict(deterministic=True)),
    "float32": (["--precision", "float32"], dict(precision="float32")),
}
TIES: dict[str, tuple[list[str], dict[str, Any]]] = {  # variants: options and fields as in MODES
    "": ([], {}),
    "tied": (["--tie"], dict(tying="tied")),
    "signs": (["--tie-signs"], dict(tying="signs")),
    "linear": (["--tie-linear"], dict(tying="linear")),
}
VARIANTS = tuple(f"{kind}{ties and '-'}{ties}" for kind in ("cbow", "sg") for ties in TIES)


@dataclasses.dataclass(frozen=True)
class Task:
    """The text, an uncompressed file, and the options that all contenders share."""

    path: str
    text: EncodedText
    min_count: int
    options: dict  # size, window, negative, sample

    @property
    def words(self):
        """The number of words of the vocabulary in the text, without line ends."""
        return int(self.text.vocab.counts[1:].sum())

    def arguments(self, config, out):
        """Return the command-line arguments of word2vec.c."""
        arguments = dict(
            train=self.path, output=out, cbow=int(config.cbow), alpha=config.lr, threads=config.threads, iter=1,
            binary=1, **{"min-count": self.min_count}, **self.options,
        )  # fmt: skip
        return [str(item) for name, value in arguments.items() for item in (f"-{name}", value)]


class Contender(rounds.Contender):
    """Base class of programs that train one variant, such as cbow or sg-tied.

    train(threads)         train alone, without counting words, reading, or writing, and return (seconds, epochs)
    command(threads, out)  command line of a complete run, from the text to the binary vector file `out`
    out                    path of a vector file, overwritten in every run, to measure whole processes; None: training
    """

    program: str
    binary: str | None = None  # path of the program, if it is not in Python
    out: str | None = None

    def __init__(self, task, variant, processes=None, **more):
        """Prepare the contender. processes: an ExitStack for processes that persist between runs."""
        kind, _, ties = variant.partition("-")
        self.task, self.variant, self.processes = task, variant, processes
        self.flags, settings = TIES[ties]
        settings = dict(settings, architecture="cbow" if kind == "cbow" else "skipgram")
        self.config = resolved(Config(**settings, **task.options, epochs=1, **more))

    @property
    def name(self):
        return f"{self.program} {self.variant}"

    def at(self, threads):
        """Return the Config for this number of threads."""
        return dataclasses.replace(self.config, threads=threads)

    def run(self, threads):
        words = self.task.words
        if self.out:
            seconds, peak = whole(self.name, self.command(threads, self.out))
            return dict(rate=words / seconds, seconds=seconds, bytes=peak)
        seconds, epochs = self.train(threads)
        return dict(rate=words * epochs / seconds)

    def columns(self, speed, threads, runs):
        if not self.out:
            return {}
        seconds = statistics.median(run["seconds"] for run in runs)
        return dict(seconds=seconds, megabytes=max(run["bytes"] for run in runs) / 1e6)


class Ours(Contender):
    """tiedtools, in one of MODES; None: the default mode."""

    program, ours = "tiedtools", True
    limit: Callable  # limit(threads): columns of the hardware limit

    def __init__(self, task, variant, mode=None):
        self.mode, (flags, settings) = mode, MODES.get(mode, ([], {}))
        super().__init__(task, variant, **settings)
        self.flags = self.flags + flags

    @property
    def name(self):
        return super().name + (f" {self.mode}" if self.mode else "")

    @property
    def matrices(self):
        """The number of embedding matrices: 1 if they are tied, otherwise 2."""
        return 1 if self.config.tying != "untied" else 2

    def columns(self, speed, threads, runs):
        if self.out:
            return super().columns(speed, threads, runs)
        row = self.limit(threads)
        return row | dict(share=speed / row["limit"])

    def train(self, threads):
        model = Word2Vec(self.task.text.vocab, self.at(threads))
        run = Run(model, self.task.text)
        run.compile()
        began = time.perf_counter()
        run.go()
        return time.perf_counter() - began, 1

    def command(self, threads, out):
        arguments = self.task.arguments(self.at(threads), out)
        return [sys.executable, "-m", "tiedtools", "w2v", *arguments, "-debug", "0", *self.flags]


class Gensim(Contender):
    """gensim, in a separate process that counts the words once and then trains for each number of threads it reads."""

    program = "gensim"
    worker: Worker | None = None
    code = """
import json, sys, time
from gensim.models import Word2Vec
path, out, options = json.loads(sys.argv[1])
if out:
    Word2Vec(corpus_file=path, **options).wv.save_word2vec_format(out, binary=True)
else:
    model = Word2Vec(**options)
    model.build_vocab(corpus_file=path)
    for line in sys.stdin:
        model.workers = int(line)
        model.init_weights()
        began = time.perf_counter()
        model.train(
            corpus_file=path, total_examples=model.corpus_count, total_words=model.corpus_total_words, epochs=1
        )
        print(time.perf_counter() - began, flush=True)
"""

    def train(self, threads):
        self.worker = self.worker or Worker(self.name, self.command(1, None), self.processes)
        return self.worker(threads), 1

    def command(self, threads, out):
        c = self.at(threads)
        options = dict(
            vector_size=c.size, window=c.window, negative=c.negative, sample=c.sample, min_count=self.task.min_count,
            sg=int(not c.cbow), alpha=c.lr, workers=threads, epochs=1,
        )  # fmt: skip
        return [sys.executable, "-c", self.code, json.dumps([self.task.path, out, options])]


class Word2vecC(Contender):
    """The original program, word2vec.c."""

    program = "word2vec.c"

    def train(self, threads):
        """Measure from the first to the last progress report, which excludes startup, counting, and writing."""
        command = self.command(threads, "/dev/null")
        command[-1] = "2"  # -debug
        reports, rest = [], b""
        with running(command) as process:
            while piece := process.stdout.read1():
                *lines, rest = (rest + piece).split(b"\r")
                shares = [float(n) for line in (*lines, rest) for n in re.findall(rb"Progress: ([\d.]+)%", line)]
                reports += [(time.perf_counter(), max(shares) / 100)] if shares else []
        if process.returncode or len(reports) < 2 or reports[-1][1] <= reports[0][1]:
            raise failed(self.name, "it reported no progress; give a longer text")
        return reports[-1][0] - reports[0][0], reports[-1][1] - reports[0][1]

    def command(self, threads, out):
        return [self.binary, *self.task.arguments(self.at(threads), out), "-hs", "0", "-debug", "0"]


def contenders(task, variants, modes, rivals, processes):
    """Return the contenders in table order.

    variants  names in VARIANTS
    modes     names in MODES; each is added for every variant
    rivals    the result of `installed`; they support only untied models
    """
    programs: list[Contender] = [Ours(task, v, mode) for v in variants for mode in (None, *modes)]
    kinds = list(dict.fromkeys(v.split("-")[0] for v in variants))
    for name, path in rivals:
        for kind in kinds:
            contender: Contender = {"gensim": Gensim, "word2vec.c": Word2vecC}[name](task, kind, processes)
            contender.binary = path
            programs.append(contender)
    return programs


def installed(rivals):
    """Return (name, path or None) of each rival. Raises TiedtoolsError if one is unknown or not installed."""
    found = {}
    for rival in rivals:
        if rival == "gensim":
            refuse_uninstalled("gensim", rival)
            found["gensim"] = None
        else:
            name, found[name] = program(rival, ("gensim", "word2vec.c=PATH"))
    return list(found.items())
