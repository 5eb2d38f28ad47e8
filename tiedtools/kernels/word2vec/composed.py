"""word2vec with vectors composed from rows: local matrices of the words of a piece of text, for the kernels of words.

The vector of word w is the mean of its rows in a matrix, its own and those of its n-grams (Bojanowski et al. 2017):

    x_w = 1/n_w  sum of rows r(w)        rows[starts[w] : starts[w + 1]], n_w of them

A piece numbers its words locally, composes the vector of each once, and trains these vectors like those of any other
word2vec model. Then the change of x_w is added to each row of w, so that the mean changes as much, as in fastText,
which does both for each occurrence of w. Within a piece, words thus see the changes of the rows that they share with
other words only at its end. A few updates from the same starting point add up; many would all make the same step. So
the sum of the changes of a row is scaled to that of `limit` occurrences of its words, or at least to their mean.

A matrix with a row per word is the case n_w = 1.
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.word2vec.sampling import alias

AHEAD = 6  # prefetch distance in rows


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


@jit
def invert(distinct, ends, users, totals, place, starts, rows, words, sizes, occurs):
    """List the distinct rows of the words of several pieces, and the words that have each; returns how many rows.

    distinct  int32, out: the rows        users  int32, out: words of row i, users[ends[i - 1] : ends[i]]
    ends      int64, out;  totals  float32, out: occurrences of the words of row i
    place     int32 [rows of the matrix], all -1 before and after: workspace
    words     int32 [pieces, most];  sizes  int64 [pieces]: number of words of each piece. Users are numbered
              piece * most + index
    occurs    float32 [pieces, most]: occurrences of each word
    """
    n = 0
    for p in range(sizes.size):
        for k in range(sizes[p]):
            for j in range(starts[words[p, k]], starts[words[p, k] + 1]):
                if place[rows[j]] < 0:
                    place[rows[j]], distinct[n], ends[n], totals[n] = n, rows[j], 0, 0
                    n += 1
                ends[place[rows[j]]] += 1
                totals[place[rows[j]]] += occurs[p, k]
    total = 0
    for i in range(n):
        count = ends[i]
        ends[i] = total
        total += count
    for p in range(sizes.size):
        for k in range(sizes[p]):
            for j in range(starts[words[p, k]], starts[words[p, k] + 1]):
                i = place[rows[j]]
                users[ends[i]] = p * words.shape[1] + k
                ends[i] += 1
    for i in range(n):
        place[distinct[i]] = -1
    return n


@jit(relaxed=True)
def compose(X, before, matrix, distinct, ends, users, counts):
    """X[k] = before[k] = mean of the rows of word k of a piece.

    X, before              [most, P]
    distinct, ends, users  rows and their words, as listed by `invert`
    counts                 float32 [words]: number of rows of word k
    """
    for k in range(counts.size):
        x = X[k]
        for d in range(x.size):
            x[d] = 0
    at = 0
    for i in range(distinct.size):
        prefetch(matrix, distinct[min(i + AHEAD, distinct.size - 1)])
        row = matrix[distinct[i]]
        while at < ends[i]:
            x = X[users[at]]
            for d in range(x.size):
                x[d] += row[d]
            at += 1
    for k in range(counts.size):
        x, copy, share = X[k], before[k], X.dtype.type(1 / counts[k])
        for d in range(x.size):
            x[d] *= share
            copy[d] = x[d]


@jit(relaxed=True)
def spread(matrix, frozen, X, before, words, sizes, distinct, ends, users, totals, low, high, limit, racing):
    """Add the change of each word's vector to its rows of `matrix`, unless frozen, in columns `low` to `high`.

    before  vectors before training; overwritten by their changes
    limit   number of occurrences whose changes are added in full, over all pieces trained at once
    racing  number of other calls, and this one, for pieces trained at once. Other arguments as in `invert`
    """
    for p in range(sizes.size):
        for k in range(sizes[p]):
            x, change = X[p * words.shape[1] + k, low:high], before[p * words.shape[1] + k, low:high]
            for d in range(x.size):
                change[d] = x[d] - change[d]
    at = 0
    for i in range(distinct.size):
        prefetch(matrix, distinct[min(i + AHEAD, distinct.size - 1)])
        if frozen.size and frozen[distinct[i]]:
            at = ends[i]
        whole = max(racing * totals[i], limit)
        part = X.dtype.type(max(limit / whole, 1.0 / (racing * max(ends[i] - at, 1))))
        row = matrix[distinct[i], low:high]
        while at + 4 <= ends[i]:
            a, b = before[users[at], low:high], before[users[at + 1], low:high]
            c, e = before[users[at + 2], low:high], before[users[at + 3], low:high]
            for d in range(row.size):
                row[d] += part * ((a[d] + b[d]) + (c[d] + e[d]))
            at += 4
        while at < ends[i]:
            a = before[users[at], low:high]
            for d in range(row.size):
                row[d] += part * a[d]
            at += 1
