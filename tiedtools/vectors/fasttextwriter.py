"""Write models of fastText: float32, or quantized (.ftz), with or without n-grams."""

import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from tiedtools.kernels.text.nearest import CENTROIDS
from tiedtools.vectors.fasttext import HEADER, Dense, FastText, Header
from tiedtools.vectors.ngrams import Buckets, Composed
from tiedtools.vectors.norms import blocks, distinct
from tiedtools.vectors.quantized import Quantized, quantize

BLOCK = 1 << 18


def write(file: BinaryIO, words: Sequence[str], matrix: Any, quantized: bool = False, counts: Any = None) -> None:
    """Write vectors as a model without n-grams; those of a model with n-grams keep them, unless pruned or quantized.

    Of a repeated word, only the first vector is written.

    quantized  quantize them, which takes a tenth of the space at 300 dimensions
    counts     how often each word occurs, int [V]; None: unknown
    """
    settings, inputs = {}, matrix
    if isinstance(matrix, FastText) and matrix.header.pruned < 0 and isinstance(matrix.inputs, Dense):
        counts, inputs = matrix.counts(), matrix.inputs
        settings = matrix.header._replace(version=12, maxn=matrix.maxn)._asdict()
        if matrix.supervised:
            settings |= {"model": Header().model, "word_ngrams": 1}
    elif isinstance(matrix, Composed):
        inputs = Buckets(matrix)
        settings = inputs.settings
    else:
        counts = None if counts is None else np.maximum(distinct(words, counts)[1], 1)
        words, inputs = distinct(words, matrix)
    if quantized:
        inputs = quantize(inputs)
    write_model(file, words, inputs, counts, **settings)


def write_model(
    file: BinaryIO, words: Sequence[str], inputs: Any, counts: Any = None, outputs: Any = None, **settings: Any
) -> None:
    """Write a model of word vectors, which fastText and, unless it is quantized, gensim read.

    words     V words without whitespace, by decreasing count
    inputs    input matrix [V + bucket, E]: the rows of the words, then those of the n-grams; float32, or Quantized
    counts    how often each word occurs in the training text, int [V]; None: once
    outputs   output matrix [V, E]; None: zeros
    settings  other fields of Header, such as minn, maxn, and bucket
    """
    V, (M, E) = len(words), inputs.shape
    counts = np.ones(V, np.int64) if counts is None else np.asarray(counts)
    sizes = dict(dim=E, size=V, nwords=V, nlabels=0, ntokens=max(int(counts.sum()), settings.get("ntokens", 0)))
    header = Header(**{**settings, **sizes})
    if M != V + header.bucket:
        raise ValueError(f"{M} rows for {V} words and {header.bucket} buckets")
    file.write(HEADER.pack(*header))
    for start in range(0, V, BLOCK):
        entries = zip(words[start : start + BLOCK], counts[start : start + BLOCK].tolist())
        file.write(b"".join(word.encode() + b"\0" + struct.pack("<qb", count, 0) for word, count in entries))
    if outputs is None and isinstance(inputs, Quantized):  # one code a row
        outputs = Quantized(E, np.zeros((V, 1), np.uint8), np.zeros((1, CENTROIDS, E), np.float32))
    write_matrix(file, inputs)
    write_matrix(file, np.broadcast_to(np.float32(0), (V, E)) if outputs is None else outputs)


def write_matrix(file: BinaryIO, matrix: Any) -> None:
    """Write a matrix after the byte that says whether it is quantized."""
    if isinstance(matrix, Quantized):
        file.write(b"\1")
        return matrix.write(file)
    file.write(struct.pack("<?qq", False, *matrix.shape))
    for _, rows in blocks(matrix, BLOCK):
        file.write(np.ascontiguousarray(rows, "<f4").data)
