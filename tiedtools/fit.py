"""The training loop of language models: epochs, validation, schedule, best model, checkpoints, stop and resume.

A model, as `fit` wants it:

    kind, config, vocab     config: a dataclass with steps (T), batch (B), mc_samples
    params                  .values and .grads, flat float arrays of all parameters
    compile()               make everything ready, so that it does not count as training time
    start(batch)            state, a tuple of arrays, axis 1 of length batch: before any word
    train_step(ids, targets, state, step)
                            int32 [T, B] each -> (nll_nats, n_predicted, state); the gradient goes to params.grads.
                            Target -1: not predicted. `step` numbers the steps and seeds all that is random.
    update(lr, clip)        a step of SGD, the global norm of the gradient scaled down to `clip` (0: not); returns the
                            norm before that. Where it is not finite, the parameters stay as they were.
    score(ids, targets, state)
                            -> (log probabilities, float64 [T, B], 0 where the target is -1; state). No dropout; with a
                            keyword `sample`, that of the masks of this number, the same in all calls.
"""

import dataclasses
import math
import time

import numpy as np

from tiedtools import checkpoints, interrupts
from tiedtools.errors import TiedtoolsError
from tiedtools.report import compiling, perplexity, say


@dataclasses.dataclass(frozen=True)
class Training:
    """How to train.

    epochs          passes over the text in a session
    sessions        each further one starts from the best model with the first learning rate (Inan et al. 2017)
    lr, clip        first learning rate; limit of the gradient's global norm, 0: none. Both go with the loss scale
    schedule        "plateau": lr / decay whenever an epoch's validation loss is no new best (training loss, where there
                    is no validation); "decay": epoch k, from 1, has lr / decay ** max(0, k - decay_after)
    decay_after     so many full epochs have the first rate. Zaremba et al. write 4, 6 and 14, but their code lowers the
                    rate only after epochs 5, 7 and 15
    eval_batch      streams that validation cuts its text into
    checkpoint_minutes  between checkpoints within an epoch; 0: none there
    """

    epochs: int = 40
    sessions: int = 1
    lr: float = 20.0
    clip: float = 0.25
    schedule: str = "plateau"
    decay: float = 4.0
    decay_after: int = 1
    eval_batch: int = 10
    checkpoint_minutes: float = 10.0

    def __post_init__(self):
        if self.schedule not in ("plateau", "decay"):
            raise TiedtoolsError(f"schedule {self.schedule!r} is none of plateau, decay")
        if self.decay < 1:
            raise TiedtoolsError(f"--decay {self.decay} would raise the learning rate: give the divisor, 1 or more")

    def next_lr(self, epoch, lr, improved):
        """The rate after `epoch` epochs, the last of which had `lr` and `improved` on all before, or did not."""
        if self.sessions > 1:
            epoch %= self.epochs
            if not epoch:
                return self.lr
        if self.schedule == "plateau":
            return lr if improved else lr / self.decay
        return self.lr / self.decay ** max(0, epoch + 1 - self.decay_after)


class Diverged(TiedtoolsError):
    """Training broke down; the parameters are those of the best epoch, or before any, of the last good step."""


def fit(model, train_ids, valid_ids, training, report, checkpoint=None, resume=False):
    """Train a model on int32 ids, and leave the parameters of the epoch with the best validation loss in it.

    valid_ids   None or empty: there is no validation, and the last epoch is the best
    report      an LmReport
    checkpoint  path of a file to which the run is written at each epoch's end, every training.checkpoint_minutes and
                when a signal stops it
    resume      go on from `checkpoint`: the same parameters, to the bit, as of a run that was never stopped, where the
                model computes the same twice (on one thread)

    Returns a list of the figures of each epoch, dicts. Raises KeyboardInterrupt, at the end of the current step and after
    a checkpoint, or Diverged; the model then has the best epoch's parameters, or those reached before the first has ended.
    Raises TiedtoolsError for too short a text and for a checkpoint of another run.
    """
    return Fit(model, train_ids, valid_ids, training, checkpoint, resume).go(report)


class Fit:
    """A training run; arguments as of `fit`. `go` may take hours; making one tells mistakes at once."""

    def __init__(self, model, train_ids, valid_ids, training, checkpoint=None, resume=False):
        self.model, self.training, self.path = model, training, checkpoint
        config = model.config
        self.valid_ids = valid_ids if valid_ids is not None and len(valid_ids) else None
        self.streams = streams(train_ids, config.batch)
        self.words = self.streams[1:].size  # predicted in an epoch
        self.starts = range(0, len(self.streams) - 1, config.steps)
        self.epochs = training.epochs * training.sessions

        self.epoch = self.window = 0  # done, the window's within an epoch
        self.nll, self.predicted, self.busy = 0.0, 0, 0.0  # of this epoch: nats, words, seconds of training
        self.lr, self.state = training.lr, model.start(config.batch)
        self.best, self.best_loss, self.best_epoch = None, math.inf, 0
        self.history, self.elapsed = [], 0.0
        if checkpoint is not None:
            self.identity = checkpoints.identity(model, training, train_ids, self.valid_ids)
            if resume:
                self.load()
        self.elapsed_before = self.elapsed

    def go(self, report):
        self.report = report
        with compiling(report.verbosity):
            self.model.compile()
        report.begin(self.epochs * self.words, self.done, self.history)
        self.began = self.saved = time.monotonic()
        try:
            with interrupts.deferred():
                if self.path is not None:
                    self.save()  # tells at once where nothing can be written
                while self.epoch < self.epochs:
                    self.train()
                    self.finish_epoch()
        finally:
            if self.best is not None:
                self.model.params.values[:] = self.best
        return self.history

    @property
    def done(self):
        """Words predicted so far, of all epochs."""
        return self.epoch * self.words + self.predicted

    @property
    def finite(self):
        """Whether the model's parameters are: after Diverged they need not be."""
        return bool(np.isfinite(self.model.params.values).all())

    def train(self):
        """The rest of the windows of this epoch."""
        config, training = self.model.config, self.training
        while self.window < len(self.starts):
            began = time.monotonic()
            start = self.starts[self.window]
            ids = self.streams[start : start + config.steps + 1]
            step = self.epoch * len(self.starts) + self.window
            nll, predicted, state = self.model.train_step(ids[:-1], ids[1:], self.state, step)
            self.refuse("loss", nll)
            self.refuse("gradient norm", self.model.update(self.lr, training.clip))
            self.state, self.window = state, self.window + 1
            self.nll, self.predicted = self.nll + float(nll), self.predicted + int(predicted)
            self.busy += time.monotonic() - began
            self.report.update(self.done, self.nll / self.predicted, self.lr)
            self.look_up()

    def refuse(self, name, value):
        if not math.isfinite(value):
            raise Diverged(
                f"training diverged: the {name} is {value} in epoch {self.epoch + 1}, after {self.window:,} steps;"
                " a smaller --lr or --clip may help"
            )

    def finish_epoch(self):
        """Validate, keep the best, tell, set the next rate; then all is ready for the next epoch."""
        train_loss, valid_loss = self.nll / self.predicted, None
        if self.valid_ids is not None:
            logs = evaluate(self.model, self.valid_ids, self.training.eval_batch, self.look_up)
            valid_loss = -float(logs.mean())
        loss = train_loss if valid_loss is None else valid_loss
        if math.isnan(loss):
            self.refuse("validation loss", loss)
        improved = loss < self.best_loss
        if improved or valid_loss is None or self.best is None:
            self.best, self.best_epoch = self.model.params.values.copy(), self.epoch + 1
        self.best_loss = min(loss, self.best_loss)
        self.epoch += 1
        self.elapsed = self.elapsed_before + time.monotonic() - self.began
        figures = dict(
            epoch=self.epoch,
            lr=self.lr,
            train_ppl=perplexity(train_loss),
            valid_ppl=None if valid_loss is None else perplexity(valid_loss),
            tokens_per_s=round(self.predicted / self.busy, 1),
            seconds=round(self.elapsed, 3),
        )
        self.history.append(figures)
        self.report.epoch(**figures)
        self.lr = self.training.next_lr(self.epoch, self.lr, improved)
        if self.epoch < self.epochs and self.epoch % self.training.epochs == 0:
            self.model.params.values[:] = self.best
        self.window, self.nll, self.predicted, self.busy = 0, 0.0, 0, 0.0
        self.state = self.model.start(self.model.config.batch)
        self.look_up(save=True)

    def look_up(self, save=False):
        """Between two steps: save if it is time, or if somebody wants us to stop; and then stop."""
        minutes = self.training.checkpoint_minutes
        save = save or bool(interrupts.received) or minutes and time.monotonic() - self.saved >= 60 * minutes
        if self.path is not None and save:
            try:
                self.save()
            except TiedtoolsError as error:  # no reason to lose the run
                self.report.pause()
                say(f"no checkpoint: {error}")
        interrupts.check()

    PROGRESS = ("epoch", "window", "nll", "predicted", "busy", "lr", "best_epoch", "history", "elapsed")

    def save(self):
        self.elapsed = self.elapsed_before + time.monotonic() - self.began
        progress = {name: getattr(self, name) for name in self.PROGRESS}
        progress["best_loss"] = self.best_loss if math.isfinite(self.best_loss) else None
        arrays = {"values": self.model.params.values, **{f"state_{k}": s for k, s in enumerate(self.state)}}
        if self.best is not None:
            arrays["best"] = self.best
        checkpoints.write(self.path, self.identity, progress, self.model.vocab, arrays)
        self.saved = time.monotonic()

    def load(self):
        progress, arrays = checkpoints.read(self.path, self.identity, self.model.vocab)
        best_loss = progress.pop("best_loss")
        self.best_loss = math.inf if best_loss is None else best_loss
        for name in self.PROGRESS:
            setattr(self, name, progress[name])
        self.model.params.values[:] = arrays["values"]
        self.best = arrays.get("best")
        self.state = tuple(arrays[f"state_{k}"] for k in range(len(self.state)))


def streams(ids, batch):
    """The text as `batch` equal, contiguous streams side by side, without the remainder: int32 [length, batch]."""
    length = len(ids) // batch
    if length < 2:
        raise TiedtoolsError(f"{len(ids):,} tokens are too few to train on in {batch} streams: lower --batch")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)


def evaluate(model, ids, batch=1, between=lambda: None, samples=0):
    """Natural log probability of each token of a text, float64 [tokens].

    The text is cut into `batch` streams. Each starts from `</s>` and the state before any word; states are carried, so
    that the result does not depend on how streams are cut into windows. Every token is predicted.

    between  called between windows
    samples  average probabilities over so many draws of dropout masks (Gal's Monte Carlo dropout); 0: no dropout
    """
    length = -(-len(ids) // batch)
    targets = np.full(length * batch, -1, np.int32)
    targets[: len(ids)] = ids
    targets = np.ascontiguousarray(targets.reshape(batch, length).T)
    inputs = np.zeros_like(targets)
    inputs[1:] = np.maximum(targets[:-1], 0)
    steps = max(1, model.config.steps * model.config.batch // batch)  # as many words at a time as in training

    total = None
    for sample in range(samples) if samples else [None]:
        logs, state = np.empty(targets.shape), model.start(batch)
        options = {} if sample is None else {"sample": sample}
        for start in range(0, length, steps):
            window = slice(start, start + steps)
            logs[window], state = model.score(inputs[window], targets[window], state, **options)
            between()
        total = logs if total is None else np.logaddexp(total, logs)
    return (total - math.log(max(samples, 1))).T[targets.T >= 0]
