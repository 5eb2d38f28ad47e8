"""Bytes to word ids in one pass: split, look up, count.

Words live in an arena of bytes, one after the other in order of first appearance, each followed by
a newline. An open-addressing table, uint64 [slots, 2], holds a key and the id + 1 of each (0: empty).
The key of a word of at most 8 bytes is those bytes, so that one comparison decides; that of a longer
word is a hash behind the byte 0xFF, which no UTF-8 text contains, and the arena decides.
"""

import numpy as np

from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import GOLDEN, U32

BLANK, NEWLINE, TAB, RETURN = 32, 10, 9, 13
ONE, U8 = np.uint64(1), np.uint64(8)
LONG = np.uint64(0xFF << 56)

# Fields of `state`: words known, arena bytes used, position in the text, newlines seen, unknown words met.
WORDS, USED, POSITION, LINES, UNKNOWN = range(5)

DONE, FULL, NUL = range(3)


@jit
def is_blank(byte):
    """ASCII white space: what separates words. Other Unicode spaces are part of them, as in word2vec.c."""
    return byte == BLANK or TAB <= byte <= RETURN


@jit
def scramble(key):
    """A slot number (before masking) that depends on all bits of `key`."""
    h = key * GOLDEN
    return h ^ (h >> U32)


@jit
def encode(ids, counts, starts, arena, table, state, text, grow, unknown):
    """Append the id of each word of `text` (uint8, ending in white space) to `ids`; a newline is id 0.

    ids     int32 [>= text.size]         counts  int64 [capacity], added to
    starts  int64 [capacity + 1]         arena   uint8      table  uint64 [power of two > capacity, 2]
    state   int64 [5], see above; `text` is taken up at state[POSITION]

    Words that the table lacks are added where `grow` is set. Otherwise they are counted in state[UNKNOWN] alone and
    passed over, or where `unknown` is no negative number given that as their id.
    Returns (status, ids written): DONE; FULL, for the caller to enlarge everything and call again;
    or NUL, a zero byte at state[POSITION]: no text has one.
    """
    # One long function: a helper that takes arrays costs more here (reference counts) than the look-up itself.
    mask = np.uint64(table.shape[0] - 1)
    n = 0
    i = state[POSITION]
    while i < text.size:
        byte = text[i]
        if is_blank(byte):
            if byte == NEWLINE:
                ids[n] = 0
                n += 1
                counts[0] += 1
                state[LINES] += 1
            i += 1
            continue

        start = i
        key = code = np.uint64(0)
        while byte > BLANK or not is_blank(byte):
            if byte == 0:
                state[POSITION] = i
                return NUL, n
            if (i - start) & 7 == 0:
                code = scramble(code ^ key)
            key = key << U8 | np.uint64(byte)
            i += 1
            byte = text[i]
        length = i - start
        if length > 8:
            key = scramble(code ^ key) | LONG

        slot = scramble(key) & mask
        while table[slot, 1] != 0:
            if table[slot, 0] == key:
                if length <= 8:
                    break
                at = starts[np.int64(table[slot, 1]) - 1]
                j = 0
                while j < length and arena[at + j] == text[start + j]:
                    j += 1
                if j == length and arena[at + j] == NEWLINE:
                    break
            slot = (slot + ONE) & mask

        if table[slot, 1] == 0:
            if not grow:
                state[UNKNOWN] += 1
                if unknown >= 0:
                    ids[n] = unknown
                    n += 1
                continue
            k, used = state[WORDS], state[USED]
            if k == counts.size or used + length >= arena.size:
                state[POSITION] = start
                return FULL, n
            for j in range(length):
                arena[used + j] = text[start + j]
            arena[used + length] = NEWLINE
            state[USED] = starts[k + 1] = used + length + 1
            state[WORDS] = k + 1
            table[slot, 0] = key
            table[slot, 1] = k + 1
        k = np.int64(table[slot, 1]) - 1
        ids[n] = k
        n += 1
        counts[k] += 1
    state[POSITION] = i
    return DONE, n


@jit
def rehash(bigger, table):
    """Copy the entries of `table` into the empty, larger table `bigger`."""
    mask = np.uint64(bigger.shape[0] - 1)
    for old in range(table.shape[0]):
        if table[old, 1] != 0:
            slot = scramble(table[old, 0]) & mask
            while bigger[slot, 1] != 0:
                slot = (slot + ONE) & mask
            bigger[slot, 0] = table[old, 0]
            bigger[slot, 1] = table[old, 1]


@jit
def renumber(ids, new_id):
    """Replace each id k by new_id[k], in place, closing up over negative ones; returns how many are left."""
    n = 0
    for k in ids:
        ids[n] = new_id[k]
        n += new_id[k] >= 0
    return n
