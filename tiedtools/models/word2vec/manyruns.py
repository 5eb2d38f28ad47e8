"""Many training runs of one configuration, each on a resample of the documents of one text, side by side."""

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import FIGURES, Run
from tiedtools.runs import checkpoints
from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.runs.progress import Listener, Progress
from tiedtools.runs.session import Session
from tiedtools.text.encoding import EncodedText, rearranged
from tiedtools.text.sources import counted
from tiedtools.training import hogwild
from tiedtools.vectors.edit import rotation
from tiedtools.vectors.norms import unit
from tiedtools.vectors.runs import Runs

LARGEST = float(np.finfo(np.float16).max)
WHOLE = 3  # runs on the whole text beside those on resampled documents


class TrainedRuns(Runs):
    """The Runs of a ManyRuns session, with what a Trainer needs of a model; saving omits runs that are not finished.

    every     vectors of all runs [W + R, V, E], in a temporary file; those on the whole text come first
    finished  bool [W + R]
    """

    kind = "word2vec"
    settings: dict[str, Any] | None = None  # of texts and training, beside the Config
    continued: Mapping[str, Any] = MappingProxyType({})  # what identifies the file to continue from
    reference: np.ndarray | None = None  # vectors to which those of each run are aligned, float32 [V, E]

    def __init__(self, text: EncodedText, config: Config, resampling: Any, which: str) -> None:
        vocab = text.vocab
        R, V, E = resampling.runs, len(vocab), config.size * (2 if which == "concat" else 1)
        W = self.W = min(WHOLE, R) if resampling.resample == "documents" and R > 1 else 0
        with reserved(2 * (W + R) * V * E) as file:
            every = self.every = np.memmap(file, np.float16, "r+", shape=(W + R, V, E))
        seeds = [(config.seed + k) % 2**32 for k in range(R)]
        training = dataclasses.asdict(dataclasses.replace(config, threads=1)) | dataclasses.asdict(resampling)
        training |= dict(seeds=seeds, write=which)
        counts = np.zeros((W + R, V), np.int64)
        super().__init__(vocab.words, every[W:], counts[W:], text.occurrences, training, every[:W])
        self.vocab, self.config, self.resampling, self.which = vocab, config, resampling, which
        self.occurrences = self.counts
        self.every_present, self.finished = counts, np.zeros(W + R, bool)

    @property
    def n_params(self) -> int:
        """Number of parameters of one model."""
        with imagining():
            return Word2Vec(self.vocab, self.config, drawn=False).n_params

    def configuration(self, run: int) -> Config:
        """Return the Config of a run, counted from 0; it has several threads if there are two or more for each run."""
        threads, R = max(1, self.config.threads // len(self.finished)), len(self)
        seed = self.training["seeds"][run - self.W] if run >= self.W else (self.config.seed + R + run) % 2**32
        return dataclasses.replace(self.config, threads=threads, seed=seed)

    def record(self, run: int, model: Word2Vec, text: EncodedText) -> None:
        """Store the vectors of a run, counted from 0, from its Word2Vec and the text it was trained on."""
        vectors, counts = model.vectors(self.which).matrix, text.occurrences
        if self.reference is not None:
            seen = counts > 0
            vectors = vectors @ rotation(unit(self.reference[seen]), unit(vectors[seen])).astype(np.float32)
        if not np.abs(vectors).max(initial=0) < LARGEST:
            raise Diverged(f"run {run + 1}: a vector element exceeds {LARGEST:g} in magnitude; lower `lr`")
        self.every[run], self.every_present[run], self.finished[run] = vectors, counts, True

    def vectors(self, which: str = "in") -> NoReturn:
        """Raise TiedtoolsError: there are several vectors of each word."""
        runs = counted(len(self), "run")
        raise TiedtoolsError(f"{runs}, no single vectors; see `runs`, or read one from the file, as FILE:1")

    def complete(self) -> Runs:
        """Return the Runs that are finished."""
        done = np.flatnonzero(self.finished[self.W :])
        seeds = [self.training["seeds"][k] for k in done]
        matrix = self.matrix if len(done) == len(self) else self.matrix[done]
        training = (self.settings or {}) | self.training | dict(runs=len(done), seeds=seeds)
        whole = self.whole[self.finished[: self.W]]
        return Runs(self.words, matrix, self.present[done], self.counts, training, whole)

    def save(self, file: BinaryIO) -> None:
        self.complete().save(file)


def reserved(size: int) -> BinaryIO:
    """Return a temporary file of `size` bytes that are allocated: a write to a mapped file has no other way to fail.

    Raises TiedtoolsError if there is not enough space.
    """
    file: Any = tempfile.TemporaryFile(prefix="tiedtools-")
    try:
        os.posix_fallocate(file.fileno(), 0, size) if hasattr(os, "posix_fallocate") else file.truncate(size)
    except OSError as error:
        problem = f"{tempfile.gettempdir()}: {error.strerror}; the vectors of all runs need {size / 1e6:,.0f} MB there"
        raise TiedtoolsError(f"{problem}; set TMPDIR to a folder with more free space") from None
    return file


class OneOfMany(Progress):
    """Progress of one run, as tokens of the whole text, for the Progress of all; `stopped` ends the run."""

    stopped = False

    def __init__(self, scale: float) -> None:
        self.scale, self.done, self.loss, self.lr, self.figures = scale, 0.0, 0.0, 0.0, {}

    def update(self, done: int, loss: float, lr: float) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.done, self.loss, self.lr = done * self.scale, loss, lr

    def epoch(self, **figures: Any) -> None:
        self.figures = figures


class ManyRuns(Session):
    """Trains the runs of a TrainedRuns on an EncodedText, at most config.threads at a time.

    bounds   bounds of the documents, as returned by encoding.Marks.bounds
    prepare  function that changes the parameters of a new Word2Vec, and returns it

    The other arguments are as for Run. A checkpoint has the runs that are finished; it is written at the start, every
    `minutes`, and at the end.

    Raises TiedtoolsError if the checkpoint belongs to another run.
    """

    kind = "word2vec with runs"

    def __init__(
        self, model: TrainedRuns, text: EncodedText, bounds: np.ndarray, checkpoint: str | None = None,
        minutes: float = 0.0, resume: bool = False, prepare: Callable[[Word2Vec], Word2Vec] = lambda model: model,
    ) -> None:  # fmt: skip
        super().__init__(model)
        self.prepare = prepare
        self.text, self.bounds, self.ids = text, bounds, text.ids
        self.runs: list[Any] = [OneOfMany(1.0) for _ in model.finished]
        if checkpoint is not None:
            options = dict(kind=self.kind, **dataclasses.asdict(model.config))
            options |= {**dataclasses.asdict(model.resampling), "write": model.which, **model.continued}
            # The bytes of a deterministic run depend on its threads.
            options["threads"] = model.configuration(0).threads if model.config.deterministic else None
            runs = options.pop("runs")
            options |= {"runs": runs} if model.W else {}  # the seeds of the runs on the whole text depend on it
            identity = checkpoints.identity(options, text=text.parts(), documents=self.documents.astype(np.int32))
            self.checkpoint = checkpoints.Checkpoint(checkpoint, identity, model.vocab, minutes, [type(model.config)])
            if resume:
                self.load(self.checkpoint)

    @property
    def documents(self) -> np.ndarray:
        """The numbers that must match for a checkpoint to be resumed."""
        return self.bounds

    def go(self, progress: Listener | None = None) -> None:
        self.progress = progress or self.progress
        model, each = self.model, self.model.config.epochs * self.text.size
        for k in np.flatnonzero(model.finished):
            self.runs[k].done = each
        self.progress.begin(len(model.finished) * each, round(sum(run.done for run in self.runs)), self.history)
        with self.clock(), interrupts.deferred() if self.checkpoint else contextlib.nullcontext():
            if self.checkpoint:
                self.checkpoint.write(*self.contents())
            try:
                # The first resample precedes the whole text: only with one is there something to write after Ctrl-C.
                pending = sorted(np.flatnonzero(~model.finished).tolist(), key=lambda k: k != model.W)
                threads = min(model.config.threads, len(pending))
                hogwild.run(self.work, pending, threads, self.ask_to_stop, self.tick)
            finally:
                self.report()
                if self.checkpoint:
                    self.checkpoint.attempt(*self.contents())

    def work(self, thread: int, k: int) -> None:
        """Train run k, counted from 0."""
        model, text = self.model, self.text
        try:
            if (order := self.order(k)) is not None:
                text = rearranged(model.words, self.ids, self.bounds, order)
            self.runs[k].scale = self.text.size / text.size
            session = Run(self.prepare(Word2Vec(text.vocab, model.configuration(k))), text)
            session.go(self.runs[k])
        except TiedtoolsError as error:  # keeps the runs that are finished
            raise Diverged(f"run {k + 1}: {error}") from None
        model.record(k, session.model, text)

    def order(self, k: int) -> np.ndarray | None:
        """Return the documents of run k, counted from 0, in order; None: the text as it is. See config.Resampling."""
        model, way, documents = self.model, self.model.resampling.resample, len(self.bounds) - 1
        if way == "none" or k < model.W:
            return None
        rng = np.random.default_rng([model.config.seed, k - model.W])
        return rng.permutation(documents) if way == "shuffle" else rng.integers(documents, size=documents)

    def ask_to_stop(self) -> None:
        for run in self.runs:
            run.stopped = True

    def tick(self) -> None:
        """Report progress, and write a checkpoint if one is due."""
        interrupts.check()
        self.report()
        if self.checkpoint and self.checkpoint.due:
            self.checkpoint.attempt(*self.contents())

    def report(self) -> None:
        """Report progress, and the figures of runs that have finished since the last report."""
        under_way = [run for run, done in zip(self.runs, self.model.finished) if run.done and not done]
        under_way = under_way or [run for run in self.runs if run.figures] or self.runs
        loss, lr = (float(np.mean([getattr(run, name) for run in under_way])) for name in ("loss", "lr"))
        self.progress.update(round(sum(run.done for run in self.runs)), loss, lr)
        reported = {figures["run"] for figures in self.history}
        for k in np.flatnonzero(self.model.finished).tolist():
            if k + 1 not in reported:
                self.history.append(dict(run=k + 1, **self.runs[k].figures))
                self.progress.epoch(**self.history[-1])

    @property
    def figures(self) -> dict[str, Any]:
        runs, seeds = int(self.model.finished[self.model.W :].sum()), self.model.training["seeds"]
        return dict(runs=runs, documents=len(self.bounds) - 1, seeds=seeds)

    @property
    def reached(self) -> str:
        return f"after {self.model.finished.sum():,} of {len(self.runs):,} runs"

    standing = reached

    def worthwhile(self, stopped: BaseException | None = None) -> bool:
        return bool(self.model.finished[self.model.W :].any())

    def contents(self) -> tuple[dict[str, Any], Arrays]:
        done = np.array(sorted(figures["run"] - 1 for figures in self.history), int)
        progress = dict(done=done.tolist(), history=self.history, elapsed=self.seconds)
        # One array for each run: indexing by a list would copy the vectors of all runs into memory.
        matrices = {f"run {k + 1}": self.model.every[k] for k in done}
        return progress, dict(matrices, present=self.model.every_present[done])

    def check(self, progress: dict[str, Any], arrays: Arrays) -> None:
        types = dict(done=list, history=list, elapsed=float)
        done, (_, V, E) = progress["done"], self.model.every.shape
        checkpoints.check_progress(progress, types, len(done), dict(run=int, **FIGURES))
        known = {k + 1 for k in done if type(k) is int and k >= 0}
        if len(known) < len(done) or known != {figures["run"] for figures in progress["history"]}:
            raise ValueError("inconsistent numbers of runs")
        like = {f"run {number}": np.broadcast_to(np.float16(), (V, E)) for number in known}
        checkpoints.check_arrays(arrays, {**like, "present": np.broadcast_to(np.int64(), (len(done), V))})
        if arrays["present"].min(initial=0) < 0:
            raise ValueError("negative counts")

    def load(self, checkpoint: Checkpoint) -> None:
        progress, arrays = checkpoint.read(self.check)
        for place, k in enumerate(progress["done"]):
            if k < len(self.runs):
                self.model.every[k], self.model.every_present[k] = arrays[f"run {k + 1}"], arrays["present"][place]
                self.model.finished[k] = True
        self.elapsed = progress["elapsed"]
        self.history = [figures for figures in progress["history"] if figures["run"] <= len(self.runs)]


def documents_of(text: EncodedText, marks: Any, way: str) -> np.ndarray:
    """Return the bounds of the documents of an EncodedText. Raises TiedtoolsError if there are too few to resample."""
    if way == "none":
        return np.array([0, text.size])
    bounds = marks.bounds(text.ids)
    if len(bounds) < 3:
        problem = f"resampling needs several documents; with `document={marks.kind}` the text is a single one"
        raise TiedtoolsError(f"{problem}; choose another unit, or `resample=none`")
    return bounds
