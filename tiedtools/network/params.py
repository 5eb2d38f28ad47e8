"""The parameters of a network and their gradients, by name; one array may have several names."""

import math

import numpy as np

from tiedtools.kernels.arrays import line_up
from tiedtools.kernels.elementwise import normalize_rows
from tiedtools.network.buffers import stride


class Params:
    """Named arrays that lie in one flat array, `values`, with their gradients in another, `grads`.

    Layers declare arrays with `add`; `tie` makes two names one array; `build` allocates. In a step, whoever comes first
    to a gradient overwrites it and the others add to it, so that nothing has to be set to zero.

    Arrays of which a step touches few rows, such as the input vectors, come last and are cleared by those rows.
    The name None denotes an empty array, such as the bias of a layer without one.

    team     the Team that all layers run their kernels on
    dtype and odd: see `buffers.stride`; half: layers may multiply in bfloat16
    version  changes with the values, for whoever keeps what is computed from them: call `changed` after writing to them
    """

    def __init__(self, team, dtype=np.float32, odd=True, half=False):
        self.team, self.dtype, self.odd, self.half = team, np.dtype(dtype), odd, half
        self.shapes, self.starts, self.by_rows, self.names, self.unit_rows = {}, {}, {}, {}, []
        self.version = 0

    def tie(self, name, other):
        """From now on `name`, still to be added, is another name of `other`."""
        self.names[name] = other

    def add(self, name, shape, start=None, by_rows=False):
        """Declare an array.

        start    how it starts: fill(rng, array); None: zeros
        by_rows  its gradient comes through `row_gradient` alone

        Raises ValueError where a tied name wants another shape.
        """
        owner = self.names.setdefault(name, name)
        if self.shapes.setdefault(owner, shape) != shape:
            raise ValueError(f"{name} {shape} cannot be {owner} {self.shapes[owner]}")
        self.starts.setdefault(owner, start)
        self.by_rows[owner] = by_rows and self.by_rows.get(owner, True)

    def build(self, gradients=True):
        """Allocate all arrays, zeros, and their gradients if there are any. Rows are filled up as tiles want them."""
        order = sorted(self.shapes, key=lambda name: self.by_rows[name])
        self.layout, size = {}, 0
        for name in order:
            *rows, width = self.shapes[name]
            shape = *rows, stride(width, self.dtype, self.odd)
            self.layout[name] = size, shape
            size += math.prod(shape)
            if not self.by_rows[name]:
                self.dense = size
        # Tiles may read a little behind the last row.
        new = lambda: line_up(size, self.dtype, spare=stride(1, self.dtype))
        self.values, self.grads = new(), new() if gradients else None
        self.none = self.values[:0]
        self.touched, self.written = {}, set()

    def draw(self, seed):
        """Start all parameters."""
        rng = np.random.default_rng(seed)
        for name, array in self.owners():
            if self.starts[name]:
                self.starts[name](rng, array)
        self.constrain()

    def constrain(self):
        """Scale the rows of the arrays named in `unit_rows` to norm 1. Counts as a change."""
        for name in self.unit_rows:
            self.team(normalize_rows, self.padded(name))
        self.changed()

    def changed(self):
        self.version += 1

    def check(self, values):
        """Raise ValueError unless `values`, a dict, has floats of each shape; before `build` takes memory."""
        for name, shape in self.shapes.items():
            array = values[name]
            if array.shape != shape or array.dtype.kind != "f":
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {shape}")

    def fill(self, values):
        """Take all parameters from a dict. Raises ValueError where one is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            for name, array in self.owners():
                array[:] = values[name]
        if not np.isfinite(self.values).all():
            raise ValueError("it has values that are nan or infinite")
        self.changed()

    def set(self, flat):
        """Take all parameters from a flat array like `values`."""
        self.values[:] = flat
        self.changed()

    def cut(self, flat, name, padded=False):
        """The array `name` in one of the flat arrays, with its rows filled up where `padded`."""
        owner = self.names[name]
        start, shape = self.layout[owner]
        array = flat[start : start + math.prod(shape)].reshape(shape)
        return array if padded and len(shape) > 1 else array[..., : self.shapes[owner][-1]]

    def __getitem__(self, name):
        return self.none if name is None else self.cut(self.values, name)

    def padded(self, name):
        """The array with its rows filled up."""
        return self.cut(self.values, name, padded=True)

    def owners(self):
        """(name, array) of each array, once."""
        return [(name, self[name]) for name in self.layout]

    @property
    def count(self):
        """Parameters, tied ones once."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def begin_step(self):
        """Forget the gradients of the step before."""
        for name, rows in self.touched.items():
            self.cut(self.grads, name)[rows] = 0
        self.touched, self.written = {}, set()

    def gradient(self, name):
        """(gradient, with padded rows; accumulate: whether the caller adds to it or overwrites it)."""
        if name is None:
            return self.none, False
        owner = self.names[name]
        accumulate = owner in self.written
        self.written.add(owner)
        return self.cut(self.grads, name, padded=True), accumulate

    def row_gradient(self, name, rows):
        """A gradient to add to, in the given rows only (int array, any order). Rows are filled up."""
        owner = self.names[name]
        grad = self.cut(self.grads, name, padded=True)
        if self.by_rows[owner]:
            before = self.touched.get(owner, rows[:0])
            self.touched[owner] = np.unique(np.concatenate([before, rows]))
        elif owner not in self.written:
            grad[:] = 0
            self.written.add(owner)
        return grad

    def segments(self):
        """(starts, sizes) of the touched rows in the flat arrays, int64 [R] each."""
        starts, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for name, rows in self.touched.items():
            start, shape = self.layout[name]
            width = math.prod(shape[1:])
            starts.append(start + rows.astype(np.int64) * width)
            sizes.append(np.full(rows.size, width, np.int64))
        return np.concatenate(starts), np.concatenate(sizes)
