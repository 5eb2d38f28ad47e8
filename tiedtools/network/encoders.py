"""Encoders: the first layer of a composed word table, which maps words to sums or convolutions of subword embeddings.

    y = encoder.forward(codes, step)        y [1, V', n]
    encoder.backward(dy)                    adds to the gradients of the encoder's parameters

codes  int32 [V', L], the subwords of each word, from 0; -1 at the end: padding, which has no embedding and adds nothing

Parameters: name.emb.E  [S, d], the embeddings of S subwords, and the parameters of an encoder's layers.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tiedtools.kernels.base.elementwise import add_to_rows, gather_rows
from tiedtools.kernels.output import compose, linear
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params, Start, stride

FULL = (None,) * 2, (None,) * 4  # these products are a small part of a step: always in full precision


class Positions:
    """T[r] = E[units[r]] W_p for each row r of position p.

    Words share few pairs of a subword and a position, so this takes fewer operations than products for each word.

    E  the name of the subword embeddings [S, d], declared by the encoder
    Parameter: W  [P d, n], the weights W_p [d, n] of P positions, one below the other
    """

    def __init__(self, params: Params, E: str, W: str, P: int, d: int, n: int, start: Start) -> None:
        params.add(W, (P * d, n), start.weights)
        self.params, self.team, self.E, self.W, self.P, self.d, self.n = params, params.team, E, W, P, d, n
        self.buffers = Buffers(params.dtype)

    def forward(self, units: np.ndarray, firsts: Sequence[int]) -> np.ndarray:
        """Return T [R, n].        units  int [R]        firsts  int [P + 1]: first row of each position, and R"""
        self.units, self.firsts, R = units, firsts, len(units)
        self.x, y = self.buffers("x", R, self.d), self.buffers("y", R, self.n)
        self.team(gather_rows, self.x, self.params.padded(self.E), units)
        W, none = self.params.padded(self.W), self.params[None]
        for rows, block in self.blocks():
            self.team(linear.forward, y[rows], self.x[rows], W[block], none, FULL[0])
        return y

    def backward(self, dy: np.ndarray) -> None:
        d, n, W, none = self.d, self.n, self.params.padded(self.W), self.params[None]
        dx, (dW, accumulate) = self.buffers("dx", len(self.units), d), self.params.gradient(self.W)
        for rows, block in self.blocks():
            WT, XT = self.buffers("W transposed", n, d), self.buffers("x transposed", d, rows.stop - rows.start)
            gradients = linear.Gradients(dx[rows], dW[block], none, accumulate, False)
            self.team(linear.backward, gradients, (WT, XT, FULL[1]), dy[rows], self.x[rows], W[block], n)
        self.team(add_to_rows, self.params.row_gradient(self.E, np.empty(0, np.int64)), dx, self.units)

    def blocks(self) -> Iterable[tuple[slice, slice]]:
        """Return (rows of T, rows of W) of each position, as slices."""
        rows = [slice(first, last) for first, last in zip(self.firsts, self.firsts[1:])]
        return zip(rows, (slice(p * self.d, (p + 1) * self.d) for p in range(self.P)))


class MorphSum:
    """A word's vector is the sum of its subword embeddings: Assylbekov and Takhanov 2018, section 5."""

    def __init__(self, params: Params, name: str, S: int, d: int, start: Start) -> None:
        self.params, self.team, self.d, self.E = params, params.team, d, f"{name}.emb.E"
        params.add(self.E, (S, d), start.embeddings or start.weights)
        self.buffers = Buffers(params.dtype)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        self.codes, y = codes, self.buffers("y", 1, len(codes), self.d)
        self.team(compose.sum_rows, y[0], self.params.padded(self.E), codes)
        return y

    def backward(self, dy: np.ndarray) -> None:
        dE, accumulate = self.params.gradient(self.E)
        self.team(compose.add_to_summed, dE, dy[0], self.codes, accumulate)


class SylConcat:
    """A word's vector is a projection of its concatenated syllable embeddings: Assylbekov et al. 2017.

    The words share few pairs of a syllable and its position. Each pair is projected once, and a word is a sum of pairs.

    L  greatest number of syllables in a word
    Parameter: name.proj.W  [L d, n]
    """

    def __init__(self, params: Params, name: str, L: int, S: int, d: int, n: int, start: Start) -> None:
        E, self.S = f"{name}.emb.E", S
        params.add(E, (S, d), start.embeddings or start.weights)
        self.project = Positions(params, E, f"{name}.proj.W", L, d, n, start)
        self.params, self.team, self.n, self.buffers = params, params.team, n, Buffers(params.dtype)
        self.ends, self.codes = S * np.arange(L + 1), np.empty(0)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        if codes is not self.codes:  # the whole vocabulary is one array in all steps
            self.codes, (self.pairs, self.rows) = codes, distinct_pairs(codes, self.S)
        pairs = self.pairs
        self.T = self.project.forward(pairs % self.S, np.searchsorted(pairs, self.ends).tolist())
        y = self.buffers("y", 1, len(self.rows), self.n)
        self.team(compose.sum_rows, y[0], self.T, self.rows)
        return y

    def backward(self, dy: np.ndarray) -> None:
        dT = self.buffers("dT", len(self.T), self.n)
        self.team(compose.add_to_summed, dT, dy[0], self.rows, False)
        self.project.backward(dT)


def distinct_pairs(codes: np.ndarray, S: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (sorted distinct pairs, as S position + code; the index of each code's pair, int32, -1: padding)."""
    pairs = np.where(codes < 0, -1, codes + S * np.arange(codes.shape[1]))
    distinct, index = np.unique(pairs, return_inverse=True)
    padding = int(distinct.size and distinct[0] < 0)
    return distinct[padding:], (index.reshape(codes.shape) - padding).astype(np.int32)


class CharCNN:
    """Convolutions over a word's characters, tanh, and the maximum over time: Kim et al. 2016, section 3.

    Words are padded to the longest one, and the windows of padding take part in the maximum. The products of each
    character with each position of a window are computed once, so that a window is a sum of rows.

    L        length of the longest word
    filters  number of filters of widths 1, 2, ...: f_1, f_2, ...; n is their sum
    Parameters: name.cnn.W1 [d, f_1], name.cnn.W2 [2d, f_2], ..., and biases name.cnn.b1 [f_1], ...
    """

    def __init__(self, params: Params, name: str, L: int, C: int, d: int, filters: list[int], start: Start) -> None:
        E, self.C = f"{name}.emb.E", C
        params.add(E, (C, d), start.embeddings or start.weights)
        self.params, self.team, self.n = params, params.team, sum(filters)
        self.longest = max(L, len(filters))
        ends, self.layers = np.cumsum([0, *filters]).tolist(), []
        for width, f in enumerate(filters, 1):
            b = f"{name}.cnn.b{width}"
            table = Positions(params, E, f"{name}.cnn.W{width}", width, d, f, start)
            params.add(b, (f,), start.biases)
            columns = slice(ends[width - 1], ends[width])
            self.layers.append((width, table, b, columns, np.tile(np.arange(C), width)))
        self.buffers = Buffers(params.dtype)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        self.codes, N, buffer = codes, len(codes), self.buffers
        self.y, self.best = buffer("y", 1, N, self.n), buffer("best", N, self.n, dtype=np.int32)
        scratch = self.scratch()
        for width, table, b, columns, units in self.layers:
            T = table.forward(units, range(0, self.C * width + 1, self.C)).reshape(width, self.C, -1)
            outputs = self.y[0, :, columns], self.best[:, columns]
            self.team(compose.convolve, *outputs, scratch, T, self.params[b], codes, self.longest)
        return self.y

    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scratch arrays of the kernels."""
        threads, widest = self.team.threads, max(table.n for _, table, *_ in self.layers)
        sums = self.buffers("sums", threads, 2, widest)
        return sums, self.buffers("places", threads, stride(widest, sums.dtype), dtype=np.int32)

    def backward(self, dy: np.ndarray) -> None:
        scratch = self.scratch()
        for width, table, b, columns, _ in self.layers:
            dT = self.buffers(f"dT{width}", self.team.threads, width * self.C + 1, table.n)
            db, accumulate = self.params.gradient(b)
            inputs = dy[0, :, columns], self.y[0, :, columns], self.best[:, columns], self.codes, width, self.longest
            self.team(compose.convolve_back, dT, db, scratch, *inputs, accumulate)
            table.backward(dT[0, :-1])
