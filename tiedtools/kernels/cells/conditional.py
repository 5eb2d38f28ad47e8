"""The conditional GRU of DL4MT, a decoder with attention, over T steps, and its gradient.

    s'_t = GRU1(y_{t-1}, s_{t-1})        k_t = attention of s'_t W_s        s_t = GRU2(k_t, s'_t)

The biases of GRU1 are in its inputs, those of GRU2 in the state's part, so that r multiplies that of c. See gated.py
for a GRU and attention.py for attention. A thread owns sentences and computes all of their steps. Rows of arrays with
T * B rows are (step, sentence).
"""

from typing import NamedTuple

import numpy as np

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import part as share
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.scalar import tanh
from tiedtools.kernels.cells.attention import attend, attend_back
from tiedtools.kernels.cells.gated import GATES, activate, deactivate, pack, pack_transposed
from tiedtools.kernels.output import linear


class Steps(NamedTuple):
    """What each step computes.

    S       [(T + 1) * B, n], s_{t-1}: block 0 is the start        S1  [T * B, n], s'
    K       [T * B, 2n], contexts        alpha  [T * B, words]        A  [T * B, 2n], s' W_s
    G1, G2  [T * B, 3n], gates; G1 holds the inputs' part, with bias        Q1, Q2  [T * B, n]
    """

    S: np.ndarray
    S1: np.ndarray
    K: np.ndarray
    alpha: np.ndarray
    A: np.ndarray
    G1: np.ndarray
    Q1: np.ndarray
    G2: np.ndarray
    Q2: np.ndarray


class Weights(NamedTuple):
    """U1, U2  [n, 3n], of the states in the two GRUs        Ws  [n, 2n]        Wk  [2n, 3n], of contexts in GRU2"""

    U1: np.ndarray
    Ws: np.ndarray
    Wk: np.ndarray
    U2: np.ndarray


class Source(NamedTuple):
    """The encoded sentences: see attention.py.

    C, P     [words * sentences, 2n]
    lengths  int32 [sentences], their numbers of words        rows  int32 [B], the sentence of each row of the batch
    """

    C: np.ndarray
    P: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray


@jit
def forward(worker, steps, sums, bf16, source, weights, b2, v, n):
    """Forward pass from block 0 of S and x in G1.        b2  [3n], biases of GRU2        v  [2n]

    sums  [B, 3n]: scratch        bf16  scratch for states [B, n] and contexts [B, 2n] along rows, and Weights down
    """
    S, S1, K, alpha, A, G1, Q1, G2, Q2 = steps
    U1, Ws, Wk, U2 = weights
    C, P, lengths, rows = source
    s_along, k_along, u1, ws, wk, u2 = bf16
    B, width, size = rows.size, 2 * n, GATES * n
    for packed, W in ((u1, U1), (ws, Ws), (wk, Wk), (u2, U2)):
        pack(worker, packed, W)
    sync(worker)
    first, last = partition(worker, B)
    own = sums[first:last]
    for row in range(0, G1.shape[0], B):
        a, b = row + first, row + last
        product(own, left(s_along, (first, 0), S[a:b, :n]), paired(u1, U1), False)
        for s in range(first, last):
            activate(S1[row + s], G1[row + s], Q1[row + s], sums[s], S[row + s], n)
        states = left(s_along, (first, 0), S1[a:b, :n])
        product(A[a:b], states, paired(ws, Ws), False)
        for s in range(first, last):
            k = rows[s]
            attend(K[row + s], alpha[row + s], P, C, A[row + s], v, k, lengths.size, lengths[k], width)
        product(G2[a:b], left(k_along, (first, 0), K[a:b, :width]), paired(wk, Wk), False)
        for s in range(first, last):
            for j in range(size):
                sums[s, j] = b2[j]
        product(own, states, paired(u2, U2), True)
        for s in range(first, last):
            activate(S[row + B + s], G2[row + s], Q2[row + s], sums[s], S1[row + s], n)


@jit(relaxed=True)
def readout(worker, state, word, context):
    """Q = tanh(S W_1 + Y W_2 + K W_3 + b).        Each part: the arguments of linear.forward; the first is set to Q."""
    for part in state, word, context:
        linear.forward(worker, *part)
    begin, end, first, last = share(worker, state[0])
    for k in range(begin, end):
        q, y, c = state[0][k, first:last], word[0][k, first:last], context[0][k, first:last]
        for j in range(q.size):
            q[j] = tanh(q[j] + y[j] + c[j])


@jit
def backward(worker, dC, dP, dv, dZ1, dZ2, dS, dK, scratch, bf16, steps, source, weights, transposed, v, n):
    """Gradients of `forward`, for rows = 0 .. B - 1; also sets G1 and G2 to those of x, and A to that of s' W_s.

    dC, dP    like C and P        dv  [threads, 2n]: each thread's part
    dZ1, dZ2  [T * B, 3n], set to the gradients of the states' parts of the gates
    dS        [(T + 1) * B, n], gradients of S from elsewhere; the rest is added
    dK        [T * B, 2n], gradients of K from elsewhere; the rest is added
    scratch   (d  [B, n], terms  [threads, 3, at least 2n and words])
    bf16      scratch for dZ [B, 3n] and dA [B, 2n] along rows, and `transposed` down
    transposed  Weights, each transposed: scratch
    """
    S, S1, K, alpha, A, G1, Q1, G2, Q2 = steps
    C, P, lengths, rows = source
    d, terms = scratch
    U1T, WsT, WkT, U2T = transposed
    z_along, a_along, u1, ws, wk, u2 = bf16
    B, width, size = rows.size, 2 * n, GATES * n
    pack_transposed(worker, U1T, u1, weights.U1, size)
    pack_transposed(worker, WsT, ws, weights.Ws, width)
    pack_transposed(worker, WkT, wk, weights.Wk, size)
    pack_transposed(worker, U2T, u2, weights.U2, size)
    sync(worker)
    first, last = partition(worker, B)
    de, terms, dv = terms[worker[0], 0], terms[worker[0], 1:], dv[worker[0]]
    dv[:] = 0
    for row in range(0, dP.shape[0], B):
        dP[row + first : row + last] = 0
    for row in range(G1.shape[0] - B, -1, -B):
        a, b = row + first, row + last
        for s in range(first, last):
            ds, now = d[s], dS[row + B + s]
            for j in range(n):
                ds[j] = now[j]
            deactivate(dZ2[row + s], ds, G2[row + s], Q2[row + s], S1[row + s], n)
        product(dK[a:b], left(z_along, (first, 0), G2[a:b, :size]), paired(wk, WkT), True)
        product(d[first:last], left(z_along, (first, 0), dZ2[a:b, :size]), paired(u2, U2T), True)
        for s in range(first, last):
            attend_back(
                A[row + s], dP, dv, de, terms, dK[row + s], alpha[row + s], P, C, A[row + s], v, s, B, lengths[s],
                width,
            )  # fmt: skip
        product(d[first:last], left(a_along, (first, 0), A[a:b, :width]), paired(ws, WsT), True)
        for s in range(first, last):
            deactivate(dZ1[row + s], d[s], G1[row + s], Q1[row + s], S[row + s], n)
        product(d[first:last], left(z_along, (first, 0), dZ1[a:b, :size]), paired(u1, U1T), True)
        for s in range(first, last):
            before = dS[row + s]
            for j in range(n):
                before[j] += d[s, j]
    for s in range(first, last):
        product(dC[s::B], alpha[s::B, : dC.shape[0] // B].T, dK[s::B], False)
