"""word2vec with vectors composed from rows: local matrices of the words of a piece of text, for the kernels of words.

The vector of word w is the mean of its rows in a matrix, its own and those of its n-grams (Bojanowski et al. 2017):

    x_w = 1/n_w  sum of rows r(w)        rows[starts[w] : starts[w + 1]], n_w of them

A piece numbers its words locally, composes the vector of each once, and trains these vectors like those of any other
word2vec model. Then the change of x_w is added to each row of w, so that the mean changes as much, as in fastText,
which does both for each occurrence of w. Within a piece, words thus see the changes of the rows that they share with
other words only at its end. So that they are not moved too far, the changes of a row that many words have are scaled
down to those of MOST words on average.

A matrix with a row per word is the case n_w = 1.
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.word2vec.sampling import alias

MOST = 16.0


@jit
def number(words, known, numbers, tokens):
    """Replace words by local numbers, which new words get in order; returns how many words are now known.

    words    int32 [most]: the words by local number; `known` of them are known before
    numbers  int32 [V]: local number of each word, or -1
    tokens   int32 [n], in: words; out: local numbers
    """
    for i in range(tokens.size):
        word = tokens[i]
        if numbers[word] < 0:
            numbers[word], words[known] = known, word
            known += 1
        tokens[i] = numbers[word]
    return known


@jit
def forget(numbers, words):
    """Make words unknown again."""
    for k in range(words.size):
        numbers[words[k]] = -1


@jit
def local_noise(table, drawn, share, small, large):
    """Build the alias table of the words drawn, local numbers int32 [draws]; the other arguments are as for `alias`."""
    for k in range(share.size):
        share[k] = 0
    for i in range(drawn.size):
        share[drawn[i]] += share.size / drawn.size
    alias(table, share, small, large)


@jit(relaxed=True)
def compose(X, before, matrix, starts, rows, words):
    """X[k] = before[k] = vector of words[k], as composed from its rows of `matrix`."""
    for k in range(words.size):
        if k + 1 < words.size:
            for j in range(starts[words[k + 1]], starts[words[k + 1] + 1]):
                prefetch(matrix, rows[j])
        first, last = starts[words[k]], starts[words[k] + 1]
        x, copy, share = X[k], before[k], X.dtype.type(1 / (last - first))
        for d in range(x.size):
            x[d] = 0
        odd = first + (last - first) % 4
        for j in range(first, odd):
            row = matrix[rows[j]]
            for d in range(x.size):
                x[d] += row[d]
        for j in range(odd, last, 4):
            a, b, c, e = matrix[rows[j]], matrix[rows[j + 1]], matrix[rows[j + 2]], matrix[rows[j + 3]]
            for d in range(x.size):
                x[d] += (a[d] + b[d]) + (c[d] + e[d])
        for d in range(x.size):
            x[d] *= share
        for d in range(x.size):
            copy[d] = x[d]


@jit(relaxed=True)
def spread(matrix, frozen, hits, X, before, words, sizes, starts, rows, low, high):
    """Add the change of each word's vector to its rows of `matrix`, unless frozen, in columns `low` to `high`.

    hits           int32 [rows of matrix], all 0 before and after: workspace
    X, before      [pieces, most, P]: vectors of the words of several pieces, after and before training; `before` is
                   overwritten by their changes
    words          int32 [pieces, most];  sizes  int64 [pieces]: number of words of each piece
    """
    for p in range(sizes.size):
        for k in range(sizes[p]):
            for j in range(starts[words[p, k]], starts[words[p, k] + 1]):
                hits[rows[j]] += 1
    for p in range(sizes.size):
        for k in range(sizes[p]):
            x, change = X[p, k, low:high], before[p, k, low:high]
            for d in range(x.size):
                change[d] = x[d] - change[d]
            if k + 1 < sizes[p]:
                for j in range(starts[words[p, k + 1]], starts[words[p, k + 1] + 1]):
                    prefetch(matrix, rows[j])
            for j in range(starts[words[p, k]], starts[words[p, k] + 1]):
                if frozen.size and frozen[rows[j]]:
                    continue
                row, part = matrix[rows[j], low:high], X.dtype.type(min(MOST / hits[rows[j]], 1.0))
                for d in range(row.size):
                    row[d] += part * change[d]
    for p in range(sizes.size):
        for k in range(sizes[p]):
            for j in range(starts[words[p, k]], starts[words[p, k] + 1]):
                hits[rows[j]] = 0
