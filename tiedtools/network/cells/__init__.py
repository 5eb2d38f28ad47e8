"""Cells: layers with a state that goes from step to step, and from window to window.

    cell = Cell(params, name, m, n, start, masks)
    y, state = cell.forward(x, state, step)        x [T, B, m], y [T, B, n]
    dx = cell.backward(dy)                         adds to the gradients of the cell's parameters
    state = cell.start(B)                          before any word: a tuple of arrays, axis 1 of length B
    cell.parts, cell.gates                         how many arrays that are; gates that may have masks of their own

start  a start.Start        masks  (Masks of the state, Masks of x), either of them None

The gradient stops at the window's first state (truncated backpropagation through time). A new cell is a file and an
entry here.
"""

import importlib

CELLS = {"lstm": "tiedtools.network.cells.lstm:LSTM"}  # by name: where its class is


def cell(name):
    """The class of a cell."""
    module, _, kind = CELLS[name].partition(":")
    return getattr(importlib.import_module(module), kind)
