"""Attention of one decoder state over the words of one sentence, and its gradient (Bahdanau et al. 2015, as in DL4MT).

With c_j, the annotation of word j, p_j = c_j W_c + b, and s, the state's part,

    e_j = tanh(p_j + s) v        alpha = softmax(e) over the words of the sentence        k = sum_j alpha_j c_j

DL4MT adds a constant to e_j, which changes nothing.
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import exp, tanh


@jit(relaxed=True)
def attend(k, alpha, P, C, s, v, sentence, sentences, words, width):
    """Set the context k [2n] and alpha [S], 0 from `words` on.        s, v  [2n]

    P, C  [S * sentences, width or more]: p_j and c_j of all sentences; rows of this one are j * sentences + sentence
    """
    peak = s[0] - s[0] - 1e30
    for j in range(words):
        p, total = P[j * sentences + sentence], s[0] - s[0]
        for i in range(width):
            total += tanh(p[i] + s[i]) * v[i]
        alpha[j] = total
        peak = max(peak, total)
    whole = s[0] - s[0]
    for j in range(words):
        alpha[j] = exp(alpha[j] - peak)
        whole += alpha[j]
    alpha[words:] = 0
    for i in range(width):
        k[i] = 0
    for j in range(words):
        alpha[j] /= whole
        weight, c = alpha[j], C[j * sentences + sentence]
        for i in range(width):
            k[i] += weight * c[i]


@jit(relaxed=True)
def attend_back(ds, dP, dv, de, terms, dk, alpha, P, C, s, v, sentence, sentences, words, width):
    """Add to the gradients dP, like P, and dv; set ds. The gradient of C is left to the caller: alpha_j dk, summed.

    ds may be s.        dk  [2n]        de  [S], terms  [2, 2n]: scratch
    """
    whole, t, total = dk[0] - dk[0], terms[0], terms[1]
    for j in range(words):
        c, part = C[j * sentences + sentence], dk[0] - dk[0]
        for i in range(width):
            part += dk[i] * c[i]
        de[j] = part
        whole += alpha[j] * part
    for i in range(width):
        total[i] = 0
    for j in range(words):
        row, e = j * sentences + sentence, alpha[j] * (de[j] - whole)
        p, dp = P[row], dP[row]
        for i in range(width):
            t[i] = tanh(p[i] + s[i])
        for i in range(width):
            dv[i] += e * t[i]
        for i in range(width):
            t[i] = e * v[i] * (1 - t[i] * t[i])
        for i in range(width):
            total[i] += t[i]
        for i in range(width):
            dp[i] += t[i]
    for i in range(width):
        ds[i] = total[i]
