"""Model file and log of a training run, as rnnlm writes them: the file is updated every epoch and can be resumed."""

import dataclasses
import itertools
import math
import os
import re
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.files.output import refuse_packed
from tiedtools.kernels.text.floats import format_numbers
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm, check_progress, word_classes
from tiedtools.runs.files import RunFiles
from tiedtools.runs.session import is_sane
from tiedtools.training.fit import Fit, Hooks
from tiedtools.vectors import rnnlmformat
from tiedtools.vectors.rnnlmformat import LABELS, VERSION, Contents

LN10 = math.log(10)
LEAST_WORDS = 10_000  # minimum number of words between two writes within an epoch, as in rnnlm
BLOCK = 1 << 16  # numbers formatted at a time
LONGEST = 16  # maximum bytes of a formatted number
UNKNOWN = -1e8  # log probability of a validation text that has not been scored


class ModelFile(Hooks):
    """The model file of a run, in rnnlm's format, or as Rnnlm.save writes it if rnnlm's cannot represent the model.

    path    FILE; the results of each validation go to FILE.output.txt, as in rnnlm
    binary  use rnnlm's binary format instead of text
    every   also write the file within epochs, every `every` words; 0: never
    texts   paths to record in the file: train, valid

    Raises Contradiction if a model cannot be written to the path.
    """

    files: Any  # the RunFiles of the run

    def __init__(self, path: str, binary: bool, every: int, **texts: str | None) -> None:
        if path in ("-", ""):
            raise Contradiction("`rnnlm` cannot be standard output or empty; give a file name")
        refuse_packed(path)
        self.path, self.binary = path, binary
        self.texts = {name: text for name, text in texts.items() if text and not re.search(r"\s", text)}
        self.unnamed = any(text and re.search(r"\s", text) for text in texts.values())
        self.every = max(every, LEAST_WORDS) if every else math.inf
        self.log, self.written = f"{path}.output.txt", 0.0

    def restore(self, config: RnnlmConfig) -> Rnnlm | None:
        """Return the Rnnlm in the file; None if the file does not exist or is empty.

        Its configuration comes from the file; only settings of the training come from `config`. Raises
        TiedtoolsError if the file is not an Rnnlm.
        """
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            return None
        try:
            model = load_rnnlm(self.path)
        except TiedtoolsError as error:
            why = "training continues the model in this file: to train a new one, choose another name"
            raise TiedtoolsError(f"{error}; {why}") from None
        training = {name: getattr(config, name) for name in ("beta", "cutoff", "defer", "seed", "threads")}
        if np.array_equal(word_classes(model.vocab.counts, config.classes, model.config.old_classes), model.starts):
            training["classes"] = config.classes  # rnnlm's file has only the classes that have words
        config = dataclasses.replace(model.config, **training)
        values = dict(model.params.owners())
        if not config.learn_start:
            values["start_hid"] = np.full(config.hidden, 0.1)  # the file has the final state of training
        restored = Rnnlm(model.vocab, config, values, model.starts)
        restored.progress = model.progress
        return restored

    def begin(self, run: Fit, files: RunFiles, resumed: bool, lr: float | None = None) -> None:
        """Continue a Fit from the progress of its model, unless the Fit has resumed from a checkpoint.

        files    the RunFiles of the run
        resumed  whether the Fit has resumed from a checkpoint, which may be newer than the file
        lr       learning rate; None: the learning rate in the file
        """
        self.files, model, schedule = files, run.model, run.schedule
        if resumed:
            if run.best is not None:
                model.progress = progress(run) | {"position": 0} | self.texts
            return
        p, steps, n = model.progress, run.batches.steps, scored(run)
        run.earlier = run.epoch = p.get("iter", 0)
        run.steps = min(steps * p.get("position", 0) // run.batches.words, steps - 1)
        run.state = run.begin(run.epoch)
        schedule.lr = p.get("alpha", schedule.lr) if lr is None else lr
        schedule.halving = bool(p.get("halving"))
        # Losses on other texts cannot be compared; a held-out text is known by the training text.
        names = ["valid"] if "valid" in self.texts else ["valid", "train"]
        here, there = ([texts.get(name, "-") for name in names] for texts in (self.texts, p))
        if self.unnamed or here != there or set(here) == {"-"}:
            model.progress = p | {"llogp": UNKNOWN}
        elif n and (llogp := p.get("llogp", UNKNOWN)) > UNKNOWN:
            schedule.previous = -llogp * LN10 / n
            if not run.steps:
                run.save_best(run.epoch)
                run.best_loss = schedule.previous

    def after_step(self, run: Fit) -> None:
        """Write the current parameters if `every` words have been trained on."""
        model, old_progress = run.model, run.model.progress
        if run.done // self.every > self.written:
            model.progress = progress(run) | self.texts
            self.put(model)
            model.progress = old_progress
        self.written = run.done // self.every

    def after_epoch(self, run: Fit) -> None:
        """Write the current parameters and the results of validation."""
        run.model.progress = progress(run) | self.texts
        self.write_log(run)
        if run.epoch < run.epochs and not run.schedule.over:  # the caller writes the final model
            self.put(run.model)
        self.written = run.done // self.every

    def put(self, model: Rnnlm) -> None:
        if is_sane(model.params.values):
            try:
                self.files.early("rnnlm", lambda file: self.write(file, model))
            except TiedtoolsError as error:  # a failed write must not end the run
                log.warning(f"model file not written: {error}")

    def write(self, file: BinaryIO, model: Rnnlm) -> None:
        if holds(model.config):
            write(file, model, self.binary)
        else:
            model.save(file)

    def write_log(self, run: Fit) -> None:
        ppl = run.history[-1]["valid_ppl"]
        if ppl is None:
            return
        logp = -math.log10(ppl) * scored(run)
        try:
            with open(self.log, "a") as file:
                file.write(f"\niter: {run.epoch - 1}\nvalid log probability: {logp:f}\nPPL net: {ppl:f}\n")
        except OSError as error:
            log.warning(f"{self.log}: cannot be written: {error.strerror}")


def load_rnnlm(path: str, threads: int | None = None) -> Rnnlm:
    """Read the Rnnlm in a model file; threads: None: all cores. Raises TiedtoolsError if the file is not an Rnnlm."""
    model = load_language_model(path, threads)
    if model.kind != Rnnlm.kind:
        raise TiedtoolsError(f"{path}: is a model of kind {model.kind}, not rnnlm; give one of `tiedtools rnnlm`")
    return model


def progress(run: Fit) -> dict[str, Any]:
    """Return the `progress` of an Rnnlm for the current state of a Fit."""
    old, schedule = run.model.progress, run.schedule
    known = math.isfinite(schedule.previous) and run.valid_ids is not None
    llogp = -schedule.previous * scored(run) / LN10 if known else old.get("llogp", UNKNOWN)
    position = -(-run.batches.words * run.steps // run.batches.steps)  # valid also in an epoch begun by an earlier run
    return dict(iter=run.epoch, position=position, alpha=schedule.lr, halving=int(schedule.halving), llogp=llogp)


def scored(run: Fit) -> int:
    """Return the number of words predicted in the validation text."""
    return 0 if run.valid_ids is None else int(np.count_nonzero(run.valid_ids >= 0))


def holds(config: RnnlmConfig) -> bool:
    """Return whether the format can represent a model of this configuration."""
    return not (config.doc_dim or config.learn_start)


def write(file: BinaryIO, model: Rnnlm, binary: bool = False) -> None:
    """Write an Rnnlm to a binary file object; text has all digits of a float32. Raises ValueError unless `holds`."""
    c, params, counts, progress = model.config, model.params, model.vocab.counts, model.progress
    if not holds(c):
        raise ValueError("rnnlm's model format supports neither document vectors nor a learned initial state")
    V, M, C = len(counts), c.hidden, len(model.starts) - 1
    alpha = progress.get("alpha", 0.1)
    file.write(
        f"version: {VERSION}\nfile format: {binary:d}\n\n"
        f"training data file: {progress.get('train', '-')}\nvalidation data file: {progress.get('valid', '-')}\n\n"
        f"last probability of validation data: {progress.get('llogp', UNKNOWN):f}\n"
        f"number of finished iterations: {progress.get('iter', 0)}\n"
        f"current position in training data: {progress.get('position', 0)}\n"
        "current probability of training data: 0\nsave after processing # words: 0\n"
        f"# of training words: {counts.sum()}\ninput layer size: {V + M}\nhidden layer size: {M}\n"
        f"compression layer size: 0\noutput layer size: {V + C}\n"
        f"direct connections: {c.direct}\ndirect order: {c.direct_order}\n"
        f"bptt: {c.bptt + 1 if c.bptt else 0}\nbptt block: {c.bptt_block}\n"
        f"vocabulary size: {V}\nclass size: {C}\nold classes: {c.old_classes:d}\n"
        f"independent sentences mode: {c.independent:d}\nstarting learning rate: {alpha:.9g}\n"
        f"current learning rate: {alpha:.9g}\nlearning rate decrease: {progress.get('halving', 0):d}\n"
        "\n\nVocabulary:\n".encode("utf-8", "surrogateescape")
    )
    words = zip(itertools.count(), counts.tolist(), model.vocab.words, model.class_of.tolist())
    file.write("".join(f"{k:6d}\t{count:10d}\t{word}\t{label}\n" for k, count, word, label in words).encode())
    arrays = [
        params["start_hid"],
        np.concatenate([params["emb_in"], params["hid"]]).T,
        np.concatenate([params["word_out"], params["class_hid"].T]),
        params["direct"] if c.direct else np.zeros(0),
    ]
    for label, array in zip(LABELS, arrays):
        numbers = np.ascontiguousarray(array, "<f4").reshape(-1)
        if binary:
            file.write(numbers.data)
            continue
        file.write(f"\n{label}:\n".encode())
        text = np.empty(LONGEST * min(BLOCK, numbers.size), np.uint8)
        while numbers.size:
            n, size = format_numbers(text, numbers[:BLOCK])
            file.write(text[:size].data)
            if n < min(BLOCK, numbers.size):
                file.write(b"%g\n" % numbers[n])
                n += 1
            numbers = numbers[n:]


def read(path: str, threads: int | None = None) -> Rnnlm:
    """Read an Rnnlm from a file. threads: number of threads to use; None: all cores.

    Texts start from the hidden layer in the file, as in rnnlm's testing. The model's `progress` has iter, the epochs
    done; position, the words done in the next epoch; alpha; halving, whether alpha is being halved; llogp, base-10 log
    probability of the validation text; train and valid, paths (rnnlm continues with this `valid`).

    Raises TiedtoolsError if the file is corrupt or the model has a compression layer.
    """
    model = rnnlmformat.read(path, lambda contents: make(contents, threads or available_cores()))
    if empty := np.count_nonzero(np.diff(model.starts) == 0):
        log.warning(
            f"{path}: classes without words, {empty} of {len(model.starts) - 1}, get probability, as in rnnlm, so that"
            " the probabilities of all words sum to less than 1; train with lower `classes`"
        )
    return model


def make(contents: Contents, threads: int) -> Rnnlm:
    """Make the Rnnlm of a file's Contents."""
    number = contents.header.number
    config = RnnlmConfig(
        hidden=number("hidden layer size"),
        classes=number("class size"),
        old_classes=bool(number("old classes")),
        independent=bool(number("independent sentences mode")),
        bptt=max(number("bptt") - 1, 0),
        bptt_block=number("bptt block"),
        direct=number("direct connections"),
        direct_order=number("direct order"),
        threads=threads,
    )
    starts = np.searchsorted(contents.classes, np.arange(config.classes + 1))
    model = Rnnlm(contents.vocab, config, contents.arrays, starts)
    progress = {
        "iter": number("number of finished iterations"),
        "position": number("current position in training data"),
        "alpha": number("current learning rate", float),
        "halving": number("learning rate decrease"),
        "llogp": number("last probability of validation data", float),
        "train": number("training data file", str),
        "valid": number("validation data file", str),
    }
    check_progress(progress)
    model.progress = progress
    return model
