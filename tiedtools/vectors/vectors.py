"""The Vectors class, words and a matrix of their vectors, with readers and writers for common formats."""

import contextlib
import html
import os
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast

import numpy as np

from tiedtools.base.errors import Contradiction, Mistyped, TiedtoolsError, UnknownWord, library, printable, quoted
from tiedtools.base.settings import Range, checked, one_of
from tiedtools.files import modelfile
from tiedtools.files.output import open_packed, split_compression
from tiedtools.text.sources import Path, counted, refuse_missing, word_errors
from tiedtools.vectors import formats, matrixfiles, neighbors, staticfolder, streams
from tiedtools.vectors.counts import word_counts
from tiedtools.vectors.formats import DTYPES, FOLDER, FORMATS, format_by_name
from tiedtools.vectors.gensimnames import GensimNames, Ranked, listed
from tiedtools.vectors.modelvectors import WHICH, find_model, read_model
from tiedtools.vectors.modelvectors import files_read as files_read
from tiedtools.vectors.norms import Matrix, first_rows, unit
from tiedtools.vectors.rows import Rows, stored_type

Terms = str | Matrix | Iterable[str | Matrix]  # words and vectors
WORDS_SHOWN, NUMBERS_SHOWN = 10, 6  # in notebooks
UNNAMED = re.compile(r"(\.\d+[Bd]?)?")  # no extension, or the end of a name such as glove.6B.50d


@dataclass(eq=False, repr=False)
class Vectors(GensimNames):
    """Word vectors: `words`, a list of V str, and `matrix` (V, E), whose row r is the vector of words[r].

    The matrix is float32, or float16 if that is its type in a file or array. Words may repeat. `np.asarray(vectors)` is
    the matrix. Raises ValueError if the sizes differ. The words and the matrix of a fastText model are a sequence and
    an array that are computed when they are indexed; `list` and `numpy.asarray` compute all of them.
    """

    words: Any
    matrix: Any

    def __post_init__(self) -> None:
        if not (isinstance(self.words, list) or hasattr(self.matrix, "has_ngrams")):
            self.words = list(self.words)
        if not hasattr(self.matrix, "has_ngrams"):
            self.matrix = np.asarray(self.matrix)
            self.matrix = np.asarray(self.matrix, stored_type(self.matrix))
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ValueError(f"{len(self.words)} words do not match a matrix of shape {self.matrix.shape}")

    @cached_property
    def index(self) -> Mapping[Any, int]:
        """Mapping: word -> row; the first row of a repeated word."""
        return cast(Mapping[Any, int], getattr(self.words, "rows", None) or first_rows(self.words))

    @cached_property
    def counts(self) -> Matrix | None:
        """Counts of the words in the training text, int64 [V], from the model or the file; None if unknown."""
        return self.words.model.counts() if hasattr(self.words, "model") else None  # of fastText; see `read`

    @property
    def dim(self) -> int:
        """The dimension E of the vectors."""
        return int(self.matrix.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (V, E) of the matrix."""
        return len(self), self.dim

    def __repr__(self) -> str:
        first = printable(", ".join(map(str, self.words[:WORDS_SHOWN])))
        first = first if len(self) <= WORDS_SHOWN and len(first) <= 120 else f"{first[:120]}, ..."
        return f"<Vectors: {counted(len(self), 'word')}, {counted(self.dim, 'dimension')}: {first}>"

    def _repr_html_(self) -> str:
        """Return a table of the first words and numbers, for notebooks."""
        more = "<td>...</td>" * (self.dim > NUMBERS_SHOWN)
        rows = (
            f"<tr><th>{html.escape(printable(str(word)))}</th>{''.join(f'<td>{x:.3f}</td>' for x in row)}{more}</tr>"
            for word, row in zip(self.words[:WORDS_SHOWN], np.asarray(self.matrix[:WORDS_SHOWN])[:, :NUMBERS_SHOWN])
        )
        return f"<table><caption>{html.escape(repr(self))}</caption>{''.join(rows)}</table>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        return np.asarray(self.matrix, dtype) if copy is None else np.array(self.matrix, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the words."""
        return iter(self.words)

    def __getitem__(self, word: Any) -> Any:
        """Return the word's vector (E,), float32, not writable. Raises KeyError for an unknown word.

        An iterable of n words returns a new matrix (n, E); a slice of rows, such as [:1000], returns Vectors.
        """
        if isinstance(word, slice):
            return self.take(word)
        if isinstance(word, Iterable) and not isinstance(word, str | bytes):
            return np.asarray(self.matrix[[self.row(each) for each in word]], np.float32)
        return fixed(np.asarray(self.matrix[self.row(word)], np.float32))

    def items(self) -> Iterator[tuple[Any, Matrix]]:
        """Iterate over (word, vector); vectors are not writable."""
        return zip(self.words, map(fixed, self.matrix))

    def take(self, rows: Any) -> "Vectors":
        """Return the Vectors in a list or slice of rows, with their counts."""
        words = self.words[rows] if isinstance(rows, slice) else [self.words[row] for row in rows]
        vectors = type(self)(words, self.matrix[rows])
        if hasattr(self.matrix, "counts"):  # a fastText model reads those of some rows
            vectors.counts = self.matrix.counts(rows)
        else:
            vectors.counts = None if self.counts is None else self.counts[rows]
        return vectors

    def restrict(self, words: int | np.integer[Any] | Iterable[str]) -> "Vectors":
        """Return the Vectors of the first `words` words, or of these words, without repeated and unknown ones."""
        if isinstance(words, int | np.integer):
            return self.take(slice(checked("words", words, int, Range(0))))
        if not isinstance(words, Iterable):
            raise Mistyped(f"`words={words!r}` is neither a number nor an iterable of words; give one")
        return self.take([self.index[word] for word in dict.fromkeys(listed(words)) if word in self.index])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per word. Raises TiedtoolsError if pandas is not installed."""
        return library("pandas", "conversion needs pandas").DataFrame(np.asarray(self), index=list(self.words))

    def row(self, word: str) -> int:
        """Return the row of a word. Raises KeyError for an unknown word."""
        try:
            return self.index[word]
        except KeyError:
            raise UnknownWord(f"no vector for {word!r}; `word in vectors` checks") from None

    def joined(self, others: "Vectors") -> "Vectors":
        """Return these vectors followed by the vectors of `others`, whose counts are 0."""
        if not len(others):
            return self
        if self.dim != others.dim:
            what = f"vectors of {self.dim} and of {others.dim} dimensions cannot be joined"
            raise TiedtoolsError(f"{what}; train both with one size")
        both = Vectors([*self.words, *others.words], np.concatenate([self.matrix, others.matrix]))
        both.counts = None if self.counts is None else np.append(self.counts, np.zeros(len(others), np.int64))
        return both

    @property
    def composes(self) -> bool:
        """Whether `compose` returns vectors of unknown words: models with n-grams, of fastText or `tiedtools w2v`."""
        return getattr(self.matrix, "has_ngrams", False)

    def compose(self, words: Iterable[str]) -> "Vectors":
        """Return the vectors of words, those of unknown words composed from their character n-grams.

        Words without a known n-gram are left out. Raises TiedtoolsError unless these are vectors of such a model.
        """
        if not self.composes:
            remedy = "read a model with n-grams, of fastText (.bin, .ftz) or `tiedtools w2v`"
            raise TiedtoolsError(f"these Vectors do not compose words; {remedy}")
        return Vectors(*self.matrix.compose(listed(words)))

    def most_similar(
        self, positive: Terms | None = (), negative: Terms | None = (), topn: int = 10, *, restrict: int | None = None,
        restrict_vocab: int | None = None
    ) -> Ranked:  # fmt: skip
        """List the `topn` words nearest to a sum of words, as (word, cosine), nearest first; these words are excluded.

        positive, negative  words to add and to subtract, each at length 1: a word, a vector (E,), or a list of these
        restrict            consider only the first `restrict` words; gensim's restrict_vocab is the same

        Raises KeyError for an unknown word, and TypeError for anything that is neither a word nor a vector.
        """
        if None not in (restrict, restrict_vocab):
            raise Mistyped("`restrict` and `restrict_vocab` are the same; give one")
        topn, restrict = limits(topn, restrict if restrict_vocab is None else restrict_vocab)
        signed = [(term, sign) for terms, sign in ((positive, 1), (negative, -1)) for term in as_terms(terms)]
        if not signed:
            return []
        candidates, signs = neighbors.Candidates(self, restrict), np.array([sign for _, sign in signed], np.float32)
        terms = unit(np.stack([self.vector_of(term) for term, _ in signed]))
        banned = [candidates.index[term] for term, _ in signed if isinstance(term, str)]
        return candidates.best(unit(signs @ terms[None]), [banned], topn)[0]

    def vector_of(self, term: str | Matrix) -> Matrix:
        """Return the vector (E,) of a word, or the vector itself. Raises TypeError if it is neither."""
        if isinstance(term, str):
            return self[term]  # type: ignore[no-any-return]
        with contextlib.suppress(TypeError, ValueError):
            vector: Matrix = np.asarray(term)
            if vector.shape == (self.dim,) and vector.dtype.kind in "fiu":
                return vector
        raise Mistyped(f"expected a word or a vector of {self.dim} numbers, found {quoted(term)}")

    def similarity(self, word: str, other: str) -> float:
        """Return the cosine of two words, a float. Raises KeyError for an unknown word."""
        a, b = unit(self.matrix[[self.row(word), self.row(other)]])
        return float(np.clip(a @ b, -1, 1))

    def analogy(
        self, a: str, b: str, c: str, topn: int = 10, method: str = "add", restrict: int | None = None
    ) -> Ranked:
        """List the `topn` best answers to "a is to b as c is to which word?", as (word, score), best first.

        method    "add": 3CosAdd; "mul": 3CosMul (Levy and Goldberg 2014)
        restrict  consider only the first `restrict` words

        Raises KeyError for an unknown word.
        """
        one_of("method", method, neighbors.METHODS)
        topn, restrict = limits(topn, restrict)
        for word in (a, b, c):
            self.row(word)
        answers: Ranked = neighbors.analogies(neighbors.Candidates(self, restrict), [(a, b, c)], topn, method)[0]
        return answers

    @classmethod
    def of(cls, words: list[Any], which: str, emb_in: Matrix, emb_out: Matrix) -> "Vectors":
        """Combine input and output vectors; `which` is "in", "out", "sum", or "concat" (side by side).

        Raises TiedtoolsError for a sum of vectors of different dimensions.
        """
        if which == "sum" and emb_in.shape != emb_out.shape:
            raise TiedtoolsError("input and output vectors of different dimensions cannot be added; use one of them")
        if which == "concat":
            return cls(words, np.concatenate([emb_in, emb_out], 1))
        return cls(words, emb_in + emb_out if which == "sum" else emb_out if which == "out" else emb_in)

    @classmethod
    def read(
        cls, path: Path, format: str | None = None, errors: str = "strict", skip_bad: bool | None = False
    ) -> "Vectors":
        """Read vectors from `path`; `-` is standard input, and .gz .bz2 .xz .zst are decompressed.

        "MODEL" or "MODEL:in" reads the input vectors of a model file, "MODEL:out" the output vectors, "MODEL:sum"
        their sum, and "MODEL:source" the source vectors of a translation model; see `find_model`.

        format  one of FORMATS; None: a folder is model2vec's; .npy, .safetensors, and .tsv by extension, others by the
                first bytes or line. A first line of exactly two integers is a word2vec header. Model files are always
                detected, and .tsv files with words in the first column, as StarSpace writes them.
        errors  how to decode a word that is not UTF-8: "strict", "replace", or "ignore", as in bytes.decode
        skip_bad  skip lines and rows that cannot be read, and log their number and the first; a contradiction of the
                header is logged, too. None: do not, and suggest `tiedtools convert` in messages

        Raises TiedtoolsError naming the path and line or row: no data is silently repaired or skipped.
        """
        path = os.fspath(path)
        if format is not None:
            one_of("format", format, FORMATS)
        with word_errors(path, errors) as errors:
            rows = Rows(path, errors, skip_bad)
            if model := find_model(path):
                rows.words, rows.matrix = read_model(*model)
            else:
                formats.read(rows, format)
        vectors = cls(*rows.result())
        if not hasattr(vectors.words, "model"):
            vectors.counts = word_counts(path, vectors.words)  # now: the files may be replaced later
        return vectors

    def write_stream(self, file: BinaryIO, format: str, **options: Any) -> None:
        """Write a format to a binary file object; of a format of two files, the matrix.

        Numbers of text have six decimals, or nine significant digits where six decimals are too few; see
        docs/formats.md. Raises TiedtoolsError, before writing, if a word or a value cannot be written.
        """
        streams.check_writable(self.words, self.matrix, format)
        words = () if FORMATS[format].two_files else (self.words,)
        pkgutil.resolve_name(FORMATS[format].write)(file, *words, self.matrix, **options)

    def write(self, path: Path, format: str | None = None, dtype: str = "float32", quantize: bool = False) -> None:
        """Write to `path`; `-` is standard output, and .gz .bz2 .xz .zst are compressed.

        format  one of FORMATS; None: by extension; text without an extension, or with a number
                as in glove.6B.50d; a path that ends in / is a folder for model2vec
        dtype   "float32" or, in .npy, .safetensors, and model2vec's folders, "float16"
        quantize  write a quantized model of fastText (.ftz), which takes a tenth of the space at 300 dimensions

        Raises TiedtoolsError, also for another extension, and if a format of two files (see
        tiedtools.vectors.matrixfiles) is to be compressed or written to standard output.
        """
        path = os.fspath(path)
        format = format_of(path, format, dtype, quantize, ", or choose `format`")
        if FORMATS[format].two_files:
            matrixfiles.write(path, self.words, self.matrix, format, dtype)
        elif format == FOLDER:
            staticfolder.write(path, self.words, self.matrix, dtype)
        else:
            with open_packed(path) as file:
                model = format == "fasttext"
                self.write_stream(file, format, **dict(quantized=quantize, counts=self.counts) if model else {})


def fixed(vector: Matrix) -> Matrix:
    """Return a view that is not writable: a vector may be a row of a model's parameters."""
    view = vector.view()
    view.flags.writeable = False
    return view


def as_terms(terms: Terms | None) -> list[Any]:
    """Return a list of words and vectors from a single one, an iterable of them, or None: no terms, as in gensim."""
    if terms is None:
        return []
    one = isinstance(terms, str | bytes) or not hasattr(terms, "__iter__")
    one = one or isinstance(terms, np.ndarray) and (terms.ndim == 0 or terms.ndim == 1 and terms.dtype.kind in "fiu")
    return [terms] if one else list(terms)


def limits(topn: int, restrict: int | None) -> list[Any]:
    """Validate and return the limits of a query."""
    return [checked("topn", topn, int, Range(0)), checked("restrict", restrict, int | None, Range(1))]


def format_of(
    path: str, format: str | None = None, dtype: str = "float32", quantize: bool = False, more: str = ""
) -> str:  # fmt: skip
    """Return the format of vectors written to `path`, as Vectors.write chooses it; `more`: added to a remedy.

    Raises Contradiction if the file would be read as something else, the extension is unknown, the format has no
    numbers of type `dtype`, or only one of format and name is that of a quantized file.
    """
    match = WHICH.fullmatch(path)
    if path.endswith(".npz") or match and modelfile.is_model(match[1]):
        raise Contradiction(f"{path}: would be read as a model file; choose another name for vectors")
    stem, compression = split_compression(path)
    extension = os.path.splitext(stem)[1]
    written = formats.extensions()
    if format is None and format_by_name(path) == FOLDER:
        format = FOLDER
    if format is None and extension not in written and not UNNAMED.fullmatch(extension):
        raise Contradiction(f"{path}: unknown extension {extension}; use {', '.join(written)}, or none for text{more}")
    format = format or written.get(extension, "text")
    one_of("format", format, FORMATS)
    one_of("dtype", dtype, DTYPES)
    if dtype not in FORMATS[format].dtypes:
        others = ", ".join(name for name, other in FORMATS.items() if dtype in other.dtypes)
        raise Contradiction(f"`dtype={dtype}`: format {format} has only float32; choose one of {others}")
    two_files = FORMATS[format].two_files
    if compression and (two_files or format == "fasttext"):
        raise Contradiction(f"{path}: format {format} is not compressed; remove the last extension")
    if quantize and format != "fasttext":
        raise Contradiction(f"{path}: only models of fastText are quantized; choose a name that ends in .ftz")
    if extension == ".ftz" and not quantize:
        raise Contradiction(f"{path}: .ftz is for quantized vectors; give `quantize`, or `format=fasttext` and .bin")
    named = format_by_name(path) or format
    if named != format and not two_files and format != FOLDER:  # the former add their extension
        raise Contradiction(f"{path}: would be read as {named}, but is {format}; choose another name or format")
    return format


def files_written(path: str, format: str) -> list[str]:
    """Return the paths that `Vectors.write` writes; of a folder, only that of the matrix.

    Raises Contradiction for a format that cannot be written to standard output.
    """
    if format == FOLDER:
        return [os.path.join(path, "model.safetensors")]
    return [*matrixfiles.paths(path, format)] if FORMATS[format].two_files else [path]


def refuse_absent(paths: Iterable[str], format: str | None = None) -> None:
    """Raise TiedtoolsError if one of several vector files, or folders, does not exist, before the first is read."""
    refuse_missing([file for path in paths for file in ([path] if os.path.isdir(path) else files_read(path, format))])


def trained_format(path: str | None, binary: bool = False, two_files: bool = True) -> str:
    """Return the format in which a run writes vectors to `path`: by extension, else text or binary.

    Raises Contradiction for the name of a model or of a folder, and of a format of two files unless `two_files`.
    """
    extension, stem = os.path.splitext(path or "")[1], split_compression(path or "")[0]
    named = format_by_name(path or "")
    if stem != path and (other := format_by_name(stem)) and FORMATS[other].two_files:
        raise Contradiction(f"`output` {path}: format {other} is not compressed; name {stem}, or a text file")
    if binary and named:
        raise Contradiction(f"`output` {path}: is in the format {named}; omit `binary`, or choose another name")
    format = named or ("binary" if binary else "text")
    kept = {".npz": "models", ".ftz": "quantized vectors"}.get(extension)
    if kept or format == FOLDER or FORMATS[format].two_files and not two_files:
        other = "choose another name" + (f", {extension} is for {kept}" if kept else "")
        if format == FOLDER:
            other = f"name a file in the folder, such as {os.path.join(path or '', 'vectors.txt')}"
        raise Contradiction(f"`output` {path}: would be read as {extension or format}; {other}")
    return format
