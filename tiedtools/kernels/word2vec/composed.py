"""word2vec with vectors composed from rows: local matrices of the words of a piece of text, for the kernels of words.

The vector of word w is the mean of its rows in a matrix, its own and those of its n-grams (Bojanowski et al. 2017):

    x_w = 1/n_w  sum of rows r(w)        rows[starts[w] : starts[w + 1]], n_w of them

A piece numbers its words locally, composes the vector of each once, and trains these vectors like those of any other
word2vec model. Then the change of x_w is added to each row of w, so that the mean changes as much, as in fastText,
which does both for each occurrence of w. Within a piece, words thus see the changes of the rows that they share with
other words only at its end. A few updates from the same starting point add up; many would all make the same step. So
the sum of the changes of a row is scaled to that of `limit` occurrences of its words, or at least to their mean.

A matrix with a row per word is the case n_w = 1. Rows of n-grams that the same words have get the same changes, and are
stored as one row that counts as several.
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.base.sums import sum_rows
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
def list_rows(entries, owners, starts, rows, words, first):
    """List the rows of words one after another, and the words that have them; returns how many.

    entries  int32, out;  starts, rows  the rows of each word: rows[starts[w] : starts[w + 1]]
    owners   int32, out: number of the word of each entry, from `first`
    """
    n = 0
    for k in range(words.size):
        for j in range(starts[words[k]], starts[words[k] + 1]):
            entries[n], owners[n] = rows[j], first + k
            n += 1
    return n


@jit
def invert(distinct, ends, users, totals, place, entries, owners, occurs):
    """List the distinct rows among those listed by `list_rows`, and the words that have each; returns how many.

    distinct  int32, out: the rows        users  int32, out: words of row i, users[ends[i - 1] : ends[i]]
    ends      int64, out;  totals  float32, out: occurrences of the words of row i
    place     int32 [rows of the matrix], all -1 before and after: workspace
    occurs    float32: occurrences of each word
    """
    n = 0
    for j in range(entries.size):
        i = place[entries[j]]
        if i < 0:
            i = place[entries[j]] = n
            distinct[n], ends[n], totals[n] = entries[j], 0, 0
            n += 1
        ends[i] += 1
        totals[i] += occurs[owners[j]]
    total = 0
    for i in range(n):
        count = ends[i]
        ends[i] = total
        total += count
    for j in range(entries.size):
        i = place[entries[j]]
        users[ends[i]] = owners[j]
        ends[i] += 1
    for i in range(n):
        place[distinct[i]] = -1
    return n


@jit
def compose(X, before, matrix, entries, sizes, lengths, counts):
    """X[k] = before[k] = mean of the rows of word k of a piece.

    X, before  [most, P]
    entries    int32: the rows of all words, one after another
    sizes      float32 [rows]: how many rows each row of `matrix` stands for
    lengths    int64 [words]: number of entries of word k
    counts     float32 [words]: number of rows of word k
    """
    first = 0
    for k in range(counts.size):
        stop = first + lengths[k]
        for j in range(first, stop):
            prefetch(matrix, entries[min(j + AHEAD, entries.size - 1)])
        sum_rows(X, k, matrix, entries, first, stop, sizes, 1 / counts[k], False, 0, X.shape[1])
        x, copy = X[k], before[k]
        for d in range(x.size):
            copy[d] = x[d]
        first = stop


@jit
def spread(matrix, frozen, changes, distinct, ends, users, totals, low, high, limit, racing):
    """Add the change of each word's vector to its rows of `matrix`, unless frozen, in columns `low` to `high`.

    changes  [words, P];  distinct, ends, users, totals  rows and their words, as listed by `invert`
    limit    number of occurrences whose changes are added in full, over all pieces trained at once
    racing   number of other calls, and this one, for pieces trained at once
    """
    first = 0
    for i in range(distinct.size):
        prefetch(matrix, distinct[min(i + AHEAD, distinct.size - 1)])
        if not (frozen.size and frozen[distinct[i]]):
            part = max(limit / max(racing * totals[i], limit), 1 / (racing * (ends[i] - first)))
            sum_rows(matrix, distinct[i], changes, users, first, ends[i], None, part, True, low, high)
        first = ends[i]
