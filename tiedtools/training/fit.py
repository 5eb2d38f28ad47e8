"""The training loop of language models: epochs, validation, schedule, best model, checkpoints, stop and resume.

Fit requires of a model:

    kind, config, vocab     config: a dataclass
    params                  .values, a flat float array of all parameters; .set(values) copies one into it
    KERNELS                 approximate number of kernels, for the progress of compilation
    uniform_loss            mean loss, in nats, of uniform predictions
    compile()               compile the kernels, so that compilation does not count as training time
    batches(ids)            the training batches of int32 IDs
    learner(clip)           the learner; clip: limit of the gradient norm, 0: none

    identity                optional: arrays that must be the same to resume, by name; see checkpoints.identity
    continued               optional: further options that must be the same to resume, by name
    racing                  optional: whether the result depends on the number of threads

and, unless Fit has the argument `validate` (translation models),

    config                  with steps (T) and batch (B); evaluation scores T B words at a time
    start(batch)            initial state, a tuple of arrays whose axis 1 has length batch
    score(ids, targets, state)
                            -> (log probabilities, float64 [T, B], 0 where the target is -1; state). Without dropout,
                            unless the keyword `sample` numbers the dropout masks to use, the same in all calls.

of batches, which divide a text into steps (training/batches.py, models/rnnlm/batches.py):

    words, steps            words predicted per epoch; steps of the current epoch
    most                    most steps that an epoch can have
    begin(epoch)            put the text into the order of this epoch, numbered from 0. Called before any step of an
                            epoch, even if an earlier run did its first steps
    [k]                     batch k of the epoch

and of a learner, which updates the parameters:

    begin()                 initial state of an epoch, a tuple of arrays
    step(batch, state, number, lr)
                            -> (nll_nats, n_predicted, gradient norm before clipping or 0 if not computed, state);
                            `number`, epoch * most + step of the epoch, is unique
    optimizer               an optimizers.Optimizer
    remedy                  optional: advice for the message that training diverged
"""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged
from tiedtools.base.messages import finite, log, perplexity
from tiedtools.files.modelfile import Arrays
from tiedtools.network.network import State
from tiedtools.runs import checkpoints
from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.runs.compiling import compiling
from tiedtools.runs.progress import Listener, Progress
from tiedtools.runs.session import LARGEST, WORST_LOSS, Session, beyond, is_sane
from tiedtools.text.sources import counted
from tiedtools.training.schedules import SCHEDULES, Rate, Training
from tiedtools.training.scoring import evaluate

FIGURES = dict(epoch=int, lr=float, train_ppl=float, valid_ppl=float | None, words_per_s=float, seconds=float)


@dataclasses.dataclass
class Standing:
    """Progress of a Fit: what a checkpoint holds in addition to arrays.

    earlier, epoch, steps   epochs done before this run; epochs done in total; steps done of the current epoch
    nll, predicted, busy    of the current epoch: nats, words predicted, seconds of training
    best_epoch, best_loss   epoch of the model saved as best, and the best loss in nats
    """

    earlier: int = 0
    epoch: int = 0
    steps: int = 0
    nll: float = 0.0
    predicted: int = 0
    busy: float = 0.0
    best_epoch: int = 0
    best_loss: float = math.inf


class Hooks:
    """Functions that a Fit calls; these do nothing."""

    def after_step(self, run: "Fit") -> None:
        """Act after a step."""

    def after_epoch(self, run: "Fit") -> None:
        """Act after an epoch, when the next one is prepared and `run.steps` is 0."""


class Fit(Session, Standing):
    """Trains a model on int32 IDs; `best` holds the parameters that training.keep selects.

    train_ids   IDs of the training text, or a tuple of several texts, such as both sides of a bitext
    valid_ids   likewise the validation text; None or empty: no validation, and the last epoch counts as the best;
                with `schedule=halving`, that with the least training loss
    checkpoint  path of the checkpoint, written at the start, after each epoch, every `minutes` (0: never), and when a
                signal stops the run
    resume      resume from `checkpoint`; the result is bit-identical to that of an uninterrupted run if the model is
                deterministic (on one thread)
    hooks       the Hooks to call, or None
    validate    (model, valid_ids, batch, poll) -> log probabilities of the validation text, an array; None: evaluate
    measure     (model, poll) -> BLEU of the validation text, in percent: a figure of each epoch, and the best model is
                the one with the highest; the schedule goes by the loss. None: the best model has the least loss

    Raises TiedtoolsError if the text is too short or the checkpoint belongs to another run.
    """

    def __init__(
        self, model: Any, train_ids: Any, valid_ids: Any, training: Training, checkpoint: str | None = None,
        minutes: float = 0.0, resume: bool = False, hooks: Hooks | None = None,
        validate: Callable[..., np.ndarray] | None = None, measure: Callable[..., float] | None = None,
    ) -> None:  # fmt: skip
        Session.__init__(self, model)
        Standing.__init__(self)
        self.training, self.hooks, self.validate, self.measure = training, hooks or Hooks(), validate, measure
        self.kinds = FIGURES | (dict(valid_bleu=float) if measure else {})
        self.valid_ids = valid_ids if valid_ids is not None and len(valid_ids) else None
        self.batches, self.learner = model.batches(train_ids), model.learner(training.clip)
        self.optimizer, self.schedule = self.learner.optimizer, SCHEDULES[training.schedule](training)
        self.epochs, self.endless = training.epochs * training.sessions, self.schedule.endless

        self.limit = WORST_LOSS * model.uniform_loss
        self.state = self.begin(0)
        self.best: Any = None
        if checkpoint is not None:
            texts = dict(training_text=train_ids, validation_text=self.valid_ids, **getattr(model, "identity", {}))
            identity = checkpoints.identity(self.options(), **texts)
            self.checkpoint = Checkpoint(checkpoint, identity, model.vocab, minutes, [model.config, training])
            if resume:
                self.load(self.checkpoint)

    def begin(self, epoch: int) -> State:
        """Begin an epoch and return its initial state."""
        self.batches.begin(epoch)
        return self.learner.begin()

    def options(self) -> dict[str, Any]:
        """Return the options that determine the result, which must match for the run to resume."""
        config, training = dataclasses.asdict(self.model.config), dataclasses.asdict(self.training)
        # These options do not change what a thread computes, or change only the number of epochs.
        racing = getattr(self.model, "racing", False)
        free = dict(threads=not racing, epochs=self.training.sessions == 1, min_improvement=not self.endless)
        options = {"kind": self.model.kind, **config, **training, **getattr(self.model, "continued", {})}
        options["bleu"] = bool(self.measure)
        return {name: value for name, value in options.items() if not free.get(name)}

    def go(self, progress: Listener | None = None) -> list[dict[str, Any]]:
        """Train, reporting to a Progress, and leave the best parameters in the model.

        Returns `history`, the FIGURES of each epoch. Raises KeyboardInterrupt (after the current step and
        a checkpoint) or Diverged; the model then has the parameters of the best epoch, or, during the first epoch, the
        parameters of the last good step.
        """
        self.progress = progress or Progress()
        try:
            with compiling(self.progress, self.model.KERNELS):
                self.model.compile()
            epochs = 1 if self.endless else self.epochs
            self.progress.begin(epochs * self.batches.words, self.reported, self.history, self.endless)
            with self.clock(), interrupts.deferred():
                if self.checkpoint:
                    self.checkpoint.write(*self.contents())  # fails before training if it cannot be written
                while self.epoch < self.epochs and not self.schedule.over:
                    self.train()
                    self.finish_epoch()
        finally:
            if self.best is not None:
                self.model.params.set(self.best)
            else:
                self.optimizer.swap()
        return self.history

    @property
    def done(self) -> int:
        """Words predicted so far, in all epochs."""
        return self.epoch * self.batches.words + self.predicted

    @property
    def reported(self) -> int:
        """Words predicted so far, as the Progress counts them: of this epoch if the number of epochs is unknown."""
        return self.predicted if self.endless else self.done

    @property
    def figures(self) -> dict[str, Any]:
        """Results so far: epochs done, the best epoch, its perplexities and BLEU; None where unknown."""
        measures = {name: self.best_figures.get(name) for name in self.kinds if name.endswith(("_ppl", "_bleu"))}
        return dict(epochs=self.epoch, best_epoch=self.best_epoch or None, **measures)

    @property
    def best_figures(self) -> dict[str, Any]:
        """Figures of the best epoch; empty if there is none."""
        return next((epoch for epoch in self.history if epoch["epoch"] == self.best_epoch), {})

    @property
    def standing(self) -> str:
        if self.schedule.over or self.epoch >= self.epochs:
            remedy = "" if self.schedule.over or self.epochs != self.training.epochs else "; raise `epochs` to continue"
            return f"already complete ({counted(self.epoch, 'epoch')}){remedy}"
        return f"epoch {self.epoch + 1}, {self.steps:,} of {self.batches.steps:,} steps done"

    @property
    def reached(self) -> str:
        """Progress so far, and the epoch of the saved model, for messages."""
        total = f" of {self.epochs:,}" if self.epochs <= 10**6 else ""
        where = f"after {self.epoch:,}{total} epochs" if total else f"after {counted(self.epoch, 'epoch')}"
        if self.steps or not self.epoch:
            where = f"in epoch {self.epoch + 1:,}{total}"
        return f"{where} (model of epoch {self.best_epoch:,})" if self.best_epoch else where

    def worthwhile(self, stopped: BaseException | None = None) -> bool:
        """Return whether the model is worth writing: it has been trained, and its parameters are sane."""
        learned = self.best is not None or not isinstance(stopped, Diverged) and self.epoch + self.steps > 0
        return learned and is_sane(self.model.params.values)

    def train(self) -> None:
        """Do the remaining steps of this epoch."""
        if self.endless and not self.steps:
            self.progress.restart()
        while self.steps < self.batches.steps:
            began = time.monotonic()
            number = self.epoch * self.batches.most + self.steps
            batch, lr = self.batches[self.steps], self.schedule.lr
            nll, predicted, norm, state = self.learner.step(batch, self.state, number, lr)
            for name, value in ("loss", nll), ("gradient norm", norm):
                if not math.isfinite(value):
                    raise self.diverged(f"the {name} is {value}")
            self.state, self.steps = state, self.steps + 1
            self.nll, self.predicted = self.nll + float(nll), self.predicted + int(predicted)
            if self.nll > self.limit * self.batches.words:  # the mean of the whole epoch cannot be below the limit
                raise self.diverged(beyond(self.limit))
            self.busy += time.monotonic() - began
            self.progress.update(self.reported, self.nll / max(self.predicted, 1), lr)
            self.hooks.after_step(self)
            self.poll()

    def diverged(self, why: str) -> Diverged:
        clip = "`clip`" if self.training.clip else "set `clip`"
        remedy = getattr(self.learner, "remedy", f"lower `lr` or {clip}")
        where = f"in epoch {self.epoch + 1}, after {counted(self.steps, 'step')}"
        return Diverged(f"training diverged {where}: {why}; {remedy}")

    def finish_epoch(self) -> None:
        """Validate, save the best parameters, report, set the next learning rate, and prepare the next epoch."""
        train_loss, valid_loss = self.nll / max(self.predicted, 1), None
        if not is_sane(self.model.params.values):
            raise self.diverged(f"a parameter is not finite or exceeds {LARGEST:g} in magnitude")
        with self.optimizer.averaged():
            if self.valid_ids is not None:
                logs = (self.validate or evaluate)(self.model, self.valid_ids, self.training.eval_batch, self.poll)
                valid_loss = -float(logs.mean())
                if math.isnan(valid_loss):
                    raise self.diverged("the validation loss is nan")
            loss = train_loss if valid_loss is None else valid_loss
            improved = better = loss < self.best_loss
            bleu = {"valid_bleu": round(self.measure(self.model, self.poll), 2)} if self.measure else {}
            if bleu and self.best_figures:  # equal BLEU: the loss decides
                best = self.best_figures["valid_bleu"], -(self.best_figures["valid_ppl"] or math.inf)
                better = (bleu["valid_bleu"], -perplexity(loss)) > best  # type: ignore[operator]
            newest = self.training.keep == "last" or valid_loss is None and not self.endless
            if better or newest or self.best is None:
                self.save_best(self.epoch + 1)
        self.best_loss = min(loss, self.best_loss)
        self.epoch += 1
        valid_ppl = None if valid_loss is None else perplexity(valid_loss)
        rate, seconds = round(self.predicted / self.busy, 1), round(self.seconds, 3)
        values = self.epoch, self.schedule.lr, perplexity(train_loss), valid_ppl, rate, seconds
        figures = dict(zip(FIGURES, values)) | bleu
        self.history.append(finite(figures))
        self.progress.epoch(**figures)
        if self.optimizer.epoch(self.perplexities) and self.epoch < self.epochs:
            log.info(f"epoch {self.epoch + 1:,} and later: the average of the parameters is scored and saved")
        if self.schedule.next(self.epoch, loss, improved):
            self.model.params.set(self.best)
            self.optimizer.restart()
        self.steps, self.nll, self.predicted, self.busy = 0, 0.0, 0, 0.0
        self.state = self.begin(self.epoch)
        self.hooks.after_epoch(self)
        self.poll(save=True)

    @property
    def perplexities(self) -> list[float]:
        """Perplexities of all epochs on the validation text, or, without one, on the training text."""
        name = "train_ppl" if self.valid_ids is None else "valid_ppl"
        return [math.inf if epoch[name] is None else epoch[name] for epoch in self.history]

    def save_best(self, epoch: int) -> None:
        """Save the current parameters, of epoch `epoch`, as the best."""
        if self.best is None:
            self.best = np.empty_like(self.model.params.values)
        self.best[:], self.best_epoch = self.model.params.values, epoch

    def poll(self, save: bool = False) -> None:
        """Write a checkpoint if one is due or `save` is true, then stop if a signal asks for it."""
        if self.checkpoint and (save or self.checkpoint.due):
            self.checkpoint.attempt(*self.contents())
        interrupts.check()

    def owners(self) -> dict[str, tuple[Any, Any]]:
        """Return (object that has the attribute, its type) for each name in Standing and Rate."""
        parts = (self, Standing), (self.schedule, Rate)
        return {field.name: (owner, field.type) for owner, kind in parts for field in dataclasses.fields(kind)}

    def contents(self) -> tuple[dict[str, Any], Arrays]:
        progress = {name: getattr(owner, name) for name, (owner, _) in self.owners().items()}
        progress = finite(progress | dict(history=self.history, elapsed=self.seconds))
        arrays = {**self.optimizer.arrays(), **{f"state_{k}": array for k, array in enumerate(self.state)}}
        if self.best is not None:
            arrays["best"] = self.best
        return progress, arrays

    def check(self, progress: dict[str, Any], arrays: Arrays) -> None:
        types = {name: kind for name, (_, kind) in self.owners().items()} | dict(history=list, elapsed=float)
        types |= dict.fromkeys(("best_loss", "previous"), float | None)  # initially infinite, which JSON cannot hold
        checkpoints.check_progress(progress, types, progress["epoch"], self.kinds)
        if progress["steps"] > self.batches.most:
            raise ValueError("inconsistent step count")
        values, V = self.model.params.values, len(self.model.vocab)
        names = [*self.optimizer.check(arrays), *["best"] * ("best" in arrays)]
        checkpoints.check_arrays(arrays, dict.fromkeys(names, values))
        for k, like in enumerate(self.state):
            state = arrays[f"state_{k}"]
            # Kernels do not check integers: int32 are word IDs, -1 for none, and int64 are counts.
            lowest, end = {"i4": (-1, V), "i8": (0, 1 << 62)}.get(like.dtype.str[1:], (-math.inf, math.inf))
            if state.dtype.kind != like.dtype.kind or like.dtype.kind == "i" and state.dtype != like.dtype:
                raise ValueError(f"state_{k} is {state.dtype}, not {like.dtype}")
            if state.shape != like.shape or state.size and not lowest <= state.min() <= state.max() < end:
                raise ValueError(f"state_{k} has another shape, or is out of range")

    def load(self, checkpoint: Checkpoint) -> None:
        progress, arrays = checkpoint.read(self.check)
        for name, (owner, _) in self.owners().items():
            setattr(owner, name, math.inf if progress[name] is None else progress[name])
        self.history, self.elapsed = progress["history"], progress["elapsed"]
        self.optimizer.restore(arrays)
        self.optimizer.epoch(self.perplexities)
        self.best = arrays.get("best")
        self.state = tuple(arrays[f"state_{k}"] for k in range(len(self.begin(self.epoch))))
