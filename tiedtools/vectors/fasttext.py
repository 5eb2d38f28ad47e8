"""Models of fastText (.bin, .ftz, versions 11 and 12), of which only the dictionary is held in memory.

The vector of a word is the mean of its row in the input matrix and of the rows of its character n-grams (Bojanowski et
al. 2017). Layout: a header, the dictionary, pairs of n-gram and row if the model was pruned, and the input and the
output matrix, each after a byte that is 1 if it is quantized (Joulin et al. 2016). Shapes: V words, E dimensions.
"""

import collections
import os
import struct
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted, unreadable
from tiedtools.kernels.text import fasttext as kernels
from tiedtools.vectors.ngrams import Computed, average
from tiedtools.vectors.norms import Matrix, blocks, finite_rows, unit
from tiedtools.vectors.quantized import Quantized
from tiedtools.vectors.rows import Rows, not_finite

MAX_E, MAX_N = 1 << 20, 100  # limits on the dimension and on the length of an n-gram
FEW = 1 << 14  # rows that are read one by one; more are read from the mapped file, which takes memory by the page
ROOM = 1 << 24  # maximum number of rows in a list
SUPERVISED = 3
LABEL = b"__label__"
HEADER = struct.Struct("<14id3i2q")
PROBLEMS = "", "has no end", "is not a word, a count, and a type", "repeats a word"  # see `parse` of the kernels
# The header in its order, with fastText's names and defaults for vectors without n-grams. loss 1: hierarchical softmax,
# 2: negative sampling, 3: softmax, 4: one versus all; model 1: CBOW, 2: skip-gram, 3: supervised; pruned: number of
# n-grams with a row, or -1: all.
Header = collections.namedtuple(
    "Header",
    "magic version dim ws epoch min_count neg word_ngrams loss model bucket minn maxn lr_update_rate t size nwords"
    " nlabels ntokens pruned",
    defaults=[793712314, 12, 0, 5, 5, 1, 5, 1, 2, 2, 0, 0, 0, 100, 1e-4, 0, 0, 0, 0, -1],
)


class Dense:
    """A float32 matrix [m, n] of a model, at any address of the mapped file."""

    def __init__(self, data: Any, at: int, E: int, descriptor: int) -> None:
        m, n = self.shape = struct.unpack_from("<qq", data, at)
        check(0 <= m and n == E and 4 * m * n <= data.size - at - 16, f"a matrix of {m} by {n} numbers")
        self.at, self.end, self.descriptor = at + 16, at + 16 + 4 * m * n, descriptor
        self.raw = np.asarray(data[self.at : self.end]).reshape(m, 4 * n)

    def read(self, rows: Matrix) -> Matrix:
        """Return the bytes of some rows, uint8 [k, 4 n]."""
        width = self.raw.shape[1]
        pieces = (os.pread(self.descriptor, width, self.at + width * row) for row in rows.tolist())
        return np.frombuffer(b"".join(pieces), np.uint8).reshape(-1, width)

    def __getitem__(self, rows: Any) -> Matrix:
        """Return rows as float32."""
        return np.ascontiguousarray(self.raw[rows]).view("<f4")


class FastText(Computed):
    """The vectors of a model's words as an array (V, E), float32, whose rows are computed when they are indexed.

    words   the words, a sequence of str; words.rows maps each to its row
    errors  how to decode words, as in bytes.decode
    strict  whether a value that is not finite is an error

    Raises TiedtoolsError if the file is damaged.
    """

    strict = True

    def __init__(self, path: str, errors: str = "strict") -> None:
        self.path, self.errors = path, errors
        try:
            self.descriptor = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self.descriptor)
            self.data: Any = np.asarray(np.memmap(path, np.uint8, "r"))
            self.parse()
        except OSError as error:
            raise unreadable(path, error) from None
        except (struct.error, ValueError) as error:
            remedy = "get the whole file, as fastText wrote it"
            raise TiedtoolsError(f"{path}: is not a whole fastText model: {error}; {remedy}") from None
        self.words = Words(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the file itself."""
        return FastText, (self.path, self.errors.removeprefix("tiedtools-")), dict(strict=self.strict)

    def parse(self) -> None:
        """Parse all but the matrices. Raises ValueError or struct.error if a part is impossible."""
        data = self.data
        self.header = h = Header(*HEADER.unpack_from(data))
        check(h.version in (11, 12), f"version {h.version}")
        check(0 < h.dim <= MAX_E, f"{h.dim} dimensions")
        check(h.bucket >= 0 and 0 <= h.maxn <= MAX_N, f"n-grams of {h.maxn} characters in {h.bucket} buckets")
        check(0 < h.nwords <= h.size == h.nwords + h.nlabels, f"{h.nwords} words and {h.nlabels} labels of {h.size}")
        check(h.size * kernels.TAIL < data.size, f"the file ends before {h.size} words")
        self.supervised = h.model == SUPERVISED
        self.maxn = 0 if h.version < 12 and self.supervised or not h.bucket else h.maxn
        self.shape = V, _ = h.nwords, h.dim
        self.starts = np.full(h.size + 1, HEADER.size)
        self.table = np.zeros(1 << (2 * h.size).bit_length(), np.int32)
        status, entry = kernels.parse(self.starts, self.table, data, V)
        check(status == kernels.PARSED, f"entry {entry + 1} of its dictionary {PROBLEMS[status]}")
        at, pairs = int(self.starts[-1]), max(h.pruned, 0)
        check(-1 <= h.pruned and 8 * pairs <= data.size - at, f"{h.pruned} n-grams with rows")
        ids = data[at : at + 8 * pairs].copy().view("<i4").reshape(-1, 2)
        self.kept, self.kept_rows = np.vstack([[(-1, 0)], ids[np.argsort(ids[:, 0])]]).T  # the first has no n-gram
        check((np.diff(self.kept) > 0).all() and self.kept[-1] <= max(h.bucket - 1, 0), "n-grams out of range")
        check(self.kept_rows.min() >= 0 and self.kept_rows.max() <= max(pairs - 1, 0), "rows of n-grams out of range")
        self.inputs = self.matrix(at + 8 * pairs)
        rows = V + (h.bucket if h.pruned < 0 else pairs)
        check(self.inputs.shape[0] == rows, f"a matrix of {self.inputs.shape[0]} rows, not {rows}")
        self.outputs = self.matrix(self.inputs.end, isinstance(self.inputs, Quantized))
        check(self.outputs.end == data.size, f"{data.size - self.outputs.end:,} bytes follow its end")

    def matrix(self, at: int, may_be_quantized: bool = True) -> Dense | Quantized:
        """Return the matrix at an address."""
        flag = struct.unpack_from("<B", self.data, at)[0]
        check(flag < 2, f"a matrix of type {flag}")
        if flag and may_be_quantized:
            return Quantized.parse(self.data, at + 1, self.header.dim)
        return Dense(self.data, at + 1, self.header.dim, self.descriptor)

    def computed(self, ids: Matrix) -> Matrix:
        starts, stops = self.starts[ids], self.starts[ids + 1] - kernels.TAIL
        if len(ids) > 1 and self.maxn * int((stops - starts).sum()) > ROOM:  # long words
            return np.concatenate([self.computed(half) for half in np.array_split(ids, 2)])
        return self.checked(self.vectors(*self.subwords(ids, self.data, starts, stops)), ids)

    def checked(self, vectors: Matrix, ids: Matrix, words: Sequence[Any] = ()) -> Matrix:
        """Return vectors of the rows `ids` or of `words`; if `strict`, raises TiedtoolsError for nan and infinity."""
        if self.strict and not (finite := np.isfinite(vectors).all(1)).all():
            k = int(finite.argmin())
            where, word = ("", words[k]) if words else (f" row {ids[k] + 1}:", self.words[ids[k]])
            raise TiedtoolsError(f"{self.path}:{where} {'; '.join(not_finite(word))}")
        return vectors

    def word(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.starts[row + 1] - kernels.TAIL].tobytes()

    def subwords(self, ids: Matrix, text: Matrix, starts: Matrix, stops: Matrix) -> tuple[Matrix, Matrix]:
        """Return (rows, ends) of the words text[starts[n]:stops[n]]; see `subwords` of the kernels."""
        h, room = self.header, len(ids) + self.maxn * int((stops - starts + 2).sum())
        rows, ends = np.empty(room, np.int64), np.empty(len(ids), np.int64)
        kernels.subwords(rows, ends, ids, text, starts, stops, h.nwords, h.minn, self.maxn, h.bucket)
        return self.with_rows(rows[: ends.max(initial=0)], ends)

    def with_rows(self, rows: Matrix, ends: Matrix) -> tuple[Matrix, Matrix]:
        """Leave out the n-grams that a pruned model has no row for."""
        if self.header.pruned < 0:
            return rows, ends
        V = self.header.nwords
        at = np.minimum(np.searchsorted(self.kept, rows - V), len(self.kept) - 1)
        has_row = (rows < V) | (self.kept[at] == rows - V)
        return np.where(rows < V, rows, V + self.kept_rows[at])[has_row], np.append(0, np.cumsum(has_row))[ends]

    def vectors(self, rows: Matrix, ends: Matrix) -> Matrix:
        """Average rows of the input matrix: float32 (len(ends), E); see `average` of the kernels."""
        if isinstance(self.inputs, Dense) and len(rows) > FEW:
            return average(self.inputs.raw, rows, ends)
        needed, rows = np.unique(rows, return_inverse=True)
        return average(self.inputs.read(needed), rows, ends)

    def look_up(self, words: Sequence[bytes]) -> tuple[Matrix, Matrix, tuple[Matrix, Matrix, Matrix]]:
        """Return (ids, hashes, (text, starts, stops)) of words; ids are -1 of unknown words, V or more of labels."""
        lengths = np.array([len(word) for word in words], np.int64)
        text, stops = np.frombuffer(b"".join(words) + b"\0", np.uint8), np.cumsum(lengths)
        ids, hashes = np.empty(len(words), np.int64), np.empty(len(words), np.uint64)
        kernels.find(ids, hashes, text, stops - lengths, stops, self.table, self.data, self.starts)
        return ids, hashes, (text, stops - lengths, stops)

    def compose(self, words: Sequence[str]) -> tuple[list[str], Matrix]:
        """Return the words that have n-grams, and their vectors, composed from these if the word is unknown.

        An unknown word whose n-grams all have zeros, the rows of buckets that were never trained, is left out.
        """
        ids, _, spans = self.look_up([word.encode("utf-8", "surrogatepass") for word in words])
        rows, ends = self.subwords(ids, *spans)
        vectors = self.checked(self.vectors(rows, ends), ids, words)
        composed = (np.diff(ends, prepend=0) > 0) & ((ids >= 0) | vectors.any(1))
        return [word for word, has in zip(words, composed) if has], vectors[composed]

    @property
    def has_ngrams(self) -> bool:  # type: ignore[override]
        """Whether vectors of unknown words can be composed."""
        return self.maxn > 0 and self.header.pruned != 0

    def counts(self, rows: Any = slice(None)) -> Matrix:
        """Return how often the words of some rows occur in the training text, int64 (rows,)."""
        tails = self.starts[1 : len(self) + 1][rows][:, None] - kernels.TAIL + np.arange(1, 9)
        return self.data[tails].view("<i8")[:, 0]

    def sentences(self, lines: Sequence[Sequence[bytes]]) -> Matrix:
        """Return the vectors of lines of words, float32 (len(lines), E), as fastText's `get_sentence_vector`.

        The mean of the words' unit vectors, without zero vectors; or, of a supervised model, the mean of the rows of
        all words, the line's end, their n-grams, and the word n-grams, without labels.
        """
        if self.supervised:
            parts = [self.line_rows([*line, b"</s>"]) for line in lines]
            return self.vectors(np.concatenate(parts), np.cumsum([len(rows) for rows in parts]))
        words = {word: k for k, word in enumerate(dict.fromkeys(word for line in lines for word in line))}
        ids, _, spans = self.look_up(list(words))
        units = unit(self.checked(self.vectors(*self.subwords(ids, *spans)), ids, [*words]))
        nonzero: Any = units.any(1)
        rows = [np.array([k for k in map(words.__getitem__, line) if nonzero[k]], np.int64) for line in lines]
        return average(units.view(np.uint8), np.concatenate(rows), np.cumsum([len(row) for row in rows]))

    def line_rows(self, line: list[bytes]) -> Matrix:
        """Return the rows of a line for a supervised model, which begins and ends with the first `</s>`."""
        line = line[: line.index(b"</s>") + 1]
        V, n, bucket = self.header.nwords, self.header.word_ngrams, np.uint64(self.header.bucket)
        ids, hashes, spans = self.look_up(line)
        words = np.array([k < V and not (k < 0 and word.startswith(LABEL)) for k, word in zip(ids, line)], bool)
        rows, _ = self.subwords(ids[words], spans[0], *(bounds[words] for bounds in spans[1:]))
        h = hashes = hashes[words].astype(np.int32).astype(np.uint64)  # 32 bits, extended by their sign
        ngrams = []
        for length in range(1, min(n, len(hashes)) if bucket else 0):
            h = h[:-1] * np.uint64(116049371) + hashes[length:]
            ngrams.append(self.with_rows((h % bucket).astype(np.int64) + V, np.empty(0, np.int64))[0])
        return np.concatenate([rows, *ngrams])


class Words(Sequence[str]):
    """The words of a model, decoded when they are indexed; `rows` maps each to its row."""

    def __init__(self, model: FastText) -> None:
        self.model, self.rows = model, Index(model, self)

    def __len__(self) -> int:
        return len(self.model)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[row] for row in range(*key.indices(len(self)))]
        row = range(len(self))[key]
        model, word = self.model, self.model.word(row)
        try:
            return word.decode("utf-8", model.errors)
        except UnicodeDecodeError:
            remedy = "if the file is undamaged, read it with `errors='replace'`"
            problem = f"the word {quoted(word)} is not UTF-8"
            raise TiedtoolsError(f"{model.path}: row {row + 1}: {problem}; {remedy}") from None


class Index(Mapping[str, int]):
    """The row of each word of a model, looked up in its hash table."""

    def __init__(self, model: FastText, words: Words) -> None:
        self.model, self.words = model, words

    def __getitem__(self, word: str) -> int:
        row = self.model.look_up([word.encode("utf-8", "surrogatepass")])[0][0] if isinstance(word, str) else -1
        if not 0 <= row < len(self.model):
            raise KeyError(word)
        return int(row)

    def __iter__(self) -> Any:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.model)

    def values(self) -> Any:
        return range(len(self))  # not a look-up for each word


def read(rows: Rows, format: str | None = None) -> None:
    """Read the vectors of a model's words into Rows; they are not computed yet, except to skip bad rows."""
    model = FastText(rows.path, rows.errors)
    rows.format, rows.words, rows.matrix = "fasttext", model.words, model  # type: ignore[assignment]
    if rows.skip:
        model.strict, rows.words = False, []
        rows.begin(*model.shape)
        for start, numbers in blocks(model):
            room = rows.room(len(numbers))
            room[:] = numbers
            rows.add([model.word(start + k) for k in range(len(numbers))], room, ": row ", start + 1)
        if len(rows.words) == len(model) and finite_rows(rows.matrix).all():  # nothing to skip
            rows.words, rows.matrix, model.strict = model.words, model, True  # type: ignore[assignment]


def check(right: Any, problem: str) -> None:
    """Raise ValueError for a part of a file that is impossible."""
    if not right:
        raise ValueError(problem)
