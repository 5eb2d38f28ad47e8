"""The common bases of language and translation models."""

import math
from typing import Any

from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.network.network import State
from tiedtools.network.optimizers import optimizer
from tiedtools.network.params import Params
from tiedtools.network.threads import Team
from tiedtools.text.vocab import Vocab
from tiedtools.training.batches import Learner


class Model(modelfile.Stored):
    """A language or translation model, with its configuration, parameters, and the Vocab of the words it predicts."""

    config: Any
    vocab: Vocab
    params: Params
    Team: type = Team

    def build(self, values: Arrays | None = None, **options: Any) -> None:
        """Allocate the parameters that have been declared.

        values   initial arrays; None: initialize randomly
        options  see Params.build
        """
        if values is not None:
            self.params.check(values)
        self.params.build(**options)
        if values is None:
            self.draw()
        else:
            self.params.fill(values)
        self.params.starts.clear()  # methods of layers, which have the Params: a cycle would keep the model in memory

    def draw(self) -> None:
        self.params.draw(self.config.seed)

    @property
    def uniform_loss(self) -> float:
        """See fit.py; with sampled softmax, corrected by expected counts, about as much."""
        return math.log(len(self.vocab))

    @property
    def n_params(self) -> int:
        """Number of parameters; a shared array counts once."""
        return self.params.count


class BatchedModel(Model):
    """A network and its parameters, with the methods that fit.py requires of all batched models.

    A subclass defines:

    wire(params)      return the network that `config` describes, whose layers declare their parameters in `params`
    smallest(config)  class method; return a small model that runs the kernels of `config`
    compile()         compile the kernels of the model without changing the parameters
    """

    wire: Any
    smallest: Any
    compile: Any

    def __init__(self, config: Any, values: Arrays | None = None) -> None:
        """Create the model. values: initial arrays of the parameters; None: initialize randomly."""
        self.config = config
        params = self.params = Params(self.Team(config.threads), config.dtype, half=config.precision == "bfloat16")
        self.network = self.wire(params)
        self.build(values)

    @classmethod
    def warm_up(cls, config: Any) -> None:
        """Compile the kernels with a small model, so that later memory checks include the memory compilation takes."""
        model = cls.smallest(config)
        model.compile()
        model.learner(1.0).optimizer.update(0.1)

    def begin(self) -> State:
        """Return the initial state of an epoch, which is empty; see Learner."""
        return ()

    def learner(self, clip: float) -> Learner:
        return Learner(self, optimizer(self.params, self.config, clip))
