"""Attention of one decoder state over the words of one sentence, and its gradient (Bahdanau et al. 2015, as in DL4MT).

With c_j, the annotation of word j, p_j = c_j W_c + b, and s, the term of the state,

    e_j = tanh(p_j + s) v        alpha = softmax(e) over the words of the sentence        k = sum_j alpha_j c_j

DL4MT adds a constant to e_j, which changes nothing.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import exp, tanh


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
            t[i] = e * v[i] * (1 - t[i] * t[i])
        for i in range(width):
            ds[i] += t[i]
        for i in range(width):
            dp[i] += t[i]
    for i in range(width):
        s[i] = ds[i]
