"""Counts of words and of pairs of words, and the joining of pairs into phrases, on word IDs.

A candidate is two words with only connector words, such as "of", between them. Words and candidates, joined by the
delimiter, are counted in one hash table by the hash of the string, because "a_b" and "c" makes the same phrase as "a"
and "b_c", as in word2phrase and gensim. Hashes have 64 bits: among 10 million strings, two are equal with a
probability of 3e-6.

table  uint64 [slots, 2]: hash (0: empty) and count; linear probing
H, P   uint64 [V]: polynomial hash of each word at a fixed base, and the base to the power of its number of bytes
"""

import math

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.base.scalar import LOW32, U32, mix
from tiedtools.kernels.text.tokenize import BLANK, NEWLINE

BASE = np.uint64(0x9E3779B97F4A7C15)
ZERO, ONE = np.uint64(0), np.uint64(1)
AHEAD = 32  # IDs before a pair is looked up, its table row is prefetched

# Fields of `state`: next position, hash of the candidate's first words (0: none), table entries.
POSITION, PREFIX, USED = range(3)

WORD2PHRASE, DEFAULT, NPMI = range(3)
STARTS, ENDS, CONNECTS = 1, 2, 4  # roles of words in phrases


@jit
def hash_words(H, P, arena, starts):
    """Fill H and P for all words of a WordTable, each followed by a newline in `arena`."""
    for k in range(H.size):
        h, power = ZERO, ONE
        for j in range(starts[k], starts[k + 1] - 1):
            h = h * BASE + np.uint64(arena[j]) + ONE
            power *= BASE
        H[k], P[k] = h, power


@jit
def home(table, key):
    """Return the row of a table where the search for `key` begins."""
    return np.int64((mix(key) >> U32) * np.uint64(table.shape[0]) >> U32)


@jit
def slot_of(table, key):
    """Return the row of `key` in a table, or the empty row where it belongs."""
    slot = home(table, key)
    while table[slot, 0] != ZERO and table[slot, 0] != key:
        slot += 1
        if slot == table.shape[0]:
            slot = 0
    return slot


@jit
def add(table, key, n):
    """Add n to the count of `key`; return whether it is new."""
    slot = slot_of(table, key)
    new = table[slot, 0] == ZERO
    table[slot, 0] = key
    table[slot, 1] += n
    return new


@jit
def add_words(table, H, counts, connects, part, parts):
    """Add the words of hash partition `part` of `parts`, without connectors, to a table; return the number of keys."""
    used = 0
    for k in range(1, H.size):
        if counts[k] and not connects[k] and is_in(H[k], part, parts):
            used += add(table, H[k], np.uint64(counts[k]))
    return used


@jit
def is_in(key, part, parts):
    """Return whether a key belongs to hash partition `part`; the slot depends on the other half of the bits."""
    return (mix(key) & LOW32) * np.uint64(parts) >> U32 == np.uint64(part)


@jit
def extended(prefix, k, H, P, delimiter):
    """Return the hash of a string with hash `prefix`, the delimiter, and word k."""
    return (prefix * delimiter[1] + delimiter[0]) * P[k] + H[k]


@jit
def count(table, state, ids, H, P, connects, delimiter, across, part, parts, limit):
    """Count the candidates of partition `part` in ids, int32 [n], from state[POSITION]; stop above `limit` entries.

    state      int64 [3], see above
    connects   bool [V], connector words  delimiter  uint64 [2], its H and P
    across     also count candidates that span a line end, as word2phrase does
    """
    i, prefix, used = state[POSITION], np.uint64(state[PREFIX]), state[USED]
    while i < ids.size and used <= limit:
        if i + AHEAD < ids.size:
            key = extended(H[ids[i + AHEAD - 1]], ids[i + AHEAD], H, P, delimiter)
            if is_in(key, part, parts):
                prefetch(table, home(table, key))
        k = ids[i]
        i += 1
        if k == 0:
            prefix = prefix if across else ZERO
            continue
        key, first = extended(prefix, k, H, P, delimiter), prefix == ZERO
        if connects[k]:
            prefix = ZERO if first else key
            continue
        prefix = H[k]
        if not first and is_in(key, part, parts):
            used += add(table, key, ONE)
    state[POSITION], state[PREFIX], state[USED] = i, np.int64(prefix), used


@jit
def copy(larger, table, least):
    """Add the entries of `table` with counts >= `least` to another table; return the number of new ones."""
    used = 0
    for slot in range(table.shape[0]):
        if table[slot, 0] != ZERO and table[slot, 1] >= least:
            used += add(larger, table[slot, 0], table[slot, 1])
    return used


@jit
def look_up(counts, table, H, part, parts):
    """Set the counts of the words of partition `part` to those of their strings, as words and as phrases."""
    for k in range(1, H.size):
        if is_in(H[k], part, parts):
            counts[k] = np.int64(table[slot_of(table, H[k]), 1])


@jit
def score(scoring, n_ab, n_a, n_b, min_count, words, entries):
    """Return the score of a phrase of two words; -inf: never a phrase.

    WORD2PHRASE  (n_ab - min_count) / n_a / n_b words, in float32; words occur at least min_count times (Mikolov et
                 al. 2013, equation 6)
    DEFAULT      (n_ab - min_count) / (n_a n_b) entries, the number of different words and pairs: gensim's default
    NPMI         ln(p_ab / (p_a p_b)) / -ln p_ab (Bouma 2009), p = n / words
    """
    if n_a <= 0 or n_b <= 0 or n_ab < min_count:
        return -math.inf
    if scoring == DEFAULT:
        return (n_ab - min_count) / (np.float64(n_a) * n_b) * entries
    if scoring == NPMI:
        total = np.float64(words)
        p_ab = n_ab / total
        return math.log(p_ab / ((n_a / total) * (n_b / total))) / -math.log(p_ab)
    if min(n_a, n_b) < min_count:
        return -math.inf
    ratio = np.float32(n_ab - min_count) / np.float32(n_a) / np.float32(n_b)
    return np.float64(np.float32(ratio * np.float32(words)))


@jit
def following(h, k):
    """Return the hash of a sequence of IDs: h of the IDs before, followed by k."""
    return mix(h) + np.uint64(k) + ONE


@jit
def find(spans, scores, seen, table, ids, H, P, connects, delimiter, counts, scoring, threshold, min_count, totals):
    """List the candidates within lines whose score exceeds the threshold; return their number, even above the capacity.

    spans    int64 [capacity, 2], out: first and last position of an occurrence
    scores   float64 [capacity, 2], out: score and count
    seen     uint64 [slots, 2], scratch: hashes of the IDs of the candidates in `spans`
    table    frequent strings     counts  int64 [V]     totals  int64 [2]: words and table entries
    """
    n, start = 0, -1
    prefix = sequence = ZERO
    for j in range(ids.size):
        k = ids[j]
        if k == 0:
            start = -1
            continue
        if j + AHEAD < ids.size:
            prefetch(table, home(table, extended(H[ids[j + AHEAD - 1]], ids[j + AHEAD], H, P, delimiter)))
        key = extended(prefix, k, H, P, delimiter)
        if connects[k]:
            prefix, sequence = key, following(sequence, k)
            continue
        n_ab = np.int64(table[slot_of(table, key), 1]) if start >= 0 else 0
        if n_ab > 0:
            value = score(scoring, n_ab, counts[ids[start]], counts[k], min_count, totals[0], totals[1])
            if value > threshold:
                if n >= len(spans):
                    n += 1
                elif add(seen, following(sequence, k), ONE):
                    spans[n, 0], spans[n, 1] = start, j
                    scores[n, 0], scores[n, 1] = value, n_ab
                    n += 1
        start, prefix, sequence = j, H[k], following(ZERO, k)
    return n


@jit
def enter(phrases, roles, ids, bounds):
    """Fill `roles` and a table with phrases; phrase k is ids[bounds[k] : bounds[k + 1]], and its entry is k + 1."""
    for k in range(bounds.size - 1):
        h = ZERO
        for i in range(bounds[k], bounds[k + 1]):
            h = following(h, ids[i])
            inside = bounds[k] < i < bounds[k + 1] - 1
            roles[ids[i]] |= CONNECTS if inside else STARTS if i == bounds[k] else ENDS
        slot = slot_of(phrases, h)
        if phrases[slot, 0] == ZERO:
            phrases[slot, 0], phrases[slot, 1] = h, k + 1


@jit
def join(ids, roles, phrases, new, counts):
    """Join the phrases in `ids` in place, from left to right, each word in at most one; return the number of IDs left.

    roles    uint8 [V]: sum of STARTS, ENDS, and CONNECTS, the roles of a word in phrases
    phrases  as filled by `enter`      new  int32 [phrases]: ID of each phrase
    counts   int64 [V + phrases], changed: occurrences of each ID
    """
    n, start = 0, -1  # start: first word of a candidate, which is already written
    h = ZERO
    for i in range(ids.size):
        k = ids[i]
        if start >= 0 and roles[k] == CONNECTS:
            h = following(h, k)
        else:
            number = 0
            if start >= 0 and roles[k] & ENDS:
                number = np.int64(phrases[slot_of(phrases, following(h, k)), 1])
            if number:
                for j in range(start, n):
                    counts[ids[j]] -= 1
                counts[k] -= 1
                n, k = start, new[number - 1]
                counts[k] += 1
            start = n if number == 0 and roles[k] & STARTS else -1
            h = following(ZERO, k)
        ids[n] = k
        n += 1
    return n


@jit
def spell(out, ids, arena, starts, at_line_start):
    """Write the text of IDs to `out`, uint8: words separated by blanks, a newline for 0; return the number of bytes."""
    n = 0
    for k in ids:
        if k == 0 or not at_line_start:
            out[n] = BLANK if k else NEWLINE
            n += 1
        for j in range(starts[k], starts[k + 1] - 1 if k else 0):
            out[n] = arena[j]
            n += 1
        at_line_start = k == 0
    return n
