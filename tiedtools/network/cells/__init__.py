"""Recurrent cells: layers with a state that is passed from step to step and from window to window.

    cell = Cell(params, name, m, n, start, masks)
    y, state = cell.forward(x, state, step)        x [T, B, m], y [T, B, n]
    dx = cell.backward(dy)                         adds to the gradients of the cell's parameters
    state = cell.start(B)                          initial state: a tuple of arrays, axis 1 of length B
    cell.parts, cell.gates                         number of these arrays; number of gates that may have their own masks

start  a start.Start        masks  (Masks of the state, Masks of x), each may be None

The gradient stops at the first state of the window (truncated BPTT). To add a cell, add a module and an entry in CELLS.
"""

import importlib
from typing import Any

CELLS = {  # name -> module:class
    "lstm": "tiedtools.network.cells.lstm:LSTM",
    "gru": "tiedtools.network.cells.gru:GRU",
    "rhn": "tiedtools.network.cells.rhn:RHN",
}


def cell(name: str) -> Any:
    """Return the class of the cell `name`."""
    module, _, kind = CELLS[name].partition(":")
    return getattr(importlib.import_module(module), kind)
