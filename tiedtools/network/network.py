"""A network: a sequence of layers, including recurrent cells, and an output layer."""

import dataclasses
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

State = tuple[np.ndarray, ...]  # what a model passes from window to window: arrays whose axis 1 has length B


class Step(NamedTuple):
    """One window: input words, targets, and random seeds. Fields that may be None are Any, since layers know when.

    ids       int32 [T, B]; None: the step only composes word tables
    targets   int32 [T, B], -1: ignored; None if nothing is predicted
    seed      function from a site (name or tuple) to the uint64 seed of its masks or samples; None: no dropout
    training  compute gradients, drop words, and use the configured precision for products
    scale     factor of the sum of losses in the objective
    lengths   int32 [B], numbers of words of the sequences, without padding; None: no padding
    """

    ids: Any
    targets: Any = None
    seed: Any = None
    training: bool = False
    scale: float = 1.0
    lengths: Any = None


def mask_seed(seed: int, step: int, site: Hashable) -> np.uint64:
    """Return a 64-bit seed for the masks at one site, a name or a tuple, in one step."""
    words = np.frombuffer(repr(site).encode().ljust(32), np.uint32)
    return np.random.SeedSequence([seed, step % 2**64, *words.tolist()]).generate_state(1, np.uint64)[0]


@dataclasses.dataclass
class Network:
    """A network that maps word IDs through layers to an output layer. See layers/ and cells.py for their interfaces.

    tables  word tables that are composed for each step (tables.Composed)

    The state of a network is the concatenated state of its cells: a tuple of arrays, whose axis 1 has length B.
    """

    layers: list[Any]
    output: Any
    tables: list[Any] = dataclasses.field(default_factory=list)

    def start(self, B: int) -> State:
        """Return the initial state for batch size B."""
        return tuple(part for layer in self.layers if hasattr(layer, "start") for part in layer.start(B))

    def forward(self, state: State, step: Step) -> tuple[np.ndarray, State]:
        """Return the input of the output layer for the window of a Step, and the state after the window."""
        for table in self.tables:
            table.begin(step)
        x, before, after = step.ids, iter(state), []
        for layer in self.layers:
            if hasattr(layer, "start"):
                x, new_state = layer.forward(x, [next(before) for _ in range(layer.parts)], step)
                after += new_state
            else:
                x = layer.forward(x, step)
        return x, tuple(after)

    def train(self, state: State, step: Step) -> tuple[np.ndarray, State]:
        """Compute the gradient of a window; returns (nats [T, B], state after the window)."""
        x, state = self.forward(state, step)
        nats, dy = self.output.loss(x, step)
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        for table in self.tables:
            table.backward()
        return nats, state
