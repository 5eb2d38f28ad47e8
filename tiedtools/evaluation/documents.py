"""Vectors of lines and documents: the document vector of a language model (Rei 2015, section 4), or mean word vectors.

All are classes with the same interface: `encode` a text, the `lexicon` of known words, and `origin`, the vector of a
text without words.
"""

import dataclasses
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import Range, checked
from tiedtools.evaluation.lexicon import NEWLINE, OOV, Lexicon, lines, refuse_empty
from tiedtools.evaluation.perplexity import line_batches, score
from tiedtools.text.counting import NO_WORD, WordTable
from tiedtools.text.sentences import WORD, sources
from tiedtools.text.sources import Decoder, blocks, counted, shown
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.norms import products
from tiedtools.vectors.vectors import Vectors

CHUNK = 1 << 12  # documents scored at a time
Queries = Sequence[list[str]]
Read = tuple[np.ndarray, np.ndarray, Iterator[str]]
Encoded = tuple[np.ndarray, np.ndarray, Iterable[str]]


def read(lexicon: Any, paths: list[Any], unit: str = "line", errors: str = "strict", queries: Queries = ()) -> Read:
    """Read the documents of a text, and queries, lists of words.

    unit  "line": each line is a document; "doc": empty lines separate documents; "record": an empty line ends each

    Returns the codes of all words and line ends, int32 [n], the positions where the N documents begin, and n, int64
    [N + 1], and an iterator over the first lines of the documents that are not queries.
    """
    V, ids, text = len(lexicon.words), io.BytesIO(), io.BytesIO()
    table = WordTable([NO_WORD, *lexicon.words[1:]])
    for path in paths:
        before = text.tell()
        with Decoder(path, errors) as decode:
            for _, block in blocks([path], errors):
                decode(block)  # refuses what is not text
                text.write(block)
                ids.write(table.encoded(block, grow=False, unknown=V))
        refuse_empty(path, text.tell() > before)
        if not block.endswith(b"\n"):
            text.write(b"\n")
            ids.write(bytes(4))
    for words in queries:
        ids.write(lexicon.codes([*words, NEWLINE]))
    codes = np.frombuffer(ids.getbuffer(), np.int32)
    unknown = codes == V
    codes[unknown] = OOV
    lexicon.oovs += int(unknown.sum())
    ends = np.flatnonzero(codes == 0)
    begins = np.append(0, ends[:-1] + 1)  # of lines
    new = new_documents(ends > begins, unit)
    asked = len(ends) - len(queries)
    new[asked:] = True
    text.seek(0)
    lines = itertools.compress(text, new[:asked].tolist())
    return codes, np.append(begins[new], len(codes)), (" ".join(WORD.findall(line.decode())) for line in lines)


def known_words(lexicon: Any, codes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which codes are known words, bool [n], and the bounds of the documents among these, int64 [N + 1]."""
    known = lexicon.readable(codes) & (codes != 0)
    return known, np.append(0, np.add.reduceat(known, starts[:-1], dtype=np.int64).cumsum())


def new_documents(filled: np.ndarray, unit: str) -> np.ndarray:
    """Return which lines begin a document, bool [n]; `filled`: which lines have words. For `unit`, see `read`."""
    after_empty = ~np.append(False, filled[:-1])
    return after_empty if unit == "record" else filled & after_empty if unit == "doc" else np.ones(len(filled), bool)


class DocumentVectors:
    """The vectors of documents under an Rnnlm with document vectors.

    The hidden state is reset for each line; the document vector is carried through its document.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.lexicon, self.origin = without_resets(model), Lexicon(model.vocab), model.params["start_doc"]

    def encode(self, path: Any, unit: str = "line", errors: str = "strict", queries: Queries = ()) -> Encoded:
        """Return the vectors [N, D] of the documents of a text and of queries, whether they have known words, bool [N],
        and the first lines of documents; see `read`.
        """
        codes, starts, first_lines = read(self.lexicon, [path], unit, errors, queries)
        vectors = np.empty((len(starts) - 1, len(self.origin)), self.origin.dtype)
        for k in range(0, len(vectors), CHUNK):
            documents = [self.lines(codes[i:j]) for i, j in itertools.pairwise(starts[k : k + CHUNK + 1])]
            vectors[k : k + CHUNK] = final_vectors(self.model, documents)
        return vectors, np.diff(known_words(self.lexicon, codes, starts)[1]) > 0, first_lines

    def lines(self, codes: np.ndarray) -> list[np.ndarray]:
        """Return the lines of a document as ID arrays, without empty ones after the first."""
        first, *others = np.split(codes, np.flatnonzero(codes == 0)[:-1] + 1)
        return [self.lexicon.ids(line) for line in [first, *(line for line in others if len(line) > 1)]]


class SentenceVectors:
    """Sentence vectors that are means of word vectors, plain or with SIF weights (Arora et al. 2017).

    vectors  word Vectors
    a        smoothing constant of SIF, such as 0.001; None: plain means

    >>> sentences = SentenceVectors(Vectors.read("vectors.txt"), a=0.001).fit("corpus.txt")
    >>> matrix = sentences.transform([["a", "sentence"], ["another", "one"]])

    SIF weighs a word by a / (a + p(w)) and removes the common component, the first right singular vector u of the
    matrix of the weighted means; `fit` estimates p(w) and u. Both steps are linear, so the plain means of the word
    vectors (I - u u^T) a / (a + p(w)) v_w are SIF vectors.

    Words without a vector are left out or, if there is one, have the vector of `<unk>`.
    """

    origin = 0.0

    def __init__(self, vectors: Vectors, a: float | None = None) -> None:
        self.vectors = checked("vectors", vectors, Vectors)
        self.a = checked("a", a, float | None, Range(0, min_open=True))
        index = vectors.index
        rows = {word: row for word, row in zip(index, index.values()) if WORD.fullmatch(word)}  # a text has no others
        self.rows = np.array([-1, *rows.values()], np.int32)  # of the codes
        self.lexicon = Lexicon(Vocab([END, *rows], np.empty(0)))
        self.weights: Any = np.ones(len(vectors), np.float32) if a is None else None
        self.common = np.zeros(vectors.dim, np.float32)

    def fit(self, source: Any) -> "SentenceVectors":
        """Estimate SIF on a text: a path, a list of paths, an open file, or an iterable of sentences."""
        rows, bounds, _ = self.read(sources(source))
        self.estimate(rows, bounds, len(bounds) - 1)
        return self

    def transform(self, source: Any) -> np.ndarray:
        """Return the vectors of the sentences of a text, a source as for `fit`, float32 [N, E]; zeros without words."""
        self.refuse_unfitted()
        return self.without(self.means(*self.read(sources(source))[:2]))

    def refuse_unfitted(self) -> None:
        """Raise TiedtoolsError if the word weights are not estimated."""
        if self.weights is None:
            raise TiedtoolsError("SIF is not estimated; call `fit` with a text first")

    def estimate(self, rows: np.ndarray, bounds: np.ndarray, n: int) -> np.ndarray:
        """Estimate SIF on the first n documents and return the vectors of all; rows and bounds as from `read`."""
        if self.a is not None:
            counts = np.bincount(rows[: bounds[n]], minlength=len(self.vectors))
            self.weights = (self.a / (self.a + counts / max(counts.sum(), 1))).astype(np.float32)
        means = self.means(rows, bounds)
        if self.a is not None:
            self.common = np.linalg.eigh(products(means[:n], means[:n]))[1][:, -1].astype(np.float32)
        return self.without(means)

    def means(self, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return the weighted means of the word vectors of documents; arguments as from `read`."""
        matrix, means = np.asarray(self.vectors.matrix), np.empty((len(bounds) - 1, self.vectors.dim), np.float32)

        def compute(k: int) -> None:
            some = bounds[k : k + CHUNK + 1]
            words, sizes = rows[some[0] : some[-1]], np.diff(some)
            shares = (self.weights[words] / np.repeat(sizes, sizes)).astype(np.float32)
            means[k : k + CHUNK] = sparse.csr_array((shares, words, some - some[0]), (len(sizes), len(matrix))) @ matrix

        with ThreadPoolExecutor(available_cores()) as pool:
            list(pool.map(compute, range(0, len(means), CHUNK)))
        return means

    def without(self, vectors: np.ndarray) -> np.ndarray:
        """Remove the common component from vectors [N, E], in place, and return them."""
        if self.a is not None:
            vectors -= (vectors @ self.common)[:, None] * self.common
        return vectors

    @property
    def word_vectors(self) -> Vectors:
        """The word Vectors whose plain means are these sentence vectors; write them to use SIF for other texts."""
        self.refuse_unfitted()
        return Vectors(self.vectors.words, self.without(np.asarray(self.vectors.matrix) * self.weights[:, None]))

    def encode(self, path: Any, unit: str = "line", errors: str = "strict", queries: Queries = ()) -> Encoded:
        """See DocumentVectors. SIF is estimated on the text, not on the queries."""
        rows, bounds, first_lines = self.read([path], unit, errors, queries)
        matrix = self.estimate(rows, bounds, len(bounds) - 1 - len(queries))
        return matrix, (np.diff(bounds) > 0) & matrix.any(1), first_lines

    def read(self, *text: Any) -> Read:
        """Return the rows of all words, int32 [n], the bounds of documents, int64 [N + 1], and their first lines."""
        codes, starts, first_lines = read(self.lexicon, *text)
        known, bounds = known_words(self.lexicon, codes, starts)
        return self.rows[self.lexicon.ids(codes[known])], bounds, first_lines


class FastTextSentences:
    """The sentence vectors of a fastText model, equal to its `get_sentence_vector`; for a document, its lines joined.

    vectors  the Vectors of the model
    """

    origin = 0.0

    def __init__(self, vectors: Vectors) -> None:
        self.vectors, self.lexicon, self.index = vectors, self, self

    def __contains__(self, word: str) -> bool:
        return word in self.vectors or self.vectors.composes and len(self.vectors.compose([word])) > 0

    def log_oovs(self) -> None:
        """Report nothing: words without a vector are left out."""

    def encode(self, path: Any, unit: str = "line", errors: str = "strict", queries: Queries = ()) -> Encoded:
        """See DocumentVectors."""
        every = [" ".join(words).encode() for _, words in lines(path, errors)]
        refuse_empty(path, every)
        begins = np.flatnonzero(new_documents(np.array([*map(bool, every)], bool), unit)).tolist()
        groups = [every[i:j] for i, j in itertools.pairwise([*begins, len(every)])]
        asked = [*groups, *([" ".join(query).encode()] for query in queries)]
        documents = ([b" ".join(group).split() for group in asked[k : k + CHUNK]] for k in range(0, len(asked), CHUNK))
        parts = map(self.vectors.matrix.sentences, documents)  # lists of words take 20 times the memory of their text
        matrix = np.concatenate([np.empty((0, self.vectors.dim), np.float32), *parts])
        return matrix, np.any(matrix, 1), (group[0].decode() for group in groups)


def without_resets(model: Any) -> Any:
    """Copy a model so that line ends no longer reset its state; it starts from the state after a reset."""
    config = dataclasses.replace(model.config, sentences=False, independent=False, learn_start=False, shuffle=False)
    values = dict(model.params.owners())
    if model.config.independent and not model.config.learn_start:
        values["start_hid"] = np.ones_like(values["start_hid"])
    return type(model)(model.vocab, config, values, model.starts)


def final_vectors(model: Any, documents: list[list[np.ndarray]]) -> np.ndarray:
    """Return the document vectors [n, D] after `documents`, lists of ID arrays."""
    vectors = np.tile(model.params["start_doc"], (len(documents), 1))
    for k in range(max(map(len, documents))):
        active = np.array([row for row, document in enumerate(documents) if len(document) > k])
        for columns, ids, targets in line_batches([documents[row][k] for row in active]):
            rows = active[columns]
            ids[targets < 0] = -1  # padding: leaves the state unchanged
            hidden, _, *rest = model.start(len(rows))
            _, (_, after, *_) = score(model, ids, targets, (hidden, vectors[rows][None], *rest))
            vectors[rows] = after[0]
    return vectors


def similar(
    source: Any, path: Any, unit: str, errors: str = "strict", queries: Sequence[str] = (), numbers: Sequence[int] = (),
    sample: int = 0, seed: int = 1, top: int = 3, center: bool = False,
) -> list[dict[str, Any]]:  # fmt: skip
    """Find the documents of a text with the largest cosine to each query.

    source   DocumentVectors, SentenceVectors, or FastTextSentences
    queries  sentences; one that equals a line of the text stands for that line
    numbers  numbers of documents to use as queries, from 1
    sample   number of documents to draw as further queries, with `seed`
    center   subtract the vector of a text without words from all vectors

    Returns a list of dicts: line (number; None for a sentence that is not in the text), text (of the first line), and
    similar, `top` dicts of line, cosine, and text, excluding the query. Documents without known words are neither found
    nor drawn. Raises TiedtoolsError for one in `numbers`, and if the text is too short.
    """
    typed = [WORD.findall(query) for query in queries]
    matrix, has_words, first = source.encode(path, unit, errors, typed)
    texts = list(first)
    n, kind = len(texts), "line" if unit == "line" else "document"
    pool = np.flatnonzero(has_words[:n])
    if not n:
        raise TiedtoolsError(f"{shown(path)}: no {kind}s; give a text")
    if high := [name for name, k in (("`numbers`", max(numbers, default=0)), ("`sample`", sample)) if k > n]:
        remedy = f"give a longer text, or lower {' and '.join(high)}"
        raise TiedtoolsError(f"{shown(path)}: has {counted(n, kind)}; {remedy}")
    if sample > len(pool):
        raise TiedtoolsError(f"{shown(path)}: has {counted(len(pool), kind)} with known words; lower `sample`")
    if blank := [number for number in numbers if not has_words[number - 1]]:
        raise TiedtoolsError(f"{shown(path)}: {kind} {blank[0]} has no known word; choose another")
    texts += map(" ".join, typed)
    vectors = Vectors(list(range(len(texts))), matrix - source.origin if center else matrix)
    rows = [texts.index(texts[row]) if unit == "line" else row for row in range(n, len(texts))]
    rows += [number - 1 for number in numbers]
    rows += np.random.default_rng(seed).choice(pool, sample, replace=False).tolist()
    results = []
    for row, close in zip(rows, neighbors(Candidates(vectors, n, has_words, 1), rows, top)):
        nearest = [{"line": k + 1, "cosine": cosine, "text": texts[k]} for k, cosine in close]
        results.append({"line": row + 1 if row < n else None, "text": texts[row], "similar": nearest})
    return results
