"""The conditional GRU of DL4MT, a decoder with attention, over T steps, and its gradient.

    s'_t = GRU1(y_{t-1}, s_{t-1})        k_t = attention of s'_t W_s        s_t = GRU2(k_t, s'_t)

The biases of GRU1 are added to its inputs, and the biases of GRU2 to the terms of its state, so that r multiplies the
bias of c. See gated.py for a GRU. A thread computes all steps of some sentences. Rows of arrays with T * B rows are
(step, sentence).

Attention to the words of a sentence (Bahdanau et al. 2015, as in DL4MT): with c_j, the annotation of word j,
p_j = c_j W_c + b, and s, the term of the state,

    e_j = tanh(p_j + s) v        alpha = softmax(e) over the words of the sentence        k = sum_j alpha_j c_j

DL4MT adds a constant to e_j, which changes nothing.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, part, product, transpose_down
from tiedtools.kernels.base.scalar import exp, tanh
from tiedtools.kernels.cells.gated import GATES, activate, deactivate
from tiedtools.kernels.output import linear


class Source(NamedTuple):
    """The encoded sentences. Rows of C and P are (word, sentence)."""

    C: Any  # [words * sentences, 2n or more]: c_j
    P: Any  # [words * sentences, 2n or more]: p_j
    lengths: Any  # int32 [sentences], their numbers of words
    rows: Any  # int32 [B], the sentence of each row of the batch


@jit(relaxed=True)
def attend(k, alpha, s, v, source, sentence, width):
    """Compute the context k [2n] and alpha [S], 0 after the last word, of a sentence.        s, v  [2n]"""
    C, P, lengths, _ = source
    sentences, words = lengths.size, lengths[sentence]
    # Scores and their maximum, for the softmax.
    peak = s[0] - s[0] - 1e30
    for j in range(words):
        p, score = P[j * sentences + sentence], s[0] - s[0]
        for i in range(width):
            score += tanh(p[i] + s[i]) * v[i]
        alpha[j] = score
        peak = max(peak, score)
    total = s[0] - s[0]
    for j in range(words):
        alpha[j] = exp(alpha[j] - peak)
        total += alpha[j]
    alpha[words:] = 0
    # The mean of the annotations.
    for i in range(width):
        k[i] = 0
    for j in range(words):
        alpha[j] /= total
        weight, c = alpha[j], C[j * sentences + sentence]
        for i in range(width):
            k[i] += weight * c[i]


@jit(relaxed=True)
def attend_back(s, dP, dv, scratch, dk, alpha, v, source, sentence, width):
    """Add to the gradients dP, like P, and dv; s becomes its gradient. The caller computes dC, the sum of alpha_j dk.

    dk  [2n]        scratch  [3, at least 2n and S]
    """
    C, P, lengths, _ = source
    sentences, words = lengths.size, lengths[sentence]
    de, t, ds = scratch[0], scratch[1], scratch[2]
    # de: the gradient of alpha. Its mean, weighted by alpha, turns it into the gradient of the scores.
    mean = dk[0] - dk[0]
    for j in range(words):
        c, dot = C[j * sentences + sentence], dk[0] - dk[0]
        for i in range(width):
            dot += dk[i] * c[i]
        de[j] = dot
        mean += alpha[j] * dot
    for i in range(width):
        ds[i] = 0
    # t: tanh(p_j + s), and then its gradient before the tanh.
    for j in range(words):
        row, e = j * sentences + sentence, alpha[j] * (de[j] - mean)
        p, dp = P[row], dP[row]
        for i in range(width):
            t[i] = tanh(p[i] + s[i])
        for i in range(width):
            dv[i] += e * t[i]
        for i in range(width):
            t[i] = e * (v[i] - v[i] * t[i] * t[i])
        for i in range(width):
            ds[i] += t[i]
        for i in range(width):
            dp[i] += t[i]
    for i in range(width):
        s[i] = ds[i]


class Steps(NamedTuple):
    """What each step computes, for the gradient."""

    S: Any  # [(T + 1) * B, n], s_{t-1}: block 0 is the start
    S1: Any  # [T * B, n], s'
    K: Any  # [T * B, 2n], contexts
    alpha: Any  # [T * B, words]
    A: Any  # [T * B, 2n], s' W_s
    G1: Any  # [T * B, 3n]: before the forward pass, the inputs' term of the gates of GRU1, with bias; then the gates
    Q1: Any  # [T * B, n]
    G2: Any  # [T * B, 3n], gates of GRU2
    Q2: Any  # [T * B, n]


class Weights(NamedTuple):
    U1: Any  # [n, 3n], of the state in GRU1
    Ws: Any  # [n, 2n]
    Wk: Any  # [2n, 3n], of contexts in GRU2
    U2: Any  # [n, 3n], of the state in GRU2


class Gradients(NamedTuple):
    dC: Any  # like C and P of Source
    dP: Any
    dv: Any  # [threads, 2n]: each thread's part
    dZ1: Any  # [T * B, 3n], set to the gradients of the state's terms of the gates
    dZ2: Any
    dS: Any  # [(T + 1) * B, n]: the gradients of S from other layers, to which all others are added
    dK: Any  # [T * B, 2n]: the same for K


class Scratch(NamedTuple):
    """Scratch of the backward pass."""

    d: Any  # [B, n]
    terms: Any  # [threads, 3, at least 2n and words]
    transposed: Weights  # each weight matrix transposed
    bf16: Any  # dZ [B, 3n] and dA [B, 2n] packed along rows, and `transposed` down: see bfloat16.py


@jit
def forward(worker, steps, scratch, source, weights, b2, v, n):
    """Forward pass from block 0 of S and the inputs in G1.        b2  [3n], biases of GRU2        v  [2n]

    source   Source
    scratch  ([B, 3n], bfloat16 operands: states [B, n] and contexts [B, 2n] along rows, and Weights down)
    """
    S, S1, K, alpha, A, G1, Q1, G2, Q2 = steps
    U1, Ws, Wk, U2 = weights
    sums, (s_along, k_along, u1, ws, wk, u2) = scratch
    rows = source.rows
    B, width, size = rows.size, 2 * n, GATES * n
    for packed, W in ((u1, U1), (ws, Ws), (wk, Wk), (u2, U2)):
        pack_down(worker, packed, W)
    sync(worker)
    first, last = partition(worker, B)
    z = sums[first:last]
    for row in range(0, G1.shape[0], B):
        # GRU1.
        a, b = row + first, row + last
        product(z, left(s_along, (first, 0), S[a:b, :n]), paired(u1, U1), False)
        for s in range(first, last):
            activate(S1[row + s], G1[row + s], Q1[row + s], sums[s], S[row + s], n)
        # Attention.
        states = left(s_along, (first, 0), S1[a:b, :n])
        product(A[a:b], states, paired(ws, Ws), False)
        for s in range(first, last):
            attend(K[row + s], alpha[row + s], A[row + s], v, source, rows[s], width)
        # GRU2.
        product(G2[a:b], left(k_along, (first, 0), K[a:b, :width]), paired(wk, Wk), False)
        for s in range(first, last):
            for j in range(size):
                sums[s, j] = b2[j]
        product(z, states, paired(u2, U2), True)
        for s in range(first, last):
            activate(S[row + B + s], G2[row + s], Q2[row + s], sums[s], S1[row + s], n)


@jit(relaxed=True)
def readout(worker, state, word, context):
    """Q = tanh(S W_1 + Y W_2 + K W_3 + b).        state, word, context  arguments of linear.forward"""
    for term in state, word, context:
        linear.forward(worker, *term)
    begin, end, first, last = part(worker, state[0])
    for k in range(begin, end):
        q, y, c = state[0][k, first:last], word[0][k, first:last], context[0][k, first:last]
        for j in range(q.size):
            q[j] = tanh(q[j] + y[j] + c[j])


@jit
def backward(worker, gradients, scratch, steps, source, weights, v, n):
    """Gradients of `forward`, for rows = 0 .. B - 1. G1, G2, A become the gradients of their inputs."""
    S, S1, K, alpha, A, G1, Q1, G2, Q2 = steps
    dC, dP, dv, dZ1, dZ2, dS, dK = gradients
    d, terms, (U1T, WsT, WkT, U2T), (z_along, a_along, u1, ws, wk, u2) = scratch
    B, width, size = source.rows.size, 2 * n, GATES * n
    transpose_down(worker, U1T, u1, weights.U1, size)
    transpose_down(worker, WsT, ws, weights.Ws, width)
    transpose_down(worker, WkT, wk, weights.Wk, size)
    transpose_down(worker, U2T, u2, weights.U2, size)
    sync(worker)
    first, last = partition(worker, B)
    terms, dv = terms[worker[0]], dv[worker[0]]
    dv[:] = 0
    for row in range(0, dP.shape[0], B):
        dP[row + first : row + last] = 0
    for row in range(G1.shape[0] - B, -1, -B):
        # GRU2: d becomes the gradient of s'.
        a, b = row + first, row + last
        for s in range(first, last):
            ds, now = d[s], dS[row + B + s]
            for j in range(n):
                ds[j] = now[j]
            deactivate(dZ2[row + s], ds, G2[row + s], Q2[row + s], S1[row + s], n)
        product(dK[a:b], left(z_along, (first, 0), G2[a:b, :size]), paired(wk, WkT), True)
        product(d[first:last], left(z_along, (first, 0), dZ2[a:b, :size]), paired(u2, U2T), True)
        # Attention.
        for s in range(first, last):
            attend_back(A[row + s], dP, dv, terms, dK[row + s], alpha[row + s], v, source, s, width)
        product(d[first:last], left(a_along, (first, 0), A[a:b, :width]), paired(ws, WsT), True)
        # GRU1: d becomes the gradient of s_{t-1}.
        for s in range(first, last):
            deactivate(dZ1[row + s], d[s], G1[row + s], Q1[row + s], S[row + s], n)
        product(d[first:last], left(z_along, (first, 0), dZ1[a:b, :size]), paired(u1, U1T), True)
        for s in range(first, last):
            before = dS[row + s]
            for j in range(n):
                before[j] += d[s, j]
    for s in range(first, last):
        product(dC[s::B], alpha[s::B, : dC.shape[0] // B].T, dK[s::B], False)
