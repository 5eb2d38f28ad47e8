"""Training settings and learning-rate schedules."""

import dataclasses
import math
from collections.abc import Iterator

from tiedtools.base.messages import perplexity
from tiedtools.base.settings import Checked, Mistake, Range, setting


@dataclasses.dataclass(frozen=True)
class Training(Checked):
    """Training settings: epochs, learning-rate schedule, gradient clipping, and model selection.

    lr and clip depend on the loss scale. Schedules:

    plateau   after each epoch without a new best validation loss, divide the learning rate by `decay`
    decay     in epoch k, counted from 1, the learning rate is lr / decay ** max(0, k - decay_after). Zaremba et al.
              state `decay_after` 4, 6, and 14, but their code lowers the rate only after epochs 5, 7, and 15
    constant  lr in all epochs
    halving   as in rnnlm. An epoch whose validation loss exceeds the previous loss is reverted. After the
              first epoch whose loss times min_improvement exceeds the previous loss, the learning rate is halved after
              every epoch; the second such epoch ends training, as does epoch `epochs`

    Without a validation text, the training loss stands for the validation loss.
    """

    epochs: int = setting(40, Range(1, 2**31 - 1))("Number of epochs; with `sessions`, per session.")
    sessions: int = setting(1, Range(1, 1000))(
        "Number of training sessions; each restarts the schedule from an earlier model (Inan et al.)."
    )
    restart: str = setting("best", choices=("best", "last"))(
        "Model that each later session starts from: best validation loss so far, or last epoch."
    )
    keep: str = setting("best", choices=("best", "last"))(
        "Model to test and save: best validation loss, or last epoch (Zaremba et al.)."
    )
    lr: float = setting(20.0, Range(0, min_open=True))(
        "Initial learning rate.  [default for adadelta: 1, for adam: .001]"
    )
    clip: float = setting(0.25, Range(0))("Clip the global gradient norm to this value; 0 disables.")
    schedule: str = setting("plateau", choices=("plateau", "decay", "constant", "halving"))(
        "plateau: reduce the learning rate after each epoch without improvement; decay: after every epoch; constant:"
        " never; halving: as rnnlm does, halve it after every epoch once an epoch gains little, and end after the"
        " second such epoch."
    )
    decay: float = setting(4.0, Range(1))("Divide the learning rate by this at each reduction.")
    min_gain: float = setting(0.0, Range(0))(
        "With `schedule=plateau`, reduce the learning rate unless validation perplexity falls by at least this (Kim et"
        " al.: 1); 0: unless it is the lowest so far."
    )
    decay_after: int = setting(1, Range(1))("With `schedule=decay`, number of epochs at the initial learning rate.")
    min_improvement: float = setting(1.003, Range(0))(
        "With `schedule=halving`, minimum ratio of validation log probabilities between epochs. The first epoch below"
        " it starts halving the learning rate; the second ends training."
    )
    eval_batch: int = setting(10, Range(1, 10**5))("Batch size (parallel streams) in validation.")

    def mistakes(self) -> Iterator[Mistake]:
        problem = "`restart='best'` needs the best model, which `keep='last'` does not save; use `restart='last'`"
        yield problem, self.sessions > 1 and (self.keep, self.restart) == ("last", "best")
        halving = self.schedule == "halving"
        yield "`schedule='halving'` ends training itself: set `sessions=1`", halving and self.sessions > 1
        problem = "`schedule='halving'` reverts epochs to the best model, which `keep='last'` does not save; use"
        yield f"{problem} `keep='best'`", halving and self.keep == "last"


@dataclasses.dataclass
class Rate:
    """State of a Schedule, as saved in checkpoints.

    lr        learning rate of the current epoch
    over      whether training has ended
    halving   in Halving: whether each epoch halves the rate
    previous  in Halving and Plateau: loss of the previous epoch in nats
    """

    lr: float
    over: bool = False
    halving: bool = False
    previous: float = math.inf


class Schedule(Rate):
    """A constant learning rate, and the base class of schedules that change it.

    endless  whether the schedule decides when training ends
    """

    endless = False

    def __init__(self, training: Training) -> None:
        super().__init__(training.lr)
        self.training = training

    def next(self, epoch: int, loss: float, improved: bool) -> bool:
        """Set the rate after `epoch` epochs. Return whether the next epoch starts from the best parameters so far.

        loss      loss of the last epoch in nats, on the validation text or, without one, on the training text
        improved  whether the last epoch is the best so far
        """
        t = self.training
        epoch_of_session = epoch % t.epochs if t.sessions > 1 else epoch
        self.lr = self.rate(epoch_of_session, improved) if epoch_of_session else t.lr
        return not epoch_of_session and t.restart == "best" and epoch < t.epochs * t.sessions

    def rate(self, epoch: int, improved: bool) -> float:
        """Return the rate after `epoch` epochs of a session, at least one."""
        return self.lr


class Plateau(Schedule):
    def next(self, epoch: int, loss: float, improved: bool) -> bool:
        # Not in the first epoch, nor in the first after a return to the best model.
        if (gain := self.training.min_gain) and self.previous < math.inf:
            improved = perplexity(self.previous) - perplexity(loss) >= gain  # type: ignore[operator]
        restarts = super().next(epoch, loss, improved)
        self.previous = math.inf if restarts else loss
        return restarts

    def rate(self, epoch: int, improved: bool) -> float:
        return self.lr if improved else self.lr / self.training.decay


class Decay(Schedule):
    def rate(self, epoch: int, improved: bool) -> float:
        t = self.training
        try:
            return t.lr / t.decay ** max(0, epoch + 1 - t.decay_after)
        except OverflowError:  # the limit of repeated division
            return 0.0


class Halving(Schedule):
    endless = True

    def next(self, epoch: int, loss: float, improved: bool) -> bool:
        worse = loss > self.previous
        if loss * self.training.min_improvement > self.previous:
            self.over, self.halving = self.halving, True
        if not self.over:
            self.lr, self.previous = self.lr / 2 if self.halving else self.lr, loss
        return worse


SCHEDULES = {"plateau": Plateau, "decay": Decay, "constant": Schedule, "halving": Halving}
USED = {"plateau": ["decay", "min_gain"], "decay": ["decay", "decay_after"], "halving": ["min_improvement"]}


def of_other_schedules(schedule: str) -> list[str]:
    """Return the settings that only other schedules use."""
    return sorted({name for names in USED.values() for name in names} - {*USED.get(schedule, [])})
