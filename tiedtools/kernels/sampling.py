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
def subsample(tokens, begins, ends, ids, thresholds, seed):
    """Subsample a piece of text: token k of `ids` stays with probability thresholds[k] / (2**32 - 1).

    tokens        int32 [ids.size + 1]: the words that stay, without line ends; the last is scratch
    begins, ends  int32 [ids.size]: tokens[begins[i] : ends[i]] is the sentence of token i, of at most
                  LONGEST_SENTENCE tokens
    ids           int32 [tokens], 0 ends a sentence        thresholds  uint32 [V]        seed  uint64

    Returns the number of tokens. A sentence of one word has nothing to teach and is left out.
    """
    n = start = 0
    counter = seed
    for i in range(ids.size + 1):
        word = ids[i] if i < ids.size else 0
        counter += GOLDEN
        tokens[n] = word
        # Added up without a branch, which would be mispredicted for every other word.
        n += word != 0 and (mix(counter) & LOW32) <= thresholds[word]
        if word == 0 or n - start == LONGEST_SENTENCE:
            if n - start == 1:
                n = start
            for k in range(start, n):
                begins[k] = start
                ends[k] = n
            start = n
    return n
