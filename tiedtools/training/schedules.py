"""How to train: epochs, learning rates, and which model to keep; and the schedules that say so epoch by epoch."""

import dataclasses
import math
from typing import ClassVar

from tiedtools.errors import Checked


@dataclasses.dataclass(frozen=True)
class Training(Checked):
    """How to train.

    epochs          passes over the text in a session
    sessions        passes through the whole schedule; each further one starts again with the first learning rate
    restart         from the "best" model so far or from the "last" one (Inan et al. 2017, footnote 4)
    keep            the model that is left in the end: that of the "best" validation loss, or of the "last" epoch
    lr, clip        first learning rate; limit of the gradient's global norm, 0: none. Both go with the loss scale
    schedule        "plateau": lr / decay whenever an epoch's validation loss is no new best (training loss, where there
                    is no validation); "decay": epoch k, from 1, has lr / decay ** max(0, k - decay_after); "halving":
                    rnnlm's. An epoch with a greater validation loss than the one before is taken back. The first whose
                    loss times min_improvement is greater than that of the one before, and all after it, end with
                    lr / 2; the second such epoch is the last, or the one numbered `epochs`
    decay_after     so many full epochs have the first rate. Zaremba et al. write 4, 6 and 14, but their code lowers the
                    rate only after epochs 5, 7 and 15
    eval_batch      streams that validation cuts its text into
    """

    epochs: int = 40
    sessions: int = 1
    restart: str = "best"
    keep: str = "best"
    lr: float = 20.0
    clip: float = 0.25
    schedule: str = "plateau"
    decay: float = 4.0
    decay_after: int = 1
    min_improvement: float = 1.003
    eval_batch: int = 10

    choices: ClassVar[dict] = {
        "schedule": ("plateau", "decay", "halving"),
        "restart": ("best", "last"),
        "keep": ("best", "last"),
    }

    def mistakes(self):
        """See Checked."""
        yield (
            "`restart='best'` needs the model that `keep='last'` does not keep: use `restart='last'`",
            self.sessions > 1 and (self.keep, self.restart) == ("last", "best"),
        )
        yield f"`decay={self.decay}` would raise the learning rate: give the divisor, 1 or more", self.decay < 1


@dataclasses.dataclass
class Rate:
    """What a checkpoint holds of a Schedule.

    lr        of the present epoch
    over      whether training has ended
    halving, previous  of Halving: whether the rate is being halved, and the validation loss of the epoch before
    """

    lr: float
    over: bool = False
    halving: bool = False
    previous: float = math.inf


class Schedule(Rate):
    """The learning rate epoch by epoch. endless: only the schedule knows when training ends."""

    endless = False

    def __init__(self, training):
        super().__init__(training.lr)
        self.training = training

    def next(self, epoch, valid_loss, improved):
        """Set the rate after `epoch` epochs. Returns whether the next one starts from the best parameters so far.

        valid_loss  of the last epoch, nats; None: no validation        improved  whether it was the best so far
        """
        t = self.training
        within = epoch % t.epochs if t.sessions > 1 else epoch
        self.lr = self.rate(within, improved) if within else t.lr
        return not within and t.restart == "best" and epoch < t.epochs * t.sessions

    def rate(self, epoch, improved):
        """The rate after `epoch` epochs of a session, not 0."""
        raise NotImplementedError


class Plateau(Schedule):
    def rate(self, epoch, improved):
        return self.lr if improved else self.lr / self.training.decay


class Decay(Schedule):
    def rate(self, epoch, improved):
        t = self.training
        try:
            return t.lr / t.decay ** max(0, epoch + 1 - t.decay_after)
        except OverflowError:  # as dividing again and again would come to
            return 0.0


class Halving(Schedule):
    endless = True

    def next(self, epoch, valid_loss, improved):
        if valid_loss is None:
            return False
        worse = valid_loss > self.previous
        if valid_loss * self.training.min_improvement > self.previous:
            self.over, self.halving = self.halving, True
        if not self.over:
            self.lr, self.previous = self.lr / 2 if self.halving else self.lr, valid_loss
        return worse


SCHEDULES = {"plateau": Plateau, "decay": Decay, "halving": Halving}
