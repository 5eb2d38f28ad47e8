"""Recurrent layers that PyTorch does not have: recurrent highway networks, and the LSTM layers of AWD-LSTM."""

import itertools

import torch
from torch import nn
from torch.nn import functional


class Locked(nn.Dropout):
    """Dropout of [T, B, n] with a mask that is the same in all steps."""

    def forward(self, x):
        return x * functional.dropout(x.new_ones(1, *x.shape[1:]), self.p, self.training)


class RHN(nn.Module):
    """One recurrent highway layer, x [T, B, size], state [1, B, hidden] -> states [T, B, hidden], last state.

    The inputs of all steps are one product; the dropout mask of the state is the same in all micro-steps.
    """

    def __init__(self, size, hidden, depth, dropout=0.0):
        super().__init__()
        self.inputs, self.dropout = nn.Linear(size, 2 * hidden, bias=False), dropout
        self.states = nn.ModuleList(nn.Linear(hidden, 2 * hidden) for _ in range(depth))
        self.one_step = self.step

    def compile_step(self):
        self.one_step = torch.compile(self.step, dynamic=False)

    def step(self, inputs, state, mask):
        for linear in self.states:
            scores = linear(state * mask)
            if linear is self.states[0]:
                scores = scores + inputs
            new, gate = scores.chunk(2, 1)
            state = state + gate.sigmoid() * (new.tanh() - state)
        return state

    def forward(self, x, state):
        (last,) = state
        mask = functional.dropout(torch.ones_like(last), self.dropout, self.training)
        states = []
        for row in self.inputs(x):
            last = self.one_step(row, last, mask)
            states.append(last)
        return torch.stack(states), last[None]


class AWD(nn.Module):
    """LSTM layers of the given widths with weight drop, and locked dropout between them: Merity et al. 2018.

    x [T, B, size], state a pair [1, B, n] for each layer -> outputs of the last layer, state
    """

    def __init__(self, size, widths, dropout, drop_weights):
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(m, n) for m, n in itertools.pairwise([size, *widths]))
        self.dropout, self.drop_weights = Locked(dropout), drop_weights

    def forward(self, x, state):
        after = []
        for layer, start in zip(self.layers, state):
            W_x, W_h, *biases = layer.all_weights[0]
            weights = [W_x, functional.dropout(W_h, self.drop_weights, self.training), *biases]
            x = self.dropout(x) if after else x
            x, *end = torch._VF.lstm(x, start, weights, True, 1, 0.0, self.training, False, False)
            after.append(tuple(end))
        return x, tuple(after)
