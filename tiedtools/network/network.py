"""A network: layers one after the other, cells among them, and an output layer at the end."""

import dataclasses
from typing import Any


@dataclasses.dataclass
class Network:
    """ids -> layers -> output. See layers/ and cells/ for what these are.

    The state of a network is that of its cells, one after the other: a tuple of arrays, axis 1 of length B.
    """

    layers: list
    output: Any

    def start(self, B):
        """The state before any word."""
        return tuple(part for layer in self.layers if hasattr(layer, "start") for part in layer.start(B))

    def forward(self, state, step):
        """The output layer's input for the window of a Step, and the state after it."""
        x, before, after = step.ids, iter(state), []
        for layer in self.layers:
            if hasattr(layer, "start"):
                x, new = layer.forward(x, [next(before) for _ in range(layer.parts)], step)
                after += new
            else:
                x = layer.forward(x, step)
        return x, tuple(after)

    def train(self, state, step):
        """Make the gradient of a window: (nats [T, B], state after it)."""
        x, state = self.forward(state, step)
        nats, dy = self.output.loss(x, step)
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return nats, state
