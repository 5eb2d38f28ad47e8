"""The arrays of a network: named parameters and their gradients, initial values, and scratch arrays of layers."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import CACHE_LINE, line_up
from tiedtools.kernels.base.elementwise import normalize_rows
from tiedtools.kernels.base.tiles import DOTS, ROWS
from tiedtools.network.threads import Idle, Team

Fill = Callable[[np.random.Generator, np.ndarray], object]  # an initializer
DRAWN = 4096  # rows per call to the generator


class Start(NamedTuple):
    """Initializers for the weights and biases of a layer.

    forget      added to the biases of forget gates
    embeddings  for the subword embeddings of an encoder; None: like weights
    """

    weights: Fill
    biases: Fill
    forget: float = 0.0
    embeddings: Fill | None = None


def drawn(draw: Callable[..., np.ndarray], scale: float | None) -> Fill:
    """Return an initializer that fills with draw(rng, scale, shape); None: scale 1 / sqrt(number of rows)."""

    def fill(rng: np.random.Generator, array: np.ndarray) -> None:
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = draw(rng, 1 / math.sqrt(len(array)) if scale is None else scale, rows.shape)

    return fill


def uniform(reach: float | None = None) -> Fill:
    """Return an initializer that draws uniformly from -reach to reach; None: 1 / sqrt(number of rows)."""
    return drawn(lambda rng, reach, shape: rng.uniform(-reach, reach, shape), reach)


def normal(deviation: float | None = None) -> Fill:
    """Return an initializer that draws from a normal distribution; None: deviation 1 / sqrt(number of rows)."""
    return drawn(lambda rng, deviation, shape: rng.normal(0, deviation, shape), deviation)


def orthogonal(rng: np.random.Generator, array: np.ndarray) -> None:
    """Fill an array [n, k n] with k random orthogonal matrices, by singular value decomposition (Saxe et al. 2014)."""
    for block in np.split(array, array.shape[1] // len(array), 1):
        block[:] = np.linalg.svd(rng.normal(size=block.shape))[0]


def constant(value: float) -> Fill:
    """Return an initializer that fills with `value`."""

    def fill(rng: np.random.Generator, array: np.ndarray) -> None:
        array[:] = value

    return fill


def zeros(rng: np.random.Generator, array: np.ndarray) -> None:
    """Fill with zeros, but advance the generator as a random initializer would, so that later draws are unaffected."""
    rng.random(array.shape)
    array[:] = 0


def stride(n: int, dtype: Any, odd: bool = True) -> int:
    """Return the row stride, in elements, for rows of n: a whole, odd number of cache lines.

    With strides such as powers of two, accesses to parts of many rows would conflict in a few cache sets. This does not
    matter if rows are always read whole (odd=False).
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return (-(-n // per_line) | odd) * per_line


class Buffers:
    """Named, zero-filled scratch arrays, which grow as needed. dtype and odd: see `stride`."""

    def __init__(self, dtype: Any, odd: bool = True) -> None:
        self.dtype, self.odd, self.arrays = dtype, odd, {}

    def __call__(self, name: str, *shape: int, dtype: Any = None) -> np.ndarray:
        """Return the array `name` of the given shape [..., n], with rows padded to stride(n).

        The padding stays 0 unless a kernel computes whole rows. Tiles may read a few rows of memory after the end;
        their values are arbitrary. When the shape of an array has changed, all its elements but the padding are
        arbitrary, too.
        """
        old_shape, array, flat = self.arrays.get(name, (None, None, np.empty(0)))
        if old_shape != shape:
            dtype = dtype or self.dtype
            padded = *shape[:-1], stride(shape[-1], dtype, self.odd) if len(shape) > 1 else shape[0]
            size = math.prod(padded)
            spare = max(ROWS + 1, DOTS) * padded[-1]
            if flat.size < size + spare:
                flat = line_up(size + spare, dtype)
            array = flat[:size].reshape(padded)
            if old_shape:
                array[..., shape[-1] :] = 0
            self.arrays[name] = shape, array, flat
        return array

    def bf16(self, half: bool, used: bool = True, **matrices: tuple[int, int]) -> tuple[np.ndarray | None, ...]:
        """Return arrays for matrices [rows, columns] as bfloat16 pairs (kernels/base/bfloat16.py); None if not `half`.

        used  False: return empty arrays, with which the same kernel computes in float32
        name_along  pairs of adjacent elements of a row        name_down  of a column
        """

        def pairs(name: str, rows: int, columns: int) -> np.ndarray:
            if not used:
                return np.empty((0, 0), np.uint32)
            shape = (rows, -(-columns // 2)) if name.endswith("_along") else (-(-rows // 2), columns)
            return self(name, *shape, dtype=np.uint32)

        return tuple(pairs(name, *shape) if half else None for name, shape in matrices.items())


class Params:
    """Named parameter arrays, stored in one flat array, `values`, with their gradients in another, `grads`.

    Layers declare arrays with `add`; `tie` makes two names share an array; `build` allocates. In each step, the first
    layer to write a gradient overwrites it and later ones add to it, so that dense gradients need not be zeroed.

    Arrays with sparse gradients (few rows per step), such as input embeddings, come last; only touched rows are zeroed.
    The name None denotes an empty array, such as the bias of a layer without one.

    frozen   names of arrays that the optimizer does not change, though they have gradients; set before `build`
    trained  the other arrays, which come first, a view of `values`
    team     the Team on which all layers run their kernels
    dtype and odd: see `stride`; half: layers may multiply in bfloat16
    version  incremented when values change, which invalidates caches: call `changed` after writing values
    """

    def __init__(self, team: Team | Idle, dtype: Any = np.float32, odd: bool = True, half: bool = False) -> None:
        self.team, self.dtype, self.odd, self.half = team, np.dtype(dtype), odd, half
        self.shapes, self.starts, self.by_rows, self.names, self.ties, self.unit_rows = {}, {}, {}, {}, {}, []
        self.frozen: set[str] = set()
        self.version = 0

    def tie(self, name: str, other: str) -> None:
        """Make `name` an alias of `other`; if both end in a dot, all names that begin with it. Call before `add`."""
        self.ties[name] = other

    def add(self, name: str, shape: tuple[int, ...], start: Fill | None = None, by_rows: bool = False) -> None:
        """Declare an array.

        start    initializer fill(rng, array); None: zeros
        by_rows  sparse gradient, written only through `row_gradient`

        Raises ValueError if the shapes of tied names differ.
        """
        layer, dot, part = name.rpartition(".")
        owner = self.ties.get(name) or self.ties.get(layer + dot, layer + dot) + part
        self.names[name] = owner
        if self.shapes.setdefault(owner, shape) != shape:
            raise ValueError(f"{name} {shape} cannot be {owner} {self.shapes[owner]}")
        self.starts.setdefault(owner, start)
        self.by_rows[owner] = by_rows and self.by_rows.get(owner, True)

    def build(self, gradients: bool = True) -> None:
        """Allocate all arrays, zero-filled with padded rows, and, if `gradients`, their gradients."""
        order = sorted(self.shapes, key=lambda name: (name in self.frozen, self.by_rows[name]))
        self.layout, self.dense, size, trained = {}, 0, 0, 0
        for name in order:
            *rows, width = self.shapes[name]
            shape = *rows, stride(width, self.dtype, self.odd)
            self.layout[name] = size, shape
            size += math.prod(shape)
            if name not in self.frozen:
                trained, self.dense = size, self.dense if self.by_rows[name] else size
        spare = stride(1, self.dtype)  # tiles may read slightly past the last row, and `row_dots` up to DOTS - 1 rows
        rows_read = [DOTS * width for *rows, width in (shape for _, shape in self.layout.values()) if rows]
        self.values = line_up(size, self.dtype, spare=max([spare, *rows_read]))
        self.trained = self.values[:trained]
        self.grads: Any = line_up(size, self.dtype, spare=spare) if gradients else None
        self.none = self.values[:0]
        self.touched, self.written = {}, set()

    def draw(self, seed: int) -> None:
        """Initialize all parameters."""
        rng = np.random.default_rng(seed)
        for name, array in self.owners():
            if self.starts[name]:
                self.starts[name](rng, array)
        self.constrain()

    def constrain(self) -> None:
        """Scale the rows of the arrays in `unit_rows` to norm 1, and call `changed`."""
        for name in set(self.unit_rows) - self.frozen:
            self.team(normalize_rows, self.padded(name))
        self.changed()

    def changed(self) -> None:
        """Record that values have changed."""
        self.version += 1

    def check(self, values: Arrays) -> None:
        """Raise ValueError unless the dict `values` has float arrays of the declared shapes. Works before `build`."""
        for name, shape in self.shapes.items():
            array = values[name]
            if array.shape != shape or array.dtype.kind != "f":
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {shape}")

    def fill(self, values: Arrays) -> None:
        """Copy all parameters from a dict. Raises ValueError if a value is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            for name, array in self.owners():
                array[:] = values[name]
        if not np.isfinite(self.values).all():
            raise ValueError("it has values that are nan or infinite")
        self.changed()

    def set(self, flat: np.ndarray) -> None:
        """Copy all parameters from a flat array with the layout of `values`."""
        self.values[:] = flat
        self.changed()

    def cut(self, flat: np.ndarray, name: str, padded: bool = False) -> np.ndarray:
        """Return the view of array `name` in one of the flat arrays, including the padding of rows if `padded`."""
        owner = self.names[name]
        start, shape = self.layout[owner]
        array = flat[start : start + math.prod(shape)].reshape(shape)
        return array if padded and len(shape) > 1 else array[..., : self.shapes[owner][-1]]

    def __getitem__(self, name: str | None) -> np.ndarray:
        return self.none if name is None else self.cut(self.values, name)

    def padded(self, name: str) -> np.ndarray:
        """Return the array `name` including the padding of its rows."""
        return self.cut(self.values, name, padded=True)

    def owners(self) -> list[tuple[str, np.ndarray]]:
        """Return the (name, array) pairs of all arrays; a tied array appears once."""
        return [(name, self[name]) for name in self.layout]

    @property
    def count(self) -> int:
        """Number of parameters; a tied array counts once."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def begin_step(self) -> None:
        """Reset the gradients at the start of a step."""
        for name, rows in self.touched.items():
            self.cut(self.grads, name)[rows] = 0
        self.touched, self.written = {}, set()

    def gradient(self, name: str | None) -> tuple[np.ndarray, bool]:
        """Return (gradient with padded rows, accumulate); the caller adds to it if `accumulate`, else overwrites it."""
        if name is None:
            return self.none, False
        owner = self.names[name]
        accumulate = owner in self.written
        self.written.add(owner)
        return self.cut(self.grads, name, padded=True), accumulate

    def row_gradient(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return a gradient with padded rows; the caller adds to `rows` only (int array, any order)."""
        owner = self.names[name]
        grad = self.cut(self.grads, name, padded=True)
        if self.by_rows[owner]:
            before = self.touched.get(owner, rows[:0])
            self.touched[owner] = np.unique(np.concatenate([before, rows]))
        elif owner not in self.written:
            grad[:] = 0
            self.written.add(owner)
        return grad

    def densify(self) -> None:
        """Let sparse gradients have all rows in this step, because the caller is about to add to all of them."""
        for name in self.layout:
            if self.by_rows[name]:
                self.touched[name] = np.arange(self.shapes[name][0])

    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (starts, sizes) of the touched rows in the flat arrays, int64 [R] each."""
        starts, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for name, rows in self.touched.items():
            if name in self.frozen:
                continue
            start, shape = self.layout[name]
            width = math.prod(shape[1:])
            starts.append(start + rows.astype(np.int64) * width)
            sizes.append(np.full(rows.size, width, np.int64))
        return np.concatenate(starts), np.concatenate(sizes)
