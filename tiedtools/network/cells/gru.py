"""The GRU cell."""

from tiedtools.kernels.cells import gru
from tiedtools.network.cells.lstm import LSTM


class GRU(LSTM):
    """A GRU cell, which computes h_t from x_t and h_{t-1}; see kernels/cells/gru.py for the equations.

    Parameters: name.W_x  [m, 3n] and name.b  [3n], gates in the order c, r, u        name.W_h  [n, 3n], order r, u, c
    """

    gates, parts, kernel, states = 3, 1, gru, gru.GruStates
    forget_gate = 2  # the update gate acts as the forget gate
