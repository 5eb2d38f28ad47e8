"""Collect the rows of a vector file, and the lines and rows that cannot be read; recognize files of other formats."""

import contextlib
import re
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError, printable, quoted
from tiedtools.base.messages import log
from tiedtools.files.modelfile import MAGIC, RNNLM_MAGIC, first_bytes
from tiedtools.text.sources import TAR, counted, is_tar, shown
from tiedtools.vectors.norms import Matrix, finite_rows

FASTTEXT = b"\xba\x16\x4f\x2f"
# A pickle may continue with the header of a frame, and then names the class of the saved object.
PICKLE = re.compile(rb"\x80[\x02-\x05].{0,20}?gensim\.models\.\w+\W+(\w+)|\x80[\x02-\x05]", re.DOTALL)
ROW, WHOLE, FATAL = "a row", "a number of rows", "the whole file"  # the extent of a problem


class Rows:
    """Words and vectors of a file; a reader fills them, and reports problems, which raise errors or are skipped.

    A reader either calls `begin` and then, for each block of rows, `room` and `add`, or it calls `whole` once. The
    subclass Check of check.py collects the problems instead, and inspects the rows without storing them.

    path    path of the file; `-` is standard input
    errors  how to decode words, as in bytes.decode
    skip    whether to skip bad rows; None: no, and messages suggest `tiedtools convert`, which can
    E       dimension
    tabs    whether tabs separate the fields of a text
    """

    tabs = False

    def __init__(self, path: str, errors: str = "strict", skip: bool | None = None) -> None:
        self.path, self.errors, self.skip = path, errors, skip
        self.words: list[Any] = []
        self.matrix: Matrix = np.empty((0, 0), np.float32)
        self.format: str | None = None
        self.V: float = 0
        self.E: Any = None
        self.skipped = 0
        self.first: TiedtoolsError | None = None
        self.others: list[TiedtoolsError] = []

    def problem(
        self, position: str, what: str, remedy: str, kind: str = "unreadable", level: str = ROW, path: str | None = None
    ) -> None:
        """Report a problem; the message is "PATH POSITION: WHAT; REMEDY".

        position  ":LINE", ": row ROW", or "", in the file `path`; None: the path of these Rows
        kind      heading under which `tiedtools check` lists the problem; "": not listed; see `oddity`
        level     with `skip`, a bad ROW is skipped, and a wrong number of rows (WHOLE) is only logged; or FATAL
        """
        error = TiedtoolsError(f"{shown(path or self.path)}{position}: {what}; {remedy}")
        if level is FATAL or not self.skip:
            skipping = "`tiedtools convert --skip-bad`" if self.skip is None else "`skip_bad`"
            raise TiedtoolsError(f"{error}{f', or skip it with {skipping}' * (level is ROW)}") from None
        if level is WHOLE:
            self.others.append(error)
        else:
            self.first = self.first or error
            self.skipped += 1

    @property
    def replacing(self) -> str:
        """The remedy for words that are not UTF-8."""
        return "read it with " + ("`tiedtools convert --errors replace`" if self.skip is None else "`errors='replace'`")

    def oddity(self, kind: str, position: str, what: str) -> None:
        """Report a problem that only `tiedtools check` lists."""

    def recognize(self, reader: Any) -> bool:
        """Return whether a stream may have vectors. Raises TiedtoolsError if it has another known format.

        reader  the VectorReader of the stream; it has read the first line
        """
        if problem := foreign("FILE" if self.path == "-" else printable(shown(self.path)), reader.rest):
            raise TiedtoolsError(f"{shown(self.path)}: {problem}")
        return True

    def dimension(self, common: int, first: int) -> int:
        """Return the dimension of the rows of a text, or 0 if it has none.

        common, first  the most common dimension among the first rows, and the dimension of the first row; 0: none
        """
        return self.E or common or first

    def block(self, text: bytes, first: int) -> None:
        """Inspect a block of whole lines; `first` is the number of its first line."""

    def begin(self, V: float, E: int) -> None:
        """Prepare for V rows, or infinitely many, of E numbers."""
        self.V, self.E = V, E
        self.matrix = np.empty((0, E), np.float32)

    def room(self, n: int) -> Matrix:
        """Return an array for the numbers of the next n rows, valid until the next call.

        The matrix grows by an eighth at a time as rows are read, even if the header gives a larger word count: memory
        stays within 9/8 of the rows.
        """
        done = len(self.words)
        if done + n > len(self.matrix):
            # Resize in place: the allocator remaps the pages of large blocks instead of copying them.
            rows = max(done + n, int(min(len(self.matrix) * 9 // 8, self.V)))
            self.matrix.resize((rows, self.E), refcheck=False)
        return self.matrix[done : done + n]

    def add(self, words: list[bytes], numbers: Matrix, place: str, number: int) -> None:
        """Add rows: words as bytes, and their numbers, the beginning of the array from `room`.

        place, number  position of the first row: ":" and its line number, or ": row " and its row number
        """
        done = len(self.words)
        with contextlib.suppress(UnicodeDecodeError):  # all words at once, unless one is invalid
            decoded = b"\n".join(words).decode().split("\n")
            if len(decoded) == len(words) and all(decoded):
                self.words += decoded
                return
        valid = []
        for row, data in enumerate(words):
            try:
                word = data.decode("utf-8", self.errors)
            except UnicodeDecodeError:
                remedy = f"if the file is undamaged, {self.replacing}"
                self.problem(f"{place}{number + row}", f"the word {quoted(data)} is not UTF-8", remedy)
                continue
            if word and "\n" not in word:
                self.words.append(word)
                valid.append(row)
            else:
                remedy = "give it one, or get an undamaged file"
                self.problem(f"{place}{number + row}", "has no word before its numbers", remedy)
        if len(valid) < len(words):
            self.matrix[done : len(self.words)] = numbers[valid]

    def bad_line(self, line: bytes, position: str, error: ValueError) -> None:
        """Report a line of text that is not a word and `E` numbers."""
        self.problem(position, str(error), "get the whole file or correct the line")

    def whole(self, words: list[Any], matrix: Matrix, words_path: str) -> None:
        """Set all rows at once: the words of the file `words_path`, None for a bad word, and a matrix of floats."""
        if len(words) != len(matrix):
            what = f"has {counted(len(words), 'word')}, but {self.path} has {counted(len(matrix), 'row')}"
            self.problem("", what, "write a word for each row", level=FATAL, path=words_path)
        if not words:
            self.problem("", "is empty", "give a file of word vectors", level=FATAL)
        with np.errstate(over="ignore", invalid="ignore"):
            self.words, self.matrix = words, np.ascontiguousarray(matrix, stored_type(matrix))

    def result(self) -> tuple[list[Any], Matrix]:
        """Return words and matrix (V, E); report and omit rows with a value that is not finite.

        Logs the skipped rows. Raises TiedtoolsError if no row remains.
        """
        if not isinstance(self.matrix, np.ndarray):  # checked when its rows are computed
            return self.words, self.matrix
        if len(self.matrix) > len(self.words):
            self.matrix.resize((len(self.words), self.matrix.shape[1]), refcheck=False)
        finite = finite_rows(self.matrix)
        for row in np.flatnonzero(~finite).tolist():
            if self.words[row] is not None:
                self.problem(f": row {row + 1}", *not_finite(self.words[row]))
        if not finite.all() or None in self.words:
            valid = [row for row, word in enumerate(self.words) if finite[row] and word is not None]
            self.words, self.matrix = [self.words[row] for row in valid], self.matrix[valid]
        if not self.words and (error := self.first or next(iter(self.others), None)):
            raise error
        if self.first:
            first = str(self.first).rpartition("; ")[0]  # without the remedy
            log.warning(f"{shown(self.path)}: skipped {counted(self.skipped, 'bad row')}; the first: {first}")
        for error in self.others:
            log.warning(str(error))
        return self.words, self.matrix


def not_finite(word: str) -> tuple[str, str]:
    """Return (problem, remedy) for the vector of `word`, which has a value that is nan or infinite."""
    return f"{quoted(word)} has a value that is nan or infinite", "if training diverged, lower the learning rate"


def stored_type(matrix: Matrix) -> type:
    """Return the type in which a matrix is held in memory: float16 stays as it is, all other numbers are float32."""
    return np.float16 if matrix.dtype == np.float16 else np.float32


def is_fasttext(path: str) -> bool:
    """Return whether a regular file starts like a model of fastText."""
    return first_bytes(path).startswith(FASTTEXT)


def foreign(name: str, start: bytes) -> str | None:
    """Describe a file and how to convert it; None if its first bytes are not recognized."""
    if not start:
        return "is empty; give a file of word vectors"
    if is_tar(start):
        return f"is {TAR}"
    if start.startswith(b"\x93NUMPY"):
        return "is in NumPy's .npy format; give an uncompressed file with a name ending in .npy"
    if start.startswith(MAGIC) or RNNLM_MAGIC.match(start):
        return "contains a model file; give the name of an uncompressed file, not a pipe"
    if start.startswith(FASTTEXT):
        return "is a model of fastText (.bin or .ftz); give an uncompressed file, not a pipe"
    if not (pickle := PICKLE.match(start)):
        return None
    if not pickle[1]:
        return "is a Python pickle, which could run any code; save its matrix as .npy and its words as .words"
    kind = pickle[1].decode()
    load = f"KeyedVectors.load({name!r})" if kind.endswith("KeyedVectors") else f"{kind}.load({name!r}).wv"
    return f"is a {kind} saved by gensim, a pickle; convert it: `{load}.save_word2vec_format('OUT.bin', binary=True)`"
