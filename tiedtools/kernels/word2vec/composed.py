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

from tiedtools.kernels.base.arrays import CACHE_LINE
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch, prefetch_l2
from tiedtools.kernels.base.sums import sum_rows
from tiedtools.kernels.word2vec.sampling import alias

AHEAD = 6  # prefetch distance, in rows or words


@jit
def number(words, known, numbers, tokens, occurs, each):
    """Replace words by local numbers, which new words get in order; returns how many words are now known.

    words    int32 [most]: the words by local number; `known` of them are known before
    numbers  int32 [V]: local number of each word, or -1
    tokens   int32 [n], in: words; out: local numbers
    occurs   float32 [most]: occurrences of each known word, to which `each` is added for each of these
    """
    for i in range(tokens.size):
        word = tokens[i]
        if numbers[word] < 0:
            numbers[word], words[known], occurs[known] = known, word, 0
            known += 1
        tokens[i] = numbers[word]
        occurs[tokens[i]] += each
    return known


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
        later = starts[words[min(k + AHEAD, words.size - 1)]]
        prefetch(rows, later)
        prefetch(rows, min(later + CACHE_LINE // 4, rows.size - 1))
        for j in range(starts[words[k]], starts[words[k] + 1]):
            entries[n], owners[n] = rows[j], first + k
            n += 1
    return n


@jit
def invert(distinct, ends, users, totals, place, entries, owners, occurs):
    """List the distinct rows among those listed by `list_rows`, and the words that have each; returns how many.

    distinct  int32, out: the rows, and room for one more
    ends      int64, out;  users  int32, out: words of row i, users[ends[i - 1] : ends[i]]
    totals    float32, out: occurrences of the words of row i
    place     int32 [rows of the matrix], all -1 before and after: workspace
    entries   int32, in: rows; out: their numbers among the distinct ones
    occurs    float32: occurrences of each word
    """
    n = 0
    for j in range(entries.size):
        # No branch depends on whether the row is new, which is as likely as not and could not be predicted.
        row = entries[j]
        distinct[n], ends[n], totals[n] = row, 0, 0
        i = place[row]
        i, n = (n, n + 1) if i < 0 else (i, n)
        place[row] = entries[j] = i
        ends[i] += 1
        totals[i] += occurs[owners[j]]
    total = 0
    for i in range(n):
        count = ends[i]
        ends[i] = total
        total += count
    for j in range(entries.size):
        i = entries[j]
        users[ends[i]] = owners[j]
        ends[i] += 1
    for i in range(n):
        place[distinct[i]] = -1
    return n


@jit
def compose(X, before, matrix, sizes, counts, entries, owners, starts, rows, words, first):
    """X[k] = before[k] = mean of the rows of word k of a piece; returns the number of entries.

    X, before      [most, P];  entries, owners, starts, rows, words, first  as for `list_rows`
    sizes          float32 [rows]: number of rows of fastText's matrix that a row of `matrix` stands for
    counts         float32 [V]: sum of the sizes of a word's rows
    """
    total = list_rows(entries, owners, starts, rows, words, first)
    begin = 0
    for k in range(words.size):
        stop = begin + starts[words[k] + 1] - starts[words[k]]
        for j in range(begin, stop):
            prefetch_l2(matrix, entries[min(j + AHEAD, total - 1)])
        sum_rows(X, k, matrix, entries, begin, stop, sizes, 1 / counts[words[k]], False, 0, X.shape[1])
        x, copy = X[k], before[k]
        for d in range(x.size):
            copy[d] = x[d]
        begin = stop
    return total


@jit
def spread(matrix, frozen, changes, lists, entries, owners, occurs, low, high, limit, racing):
    """Add the change of each word's vector to its rows of `matrix`, unless frozen, in columns `low` to `high`.

    changes         [words, P];  lists  a tuple of the first arguments of `invert`
    entries, owners, occurs  as for `invert`
    limit           number of occurrences whose changes are added in full, over all pieces trained at once
    racing          number of other calls, and this one, for pieces trained at once
    """
    distinct, ends, users, totals, place = lists
    n, first = invert(distinct, ends, users, totals, place, entries, owners, occurs), 0
    for i in range(n):
        prefetch_l2(matrix, distinct[min(i + AHEAD, n - 1)])
        if not (frozen.size and frozen[distinct[i]]):
            part = max(limit / max(racing * totals[i], limit), 1 / (racing * (ends[i] - first)))
            sum_rows(matrix, distinct[i], changes, users, first, ends[i], None, part, True, low, high)
        first = ends[i]
