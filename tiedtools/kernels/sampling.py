"""Random choices over a vocabulary: Walker's alias method, and subsampling of frequent words."""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import GOLDEN, LOW32, mix

LONGEST_SENTENCE = 1000  # kept tokens, as in word2vec.c


@jit
def alias(table, share, small, large):
    """Fill Walker's alias table: draw a column uniformly, keep it with probability threshold / 2**32, else its alias.

    table         uint32 [V, 2]: threshold, alias
    share         float64 [V]: probabilities times V; used up
    small, large  int64 [V]: scratch
    """
    n_small = n_large = 0
    for k in range(share.size):
        table[k, 0] = 0xFFFFFFFF
        table[k, 1] = k
        if share[k] < 1:
            small[n_small] = k
            n_small += 1
        else:
            large[n_large] = k
            n_large += 1
    while n_small and n_large:
        n_small -= 1
        poor, rich = small[n_small], large[n_large - 1]
        table[poor, 0] = int(share[poor] * 4294967296.0)
        table[poor, 1] = rich
        share[rich] -= 1 - share[poor]
        if share[rich] < 1:
            n_large -= 1
            small[n_small] = rich
            n_small += 1


@jit
def thin(out, ids, keep, seed):
    """Subsample a piece of text: copy token k of `ids` with probability keep[k] / (2**32 - 1), between zeros.

    out   int32 [2 + 2 * ids.size]: out[0] = out[n + 1] = 0, and a 0 after each sentence
    ids   int32 [tokens], 0 ends a sentence        keep  uint32 [V]        seed  uint64

    Returns n. A sentence is cut after LONGEST_SENTENCE kept tokens.
    """
    n = 0
    length = 0
    counter = seed
    out[0] = 0
    for k in ids:
        if k != 0:
            counter += GOLDEN
            if (mix(counter) & LOW32) > keep[k]:
                continue
            length += 1
        n += 1
        out[n] = k
        if length == LONGEST_SENTENCE:
            n += 1
            out[n] = 0
        if out[n] == 0:
            length = 0
    out[n + 1] = 0
    return n
