"""Vectors of lines and documents: the document vector of a language model (Rei 2015, section 6), or mean word vectors.

Both kinds are classes with the same interface: `encode` a text, the `index` of known words, and `origin`, the vector of
a text without words.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.settings import Range, checked
from tiedtools.evaluation.lexicon import NEWLINE, OOV, Lexicon, lines, pieces
from tiedtools.evaluation.perplexity import line_batches, score
from tiedtools.text.sentences import WORD, sources
from tiedtools.text.sources import counted, shown
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.sentencevectors import means, sif, without
from tiedtools.vectors.vectors import Vectors

CHUNK = 1 << 16  # words in memory at a time


def sentences(path, unit, errors="strict"):
    """Yield (begins, words) for each line of a text: whether the line begins a document, and its words.

    unit  "line": each line is a document; "doc": empty lines separate documents and are not yielded
    """
    begins = True
    for _, words in lines(path, errors):
        if words or unit == "line":
            yield begins, words
        begins = unit == "line" or not words


def noted(text, first_lines):
    """Yield a text in the form of `sentences` unchanged; append the first line of each document to `first_lines`."""
    for begins, words in text:
        if begins:
            first_lines.append(" ".join(words))
        yield begins, words


class DocumentVectors:
    """The vectors of documents under an Rnnlm with document vectors."""

    def __init__(self, model):
        self.model, self.lexicon, self.origin = model, Lexicon(model.vocab), model.params["start_doc"]

    def encode(self, path, unit="line", errors="strict", queries=()):
        """Return the vectors [N, D] of the documents of a text and of queries, lists of words, and the first lines."""
        first_lines, asked = [], ((True, words) for words in queries)
        read = itertools.chain(noted(sentences(path, unit, errors), first_lines), asked)
        parts = [part.astype(np.float32) for part in document_vectors(self.model, self.lexicon, read)]
        return np.concatenate(parts or [self.origin[None][:0]]), first_lines


class SentenceVectors:
    """Sentence vectors that are means of word vectors, plain or with SIF weights (Arora et al. 2017).

    vectors  word Vectors
    a        smoothing constant of SIF, such as 0.001; None: plain means

    >>> sentences = SentenceVectors(Vectors.read("vectors.txt"), a=0.001).fit("corpus.txt")
    >>> matrix = sentences.transform([["a", "sentence"], ["another", "one"]])

    `fit` estimates p(w) and the common component, which SIF needs. Words without a vector are left out or, if there is
    one, have the vector of `<unk>`.
    """

    origin = 0.0

    def __init__(self, vectors: Vectors, a: float | None = None) -> None:
        self.vectors, self.a = vectors, checked("a", a, float | None, Range(0, min_open=True))
        self.rows = np.array([-1, *vectors.index.values()], np.int32)  # of the codes
        self.lexicon = Lexicon(Vocab([END, *vectors.index], np.empty(0)))
        self.parameters: Any = sif(vectors.matrix, None, None, None) if a is None else None

    def fit(self, source: Any) -> "SentenceVectors":
        """Estimate SIF on a text: a path, a list of paths, an open file, or an iterable of sentences."""
        rows, bounds, _ = self.read(sources(source))
        self.parameters = sif(self.vectors.matrix, rows, bounds, self.a)
        return self

    def transform(self, source: Any) -> np.ndarray:
        """Return the vectors of the sentences of a text, a source as for `fit`, float32 [N, E]; zeros without words."""
        return self.of(*self.read(sources(source))[:2])

    def of(self, rows, bounds):
        if self.parameters is None:
            raise TiedtoolsError("SIF is not estimated; call `fit` with a text first")
        return means(self.vectors.matrix, rows, bounds, *self.parameters)

    @property
    def word_vectors(self) -> Vectors:
        """The word Vectors whose plain means are these sentence vectors; write them to use SIF for other texts."""
        weights, common = self.parameters
        return Vectors(self.vectors.words, without(self.vectors.matrix * weights[:, None], common))

    def encode(self, path, unit="line", errors="strict", queries=()):
        """See DocumentVectors. SIF is estimated on the text, not on the queries."""
        rows, bounds, first_lines = self.read([path], unit, errors, queries)
        if self.a is not None:
            self.parameters = sif(self.vectors.matrix, rows, bounds[: len(first_lines) + 1], self.a)
        return self.of(rows, bounds), first_lines

    def read(self, paths, unit="line", errors="strict", queries=()):
        """Return the rows of all words, int32 [n], the bounds of documents, int64 [N + 1], and their first lines."""
        codes, text = [], []
        for words in itertools.chain(*(pieces(path, errors) for path in paths)):
            codes.append(self.lexicon.codes(words))
            text.append(" ".join(words))
        codes = np.concatenate([*codes, *(self.lexicon.codes([*words, NEWLINE]) for words in queries)])
        ends = np.flatnonzero(codes == 0)
        begins = np.append(0, ends[:-1] + 1)  # positions of the first words of lines
        filled = ends > begins
        new = filled & ~np.append(False, filled[:-1]) if unit == "doc" else np.ones(len(ends), bool)
        new[len(ends) - len(queries) :] = True
        known = self.lexicon.readable(codes) & (codes != 0)
        before = np.append(0, np.cumsum(known))
        lines = zip(" ".join(text).split(NEWLINE), new.tolist())
        first_lines = [line.strip(" ") for line, first in itertools.islice(lines, len(ends) - len(queries)) if first]
        ids = np.where(codes == OOV, self.lexicon.unk or 0, codes)
        return self.rows[ids[known]], np.append(before[begins[new]], before[-1]), first_lines


def document_vectors(model, lexicon, text, chunk=CHUNK):
    """Yield the vectors of documents in order, as float arrays [n, D].

    model  an Rnnlm with document vectors
    text   in the form of `sentences`

    The hidden state is reset for each sentence; the document vector is carried through its document.
    """
    model = without_resets(model)
    start = model.params["start_doc"]
    documents, first, size = [], start, 0
    for begins, words in text:
        if size > chunk:
            vectors = final_vectors(model, documents, first)
            unfinished = not begins
            yield vectors[: len(vectors) - unfinished]
            documents, first, size = [[]] * unfinished, vectors[-1] if unfinished else start, 0
        if begins:
            documents.append([])
        documents[-1].append(lexicon.ids(lexicon.codes([*words, NEWLINE])))
        size += len(documents[-1][-1])
    if documents:
        yield final_vectors(model, documents, first)


def without_resets(model):
    """Copy a model so that line ends no longer reset its state; it starts from the state after a reset."""
    config = dataclasses.replace(model.config, sentences=False, independent=False, learn_start=False, shuffle=False)
    values = dict(model.params.owners())
    if model.config.independent and not model.config.learn_start:
        values["start_hid"] = np.ones_like(values["start_hid"])
    return type(model)(model.vocab, config, values, model.starts)


def final_vectors(model, documents, first):
    """Return the document vectors [n, D] after `documents`, lists of ID arrays; the first starts from `first`."""
    vectors = np.tile(model.params["start_doc"], (len(documents), 1))
    vectors[0] = first
    for k in range(max(map(len, documents))):
        active = np.array([row for row, document in enumerate(documents) if len(document) > k])
        for columns, ids, targets in line_batches([documents[row][k] for row in active]):
            rows = active[columns]
            ids[targets < 0] = -1  # padding: leaves the state unchanged
            hidden, _, *rest = model.start(len(rows))
            _, (_, after, *_) = score(model, ids, targets, (hidden, vectors[rows][None], *rest))
            vectors[rows] = after[0]
    return vectors


def similar(source, path, unit, errors="strict", queries=(), numbers=(), sample=0, seed=1, top=3, center=False):
    """Find the documents of a text with the largest cosine to each query.

    source   DocumentVectors or SentenceVectors
    queries  sentences; one that equals a line of the text stands for that line
    numbers  numbers of documents to use as queries, from 1
    sample   number of documents to draw as further queries, with `seed`
    center   subtract the vector of a text without words from all vectors

    Returns a list of dicts: line (number; None for a sentence that is not in the text), text (of the first line), and
    similar, `top` dicts of line, cosine, and text, excluding the query. Raises TiedtoolsError if the text is too short.
    """
    typed = [WORD.findall(query) for query in queries]
    matrix, first_lines = source.encode(path, unit, errors, typed)
    n, kind = len(first_lines), "line" if unit == "line" else "document"
    if not n:
        raise TiedtoolsError(f"{shown(path)}: no {kind}s; give a text")
    if high := [name for name, k in (("`numbers`", max(numbers, default=0)), ("`sample`", sample)) if k > n]:
        remedy = f"give a longer text, or lower {' and '.join(high)}"
        raise TiedtoolsError(f"{shown(path)}: has {counted(n, kind)}; {remedy}")
    vectors = Vectors(list(range(n + len(typed))), matrix - (source.origin if center else 0))
    rows = list(range(n, n + len(typed)))
    for row, words in zip(rows, typed):
        if unit == "line" and " ".join(words) in first_lines:
            rows[row - n] = first_lines.index(" ".join(words))
    rows += [number - 1 for number in numbers]
    rows += np.random.default_rng(seed).choice(n, sample, replace=False).tolist()
    texts = [*first_lines, *map(" ".join, typed)]
    return [
        {
            "line": row + 1 if row < n else None,
            "text": texts[row],
            "similar": [{"line": k + 1, "cosine": cosine, "text": texts[k]} for k, cosine in close],
        }
        for row, close in zip(rows, neighbors(Candidates(vectors, n), rows, top))
    ]
