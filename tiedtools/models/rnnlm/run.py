"""Model file and log of a training run, as rnnlm writes them: the file is updated every epoch and can be resumed."""

import dataclasses
import math
import os
import re

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.files.output import open_output
from tiedtools.models import load_language_model
from tiedtools.models.rnnlm import rnnlmfile
from tiedtools.models.rnnlm.config import word_classes
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.rnnlmfile import UNKNOWN
from tiedtools.training.divergence import is_sane

LN10 = math.log(10)
LEAST_WORDS = 10_000  # minimum number of words between two writes within an epoch, as in rnnlm


class ModelFile:
    """The model file of a run, in rnnlm's format, or in that of Rnnlm.save if rnnlm's cannot represent the model.

    path    FILE; the results of each validation go to FILE.output.txt, as in rnnlm
    binary  use rnnlm's binary format instead of text
    every   also write the file within epochs, every `every` words; 0: never
    put     moves the written file to its path during training: Ending.put_early
    mark    called after each write, when the file no longer holds the model of a finished run
    texts   paths to record in the file: train, valid
    """

    def __init__(self, path, binary, every, put, mark, **texts):
        self.path, self.binary = path, binary
        self.naming, self.mark = put, mark
        self.texts = {name: text for name, text in texts.items() if text and not re.search(r"\s", text)}
        self.every = every and max(every, LEAST_WORDS)
        self.log, self.written = f"{path}.output.txt", 0

    def restore(self, config):
        """Return the Rnnlm in the file; None if the file does not exist or is empty.

        Its configuration is that of the file; only settings of the training are taken from `config`. Raises
        TiedtoolsError if the file is not an Rnnlm.
        """
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            return None
        found = load_rnnlm(self.path)
        ours = {name: getattr(config, name) for name in ("beta", "cutoff", "defer", "seed", "threads")}
        if np.array_equal(word_classes(found.vocab.counts, config.classes, found.config.old_classes), found.starts):
            ours["classes"] = config.classes  # rnnlm's file has only the classes that have words
        config = dataclasses.replace(found.config, **ours)
        values = dict(found.params.owners())
        if not config.learn_start:
            values["start_hid"] = np.full(config.hidden, 0.1)  # the file has the final state of training
        model = Rnnlm(found.vocab, config, values, found.starts)
        model.progress = found.progress
        return model

    def write(self, file, model):
        if rnnlmfile.holds(model.config):
            rnnlmfile.write(file, model, self.binary)
        else:
            model.save(file)

    def put(self, model):
        if not is_sane(model.params.values):
            return
        try:
            with open_output(self.path, self.naming) as file:
                self.write(file, model)
            self.mark()
        except TiedtoolsError as error:  # a failed write must not end the run
            log.warning(f"model file not written: {error}")

    def begin(self, run, lr=None):
        """Continue a Fit from the model's progress. lr: learning rate; None: the one recorded in the file."""
        p, n = run.model.progress, scored(run)
        llogp = p.get("llogp", UNKNOWN)
        previous = -llogp * LN10 / n if n and llogp > UNKNOWN else math.inf
        rate = p.get("alpha", run.schedule.lr) if lr is None else lr
        run.take_up(p.get("iter", 0), rate, bool(p.get("halving")), previous, p.get("position", 0))

    def resume(self, run):
        """Set the model's progress to that of a Fit resumed from a checkpoint, which may be newer than the file."""
        if run.best is not None:
            run.model.progress = progress(run) | {"position": 0} | self.texts

    def between(self, run):
        """See Fit. Write the current parameters within an epoch; after one, those that training continues with."""
        model, before = run.model, run.model.progress
        if not run.steps:
            model.progress = progress(run) | self.texts
            self.tell(run)
            if run.epoch < run.epochs and not run.schedule.over:  # the caller writes the final model
                self.put(model)
        elif self.every and run.done // self.every > self.written:
            model.progress = progress(run) | self.texts
            self.put(model)
            model.progress = before
        if self.every:
            self.written = run.done // self.every

    def tell(self, run):
        ppl, n = run.history[-1]["valid_ppl"], scored(run)
        if ppl is None:
            return
        lines = f"\niter: {run.epoch - 1}\nvalid log probability: {-math.log10(ppl) * n:f}\nPPL net: {ppl:f}\n"
        try:
            with open(self.log, "a") as file:
                file.write(lines)
        except OSError as error:
            log.warning(f"{self.log}: cannot be written: {error.strerror}")


def load_rnnlm(path):
    """Read the Rnnlm in a model file. Raises TiedtoolsError if the file is not an Rnnlm."""
    model = load_language_model(path)
    if model.kind != Rnnlm.kind:
        raise TiedtoolsError(
            f"{path}: is a model of kind {model.kind}, not {Rnnlm.kind}; give one of `tiedtools rnnlm`"
        )
    return model


def progress(run):
    """Return the `progress` of an Rnnlm for the current state of a Fit."""
    old, rates = run.model.progress, run.schedule
    llogp = -rates.previous * scored(run) / LN10 if math.isfinite(rates.previous) else old.get("llogp", UNKNOWN)
    position = -(-run.batches.words * run.steps // run.batches.steps)  # valid also in an epoch begun by an earlier run
    return dict(iter=run.epoch, position=position, alpha=rates.lr, halving=int(rates.halving), llogp=llogp)


def scored(run):
    """Return the number of words predicted in the validation text."""
    return 0 if run.valid_ids is None else int(np.count_nonzero(run.valid_ids >= 0))
