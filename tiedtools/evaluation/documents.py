"""Document vectors (Rei 2015, section 6): the document vector of a language model after a line or document."""

import dataclasses
import itertools

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.lexicon import NEWLINE, lines
from tiedtools.evaluation.perplexity import line_batches, score
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import counted, shown
from tiedtools.vectors.neighbors import Candidates, neighbors
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


def sentence_vectors(model, text, step=1000):
    """Yield the vectors of documents in order, float32 [n, D], as fastText's `get_sentence_vector`.

    model  a FastText
    text   in the form of `sentences`
    """
    documents = []
    for begins, words in text:
        documents += [[]] * begins
        documents[-1] = documents[-1] + [word.encode() for word in words]
    for start in range(0, len(documents), step):
        yield model.sentences(documents[start : start + step])


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


def similar(model, lexicon, path, unit, errors="strict", queries=(), numbers=(), sample=0, seed=1, top=3, center=False):
    """Find the documents of a text with the largest cosine to each query.

    queries  sentences; one that equals a line of the text stands for that line
    numbers  numbers of documents to use as queries, from 1
    sample   number of documents to draw as further queries, with `seed`
    center   subtract the initial document vector from all vectors

    Returns a list of dicts: line (number; None for a sentence that is not in the text), text (of the first line), and
    similar, `top` dicts of line, cosine, and text, excluding the query. Raises TiedtoolsError if the text is too short.
    """
    first_lines, typed = [], [WORD.findall(query) for query in queries]
    read = itertools.chain(noted(sentences(path, unit, errors), first_lines), ((True, words) for words in typed))
    matrix = np.concatenate(list(document_vectors(model, lexicon, read)))
    n, kind = len(first_lines), "line" if unit == "line" else "document"
    if not n:
        raise TiedtoolsError(f"{shown(path)}: no {kind}s; give a text")
    if high := [name for name, k in (("`numbers`", max(numbers, default=0)), ("`sample`", sample)) if k > n]:
        remedy = f"give a longer text, or lower {' and '.join(high)}"
        raise TiedtoolsError(f"{shown(path)}: has {counted(n, kind)}; {remedy}")
    vectors = Vectors(list(range(n + len(typed))), matrix - (model.params["start_doc"] if center else 0))
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
