"""A small fastText model, as bytes, and its vectors by the definition: a plain reading of its file."""

import struct

import numpy as np

WORDS = ["</s>", "where", "Füße", "né", "a", "the", "Straße"]
HEAD = "<14id3i2q"


def hashed(word):
    """Return fastText's hash of bytes: FNV-1a of bytes that are extended by their sign to 32 bits."""
    h = 2166136261
    for byte in word:
        h = (h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619 % 2**32
    return h


def ngrams(word, minn, maxn):
    """List the n-grams of `<word>`, by start and then by length, without `<` and `>` alone."""
    padded = f"<{word}>"
    spans = [(i, i + n) for i in range(len(padded)) for n in range(minn, maxn + 1) if i + n <= len(padded)]
    return [padded[i:j] for i, j in spans if padded[i:j] not in "<>"]


def rows_of(word, words, minn, maxn, bucket, kept=None):
    """List the rows of a word and its n-grams; kept: {n-gram mod bucket: row - V} of a pruned model."""
    rows = [words.index(word)] if word in words else []
    ids = [hashed(ngram.encode()) % bucket for ngram in ngrams(word, minn, maxn)] if word != "</s>" else []
    ids = ids if kept is None else [kept[k] for k in ids if k in kept]
    return rows + [len(words) + k for k in ids]


def model(words=WORDS, matrix=None, labels=(), minn=2, maxn=3, bucket=20, kept=None, header=None):
    """Return (bytes of a model, its input matrix, its settings); kept as for `rows_of`; `header`: its fields."""
    V, E = len(words), 3
    rows = V + (bucket if kept is None else len(kept))
    if matrix is None:
        matrix = np.random.default_rng(0).integers(-99, 99, (rows, E)).astype("<f4") / 8
    names = (
        "magic version dim ws epoch min_count neg word_ngrams loss model bucket minn maxn rate t size nwords nlabels"
    )
    head = dict(zip(names.split(), [793712314, 12, E, 5, 5, 1, 5, 1, 2, 2, bucket, minn, maxn, 100, 1e-4]))
    head |= dict(
        size=V + len(labels), nwords=V, nlabels=len(labels), ntokens=99, pruned=-1 if kept is None else len(kept)
    )
    entries = [(word, 0) for word in words] + [(label, 1) for label in labels]
    head |= header or {}
    data = struct.pack(HEAD, *head.values())
    data += b"".join(
        word.encode() + b"\0" + struct.pack("<qB", 9 - min(k, 8), type) for k, (word, type) in enumerate(entries)
    )
    data += b"".join(struct.pack("<2i", *pair) for pair in (kept or {}).items())
    data += b"\0" + struct.pack("<qq", *matrix.shape) + matrix.tobytes()
    outputs = len(labels) if head["model"] == 3 else V
    data += b"\0" + struct.pack("<qq", outputs, E) + bytes(4 * E * outputs)
    return data, matrix, (minn, maxn, bucket, kept)


def vector(word, words, matrix, settings):
    """Return the vector of a word, which may be unknown: the mean of its rows, or zeros."""
    rows = rows_of(word, words, *settings)
    return matrix[rows].mean(0) if rows else np.zeros(matrix.shape[1])
