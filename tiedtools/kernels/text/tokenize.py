"""Tokenization in one pass: split bytes into words, map them to word IDs, and count them.

Words are stored in a byte arena in order of first appearance, each followed by a newline. An open-addressing hash
table, uint64 [slots, 2], holds a key and the ID + 1 of each word (0: empty). The key of a word of at most 8 bytes is
the word itself, so that one comparison suffices; the key of a longer word is a hash whose first byte is 0xFF, which
does not occur in UTF-8, and the word is compared with the arena.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.cpython.unsafe.numbers import leading_zeros
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.base.scalar import GOLDEN, U32

BLANK, NEWLINE, TAB, RETURN = 32, 10, 9, 13
ONE, U8, U64 = np.uint64(1), np.uint64(8), np.uint64(64)
LONG = np.uint64(0xFF << 56)
LOW_BITS, ABOVE_BLANK, HIGH_BITS = (np.uint64(byte * 0x0101010101010101) for byte in (0x7F, 0x7F - BLANK, 0x80))

# Fields of `state`: number of words, arena bytes used, position in the text, and numbers of newlines and unknown words.
WORDS, USED, POSITION, LINES, UNKNOWN = range(5)

DONE, FULL, NUL = range(3)


@jit
def is_blank(byte):
    """Whether a byte is ASCII whitespace, which separates words; other Unicode spaces do not, as in word2vec.c."""
    return byte == BLANK or TAB <= byte <= RETURN


@jit
def scramble(key):
    """Hash `key` to a slot number (before masking) that depends on all of its bits."""
    h = key * GOLDEN
    return h ^ (h >> U32)


@intrinsic
def eight_bytes(typingctx, text, i):
    """Return text[i : i + 8] (uint8) as a uint64 with the first byte highest."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(array.data, [args[1]])
        return builder.bswap(builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1))

    return types.uint64(text, types.intp), codegen


@jit
def encode(ids, counts, starts, arena, table, state, ahead, text, grow, unknown):
    """Write the ID of each word of `text` (uint8, ending in whitespace) to `ids`; a newline has ID 0.

    ids     int32 [>= text.size]         counts  int64 [capacity], incremented
    starts  int64 [capacity + 1]         arena   uint8      table  uint64 [power of two > capacity, 2]
    state   int64 [5], see above; starts at state[POSITION] of `text`
    ahead   uint64 [words, 3], scratch: start, length (0: a line end), and key of the next words

    Unknown words are added to the table if `grow`. Otherwise they are counted in state[UNKNOWN] and skipped or, if
    `unknown` >= 0, written with `unknown` as their ID.
    Returns (status, number of IDs written). Status DONE; FULL: the caller must enlarge the arrays and call again;
    NUL: invalid zero byte at state[POSITION].
    """
    # One long function: calling a helper with arrays (reference counting) would cost more than the lookup itself.
    mask = np.uint64(table.shape[0] - 1)
    n = 0
    i = state[POSITION]
    while i < text.size:
        # Find the next words and line ends, and prefetch the slots of the words: most of the time is waiting for them.
        found = 0
        while i < text.size and found < ahead.shape[0]:
            start = i
            if is_blank(text[i]):
                i += 1
                if text[start] == NEWLINE:
                    ahead[found, 0], ahead[found, 1] = start, 0
                    found += 1
                continue

            # Up to 8 bytes of a word are its key; a longer word is hashed. First 8 bytes at a time, to one that is no
            # greater than a blank, then one at a time: at the end of the text, and after control characters.
            key = code = np.uint64(0)
            while i + 8 <= text.size:
                eight = eight_bytes(text, i)
                ends = ~((eight & LOW_BITS) + ABOVE_BLANK | eight) & HIGH_BITS
                bits = np.uint64(leading_zeros(ends))
                if bits == 0:
                    break
                code = scramble(code ^ key)
                if bits < 64:
                    key = key << bits | eight >> (U64 - bits)
                    i += np.int64(bits >> np.uint64(3))
                    break
                key = eight
                i += 8
            byte = text[i]
            while byte > BLANK or not is_blank(byte):
                if byte == 0:
                    state[POSITION] = i
                    return NUL, n
                if (i - start) & 7 == 0:
                    code = scramble(code ^ key)
                key = key << U8 | np.uint64(byte)
                i += 1
                byte = text[i]
            if i - start > 8:
                key = scramble(code ^ key) | LONG
            ahead[found, 0], ahead[found, 1], ahead[found, 2] = start, i - start, key
            found += 1
            prefetch(table, np.int64(scramble(key) & mask))

        for word in range(found):
            start, length, key = np.int64(ahead[word, 0]), np.int64(ahead[word, 1]), ahead[word, 2]
            if length == 0:
                ids[n] = 0
                n += 1
                counts[0] += 1
                state[LINES] += 1
                continue

            # Look it up: go to the slot of the word or to an empty one.
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

            # A new word is skipped, or written as `unknown`, or added to the arena and the table.
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
    """Replace each ID k with new_id[k] in place, dropping negative ones; returns the number of remaining IDs."""
    n = 0
    for k in ids:
        ids[n] = new_id[k]
        n += new_id[k] >= 0
    return n
