"""A network: a sequence of layers, including recurrent cells, and an output layer."""

import dataclasses
from typing import Any

import numpy as np

from tiedtools.network.step import State, Step


@dataclasses.dataclass
class Network:
    """A network that maps word IDs through layers to an output layer. See layers/ and cells/ for their interfaces.

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
