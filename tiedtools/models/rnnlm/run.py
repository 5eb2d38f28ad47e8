"""What rnnlm does around its training: its model file is written after every epoch and taken up again; its log."""

import dataclasses
import math
import os
import re

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.files.output import open_output
from tiedtools.messages import log
from tiedtools.models import load_language_model
from tiedtools.models.rnnlm import rnnlmfile
from tiedtools.models.rnnlm.config import word_classes
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.rnnlmfile import UNKNOWN
from tiedtools.training.divergence import is_sane

LN10 = math.log(10)
LEAST_WORDS = 10_000  # between two writings within an epoch, as in rnnlm


class ModelFile:
    """The model file of a run, in rnnlm's format, or as Rnnlm.save writes it where that cannot hold the model.

    path    FILE; to FILE.output.txt goes what rnnlm writes there of each validation
    binary  rnnlm's binary format instead of text
    every   write it also within epochs, after so many words; 0: not
    put     gives the file its name while training goes on: Ending.put_early
    mark    called after that, when the file is not the one of a finished run any more
    texts   paths that the file names: train, valid
    """

    def __init__(self, path, binary, every, put, mark, **texts):
        self.path, self.binary = path, binary
        self.naming, self.mark = put, mark
        self.texts = {name: text for name, text in texts.items() if text and not re.search(r"\s", text)}
        self.every = every and max(every, LEAST_WORDS)
        self.log, self.written = f"{path}.output.txt", 0

    def restore(self, config):
        """The Rnnlm in the file, None where there is none or it is empty.

        It is as the file says; only what concerns training alone is as in `config`. Raises TiedtoolsError for anything
        but an Rnnlm.
        """
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            return None
        found = load_rnnlm(self.path)
        ours = {name: getattr(config, name) for name in ("beta", "cutoff", "defer", "seed", "threads")}
        if np.array_equal(word_classes(found.vocab.counts, config.classes, found.config.old_classes), found.starts):
            ours["classes"] = config.classes  # of which rnnlm's file has those that the vocabulary fills
        config = dataclasses.replace(found.config, **ours)
        values = dict(found.params.owners())
        if not config.learn_start:
            values["start_hid"] = np.full(config.hidden, 0.1)  # the file has the state that training ended with
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
        except TiedtoolsError as error:  # no reason to lose the run
            log.warning(f"no model file: {error}")

    def begin(self, run, lr=None):
        """Let a Fit go on from the model's progress, with the learning rate `lr`, None: as it was."""
        p, n = run.model.progress, scored(run)
        llogp = p.get("llogp", UNKNOWN)
        previous = -llogp * LN10 / n if n and llogp > UNKNOWN else math.inf
        rate = p.get("alpha", run.schedule.lr) if lr is None else lr
        run.take_up(p.get("iter", 0), rate, bool(p.get("halving")), previous, p.get("position", 0))

    def resume(self, run):
        """Let the model know what a Fit from a checkpoint has done, of which the file need not have heard."""
        if run.best is not None:
            run.model.progress = progress(run) | {"position": 0} | self.texts

    def between(self, run):
        """See Fit. Within an epoch the parameters are written as they are then; after it, those to go on with."""
        model, before = run.model, run.model.progress
        if not run.steps:
            model.progress = progress(run) | self.texts
            self.tell(run)
            if run.epoch < run.epochs and not run.schedule.over:  # the last one is for whoever has made the run
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
        told = f"\niter: {run.epoch - 1}\nvalid log probability: {-math.log10(ppl) * n:f}\nPPL net: {ppl:f}\n"
        try:
            with open(self.log, "a") as file:
                file.write(told)
        except OSError as error:
            log.warning(f"{self.log}: cannot be written: {error.strerror}")


def load_rnnlm(path):
    """The Rnnlm in a model file. Raises TiedtoolsError where there is another model or none."""
    model = load_language_model(path)
    if model.kind != Rnnlm.kind:
        raise TiedtoolsError(f"{path}: a model of kind {model.kind}, not {Rnnlm.kind}; name one of `tiedtools rnnlm`")
    return model


def progress(run):
    """What an Rnnlm's `progress` is to be, after so much of a Fit."""
    old, rates = run.model.progress, run.schedule
    llogp = -rates.previous * scored(run) / LN10 if math.isfinite(rates.previous) else old.get("llogp", UNKNOWN)
    position = -(-run.batches.words * run.steps // run.batches.steps)  # also of an epoch that an earlier run began
    return dict(iter=run.epoch, position=position, alpha=rates.lr, halving=int(rates.halving), llogp=llogp)


def scored(run):
    """Words of the validation text that are predicted."""
    return 0 if run.valid_ids is None else int(np.count_nonzero(run.valid_ids >= 0))
