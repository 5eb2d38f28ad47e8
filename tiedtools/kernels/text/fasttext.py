"""fastText's dictionary and subwords: parse and hash the entries, look words up, list and average rows.

An entry is a word, a zero byte, its count (int64), and its type (uint8: 0 word, 1 label). Text is uint8; the n-th word
of a text is text[starts[n]:stops[n]]. The hash table, int32 [power of two], holds ID + 1 of each entry, or 0.
"""

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch_l2
from tiedtools.kernels.text.tokenize import is_blank, scramble

TAIL = 10  # bytes of an entry after its word
AHEAD = 2  # rows that are prefetched while others are added
LONGEST = 1 << 16  # maximum bytes of a word in a dictionary
EOS = np.frombuffer(b"</s>", np.uint8)  # it has no n-grams
LESS, GREATER = b"<>"  # mark the beginning and the end of a word
PARSED, ENDLESS, INVALID, REPEATED = range(4)
MASK, BASIS, PRIME, SIGN = (np.uint64(x) for x in (0xFFFFFFFF, 2166136261, 16777619, 0xFFFFFF00))


@jit
def extended(h, byte):
    """Return the 32-bit FNV-1a hash of one more byte, which fastText extends by its sign, as uint64."""
    return ((h ^ (np.uint64(byte) | (SIGN if byte >= 128 else np.uint64(0)))) * PRIME) & MASK


@jit
def hash_of(text, start, stop):
    """Return fastText's hash of text[start:stop], uint64."""
    h = BASIS
    for i in range(start, stop):
        h = extended(h, text[i])
    return h


@jit
def equal(a, i, b, j, n):
    """Return whether a[i : i + n] and b[j : j + n] are equal."""
    k = 0
    while k < n and a[i + k] == b[j + k]:
        k += 1
    return k == n


@jit
def locate(table, data, starts, text, start, stop, h):
    """Return the slot of the word text[start:stop] with hash `h`: that of its entry in `data`, or an empty one."""
    mask = np.uint64(table.size - 1)
    slot = scramble(h) & mask
    while table[slot] != 0:
        k = table[slot] - 1
        if starts[k + 1] - starts[k] - TAIL == stop - start and equal(data, starts[k], text, start, stop - start):
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit
def parse(starts, table, data, V):
    """Parse the entries that begin at data[starts[0]]; the first V must be words and the others labels.

    starts  int64 [entries + 1], out: where each entry begins, and the end of the last
    table   int32, all 0, out: the hash table; larger than the number of entries

    Returns (status, number of entries parsed). Status PARSED; ENDLESS: an entry without an end within LONGEST bytes or
    within the data; INVALID: an empty word, whitespace other than a space, or an impossible count or type; REPEATED.
    """
    for k in range(starts.size - 1):
        start = i = starts[k]
        limit = min(data.size - TAIL, start + LONGEST)
        while i < limit and data[i] != 0:
            if is_blank(data[i]) and data[i] != ord(" "):  # gensim writes words such as `new york`
                return INVALID, k
            i += 1
        if i >= limit:
            return ENDLESS, k
        if i == start or data[i + 8] >= 128 or data[i + 9] != (k >= V):
            return INVALID, k
        starts[k + 1] = i + TAIL
        slot = locate(table, data, starts, data, start, i, hash_of(data, start, i))
        if table[slot] != 0:
            return REPEATED, k
        table[slot] = k + 1
    return PARSED, starts.size - 1


@jit
def find(ids, hashes, text, starts, stops, table, data, entries):
    """Look up the words of a text: ids int64 [n], -1 if unknown, and hashes uint64 [n]; `entries` as in `parse`."""
    for n in range(ids.size):
        hashes[n] = hash_of(text, starts[n], stops[n])
        ids[n] = table[locate(table, data, entries, text, starts[n], stops[n], hashes[n])] - 1


@jit
def subwords(rows, ends, ids, text, starts, stops, V, minn, maxn, bucket):
    """List the rows of words and their n-grams: for word n, rows[ends[n - 1] : ends[n]].

    rows  int64, out: room for a row, and maxn for each byte and two more of each word; ends  int64 [n], out
    ids   int64 [n]: row of each word; -1: only its n-grams, and V or more: a label, without rows

    The n-grams have minn to maxn UTF-8 characters of `<word>`, and row V + hash mod bucket. `<` and `>` alone are not
    n-grams.
    """
    size = 0
    for n in range(ids.size):
        start, stop = starts[n], stops[n]
        if 0 <= ids[n] < V:
            rows[size] = ids[n]
            size += 1
        if ids[n] < V and not (stop - start == EOS.size and equal(text, start, EOS, 0, EOS.size)):
            for i in range(start - 1, stop + 1):
                first = byte_at(text, start, stop, i)
                if first & 0xC0 == 0x80:  # continues a character
                    continue
                h, j, characters = extended(BASIS, first), i + 1, 1
                while characters <= maxn:
                    while j < stop and text[j] & 0xC0 == 0x80:
                        h = extended(h, text[j])
                        j += 1
                    if characters >= minn and not (characters == 1 and (i == start - 1 or j == stop + 1)):
                        rows[size] = V + np.int64(h % np.uint64(bucket))
                        size += 1
                    if j == stop + 1:
                        break
                    h = extended(h, byte_at(text, start, stop, j))
                    j += 1
                    characters += 1
        ends[n] = size


@jit
def byte_at(text, start, stop, i):
    """Return byte i of `<word>`, where the word is text[start:stop], `<` is before and `>` after it."""
    return LESS if i < start else GREATER if i == stop else text[i]


@jit
def average(out, row, raw, data, rows, ends):
    """Average rows of a matrix: out[n] is the mean of rows[ends[n - 1] : ends[n]], or 0 without rows.

    out   float32 [n, E]
    row   float32 [E], and raw, its bytes: workspace for a row, which is copied before its numbers are added
    data  uint8 [M, 4 E]: the bytes of a float32 matrix, at any address
    """
    first = 0
    for n in range(ends.size):
        total, scale = out[n], np.float32(1 / max(ends[n] - first, 1))
        for e in range(row.size):
            total[e] = 0
        for k in range(first, ends[n]):
            prefetch_l2(data, rows[min(k + AHEAD, rows.size - 1)])
            source = data[rows[k]]
            for i in range(raw.size):
                raw[i] = source[i]
            for e in range(row.size):
                total[e] += row[e]
        for e in range(row.size):
            total[e] *= scale
        first = ends[n]
