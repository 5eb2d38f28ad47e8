"""Check vector files for errors: unlike the readers, continue after most errors."""

import collections
import math
import os
import re
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError, printable, quoted
from tiedtools.files import modelfile
from tiedtools.text.sources import open_source, shown
from tiedtools.text.vocab import END
from tiedtools.vectors import formats, kinds, matrixfiles
from tiedtools.vectors.foreign import refuse_foreign
from tiedtools.vectors.formats import HEADER, MAX_E, NUMBER, VectorReader, parse_line
from tiedtools.vectors.modelvectors import find_model, read_model
from tiedtools.vectors.vectors import EXTENSIONS, READERS, format_read

POSITION = re.compile(r"^:\d+|^: row \d+")  # after the path, in a message
BOM = b"\xef\xbb\xbf"
# Unicode whitespace that some readers treat as a field separator, invisible characters, and control characters.
ODD = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2060\ufeff]")
NEVER_PREDICTED = END, END.encode()  # word2vec's output vectors start at 0, and </s> may keep that
# A vector with negative values and a larger Euclidean norm indicates diverged training: skip-gram vectors trained on 17
# million words of Wikipedia have norms of .5 to 32. Vectors of raw counts, which are nonnegative, may be larger.
LARGEST_NORM = 1e4


class Check:
    """Problems found in a vector file; the constructor runs the check.

    format    "text", "binary", "glove", "npy", "safetensors", "tsv" or "model"; None: detected, as Vectors.read does;
              then also the name of another kind of file, one of kinds.py
    use       what reads or wrote a file of another kind; empty for vectors and models
    checked   whether the content was checked; a file of another kind may only be recognized
    problems  dict: kind -> list of (position, problem), at most the first `examples`; position is ":LINE", ": row ROW",
              or ""
    counts    Counter: kind -> number of problems
    rows      number of rows read
    E         dimension of most rows; None if unreadable
    """

    def __init__(self, path, format=None, examples=3):
        self.path, self.format, self.examples = path, format, examples
        self.problems, self.counts = {}, collections.Counter()
        self.rows, self.seen, self.given = 0, {}, format
        self.use, self.checked = "", True
        self.E: Any = None
        if format is None:
            self.format = EXTENSIONS.get(os.path.splitext(path)[1])
        self.tabs = False  # whether tabs separate the fields, as in StarSpace's files
        try:
            if model := find_model(path):
                self.check_model(*model)
            elif not format and (matrix := kinds.matrix_of(path)):
                self.format, self.checked = "list of words", False
                self.use = f"`tiedtools check {matrix}` checks it with its vectors"
            elif self.format == "npy":
                self.check_npy()
            elif format_read(path, self.format) == "glove" != self.format:
                self.format, self.tabs = "glove", True
                self.check_stream()
                if not self.use:
                    self.format = "tsv"
            elif self.format in READERS:
                if self.format == "tsv":
                    self.check_metadata()
                self.check_matrix(*READERS[self.format](path, "surrogateescape"))
            else:
                self.check_stream()
        except TiedtoolsError as error:
            message = str(error).removeprefix(printable(shown(path)))
            position = "".join(POSITION.findall(message))
            self.add("unreadable", position, message.removeprefix(position).removeprefix(": "))

    def add(self, kind, position, problem):
        self.counts[kind] += 1
        if self.counts[kind] <= self.examples:
            self.problems.setdefault(kind, []).append((position, printable(problem)))

    def check_model(self, path, which):
        self.format = "model"
        if modelfile.is_rnnlm(path):
            return self.check_matrix(*read_model(path, which))
        header, arrays = modelfile.read(path)
        for name, array in arrays.items():
            if name != "emb_in" and array.dtype.kind == "f" and not np.isfinite(array).all():
                self.add("not finite", "", f"the array {name} has values that are nan or infinite")
        if header.get("kind") != modelfile.CHECKPOINT or which != "in":
            return self.check_matrix(*read_model(path, which))
        self.format, self.use = "checkpoint", "`--checkpoint` with `--resume` continues from it"

    def check_npy(self):
        matrix = matrixfiles.open_npy(self.path)
        words_path, words = matrixfiles.read_words(self.path, "surrogateescape")
        if len(words) != len(matrix):
            self.add("header", "", f"has {len(matrix)} rows, but {words_path} has {len(words)} words")
        self.check_matrix(words, matrix)

    def check_metadata(self):
        lines = matrixfiles.read_lines(matrixfiles.words_of(self.path, "tsv"))
        titles = b"\t" in lines[0]
        for row, line in enumerate(lines[titles:], 1):
            if matrixfiles.is_blank(line.decode("utf-8", "replace")):
                problem = "the word is blank for TensorBoard, which skips it, so that all later words shift"
                self.add("blank label", f": row {row}", f"{problem}; write the file again with `tiedtools convert`")

    def check_matrix(self, words, matrix):
        self.rows, self.E = matrix.shape
        step = max(1, formats.BLOCK // self.E)
        named = words + [""] * (len(matrix) - len(words))
        for start in range(0, len(matrix), step):
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = np.asarray(matrix[start : start + step], np.float32)  # as readers convert them
            self.add_numbers(numbers, lambda r: f": row {start + r + 1}", named[start:])
        for row, word in enumerate(words, 1):
            self.add_word(word.encode("utf-8", "surrogateescape"), f": row {row}")

    def check_stream(self):
        with open_source(self.path) as file:
            self.reader = VectorReader(file, self.path)
            line = self.reader.first_line(formats.MAX_LINE)
            if not line:
                return self.add("empty", "", "is empty")
            refuse_foreign(self.path, self.reader.rest)
            if not self.given and (kind := kinds.kind_of(self.reader.first_lines())):
                return self.check_kind(kind)
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                return self.add("encoding", ":1", "is UTF-16; convert it to UTF-8")
            if line.startswith(BOM):
                self.add("bom", ":1", "starts with a byte order mark")
                self.reader.rest = self.reader.rest.removeprefix(BOM)
            header = self.format != "glove" and HEADER.fullmatch(line)
            V = math.inf
            if header:
                V, self.E = int(header[1]), int(header[2])
                self.reader.rest = self.reader.rest[len(line) - len(BOM) * line.startswith(BOM) :]
                if not V or not 0 < self.E <= MAX_E:
                    self.add("header", ":1", f"the header gives {V} words of {self.E} numbers, which is out of range")
                    V = math.inf
                elif self.format == "binary" or self.format is None and self.reader.looks_binary(self.E):
                    self.format = "binary"
                    return self.check_binary(V)
                if line.endswith(b"\r\n"):
                    self.add("crlf", ":1", "ends in CR LF")
            elif self.format in ("text", "binary"):
                return self.add("header", ":1", f"is not the header 'V E' of a word2vec {self.format} file")
            self.format = "text" if header else "glove"
            self.check_lines(V, 2 if header else 1)

    def check_kind(self, kind):
        self.format, self.use = kind.name, kind.use
        self.checked = kind.read is not None and self.path != "-"
        if self.checked:
            self.rows = len(kind.read(self.path) or ())

    def check_lines(self, V, number):
        """Check the rest of a text file; `number` is the next line's number, and V is infinite without a header."""
        from tiedtools.kernels.text.floats import parse_rows

        E = self.reader.most_common_count()
        if not E:
            self.format = None
            problem = "is neither a word2vec header 'V E' nor a word and numbers; is it a text, for `tiedtools vocab`?"
            return self.add("ragged", f":{number}", problem)
        if self.E not in (None, E):
            self.add("header", ":1", f"the header gives {self.E} numbers per word, but most rows have {E}")
        self.E = E
        empty = []  # line numbers; trailing empty lines are not an error
        while block := self.reader.whole_lines():
            self.look_at_spaces(block, number)
            data = np.frombuffer(block, np.uint8)
            limit = len(block) // (2 * E + 2) + 1
            matrix, spans = np.empty((limit, E), np.float32), np.empty((limit, 2), np.int64)
            start = 0
            while start < len(block):
                n, start = parse_rows(matrix, spans, data, start, limit, E)
                odd = block[start : block.find(b"\n", start) + 1]
                start += len(odd)
                if n or odd.strip():
                    for line in empty:
                        self.add("blank line", f":{line}", "is empty")
                    empty = []
                words = [block[a:b] for a, b in spans[:n].tolist()]
                for line, word in enumerate(words, number):
                    self.add_word(word, f":{line}")
                self.add_numbers(matrix[:n], lambda r: f":{number + r}", words)
                number, self.rows = number + n, self.rows + n
                if odd:
                    if odd.strip():
                        self.add_odd_line(odd, f":{number}")
                    else:
                        empty.append(number)
                    number += 1
        if self.rows != V != math.inf:
            self.add("header", ":1", f"the header gives {V} words, but the file has {self.rows}")

    def look_at_spaces(self, block, first):
        """Report carriage returns, tabs, and repeated spaces; word2vec itself writes a space before LF."""
        if not (b"\r" in block or b"\t" in block or b"  " in block):
            return
        for number, line in enumerate(block.split(b"\n"), first):
            fields = line.removesuffix(b"\r")
            if fields != line:
                self.add("crlf", f":{number}", "ends in CR LF")
            if b"\t" in fields and not self.tabs or b"  " in fields:
                self.add("blanks", f":{number}", "has tabs or repeated spaces between fields")

    def add_odd_line(self, line, position):
        """Check a line that the kernel rejects."""
        self.rows += 1
        fields = line.split()
        try:
            word, numbers = parse_line(line, self.E)
        except ValueError as error:
            whole = len(fields) == self.E + 1 and all(NUMBER.fullmatch(field) for field in fields[1:])
            self.add("not finite" if whole else "ragged", position, str(error))
            self.add_word(fields[0], position)
        else:
            self.add_word(word, position)
            self.add_numbers(numbers[None], lambda r: position, [word])

    def check_binary(self, V):
        for row in range(1, V + 1):
            position = f": row {row}"
            try:
                word, numbers = self.reader.binary_row(self.E)
            except ValueError as error:
                return self.add("truncated", position, f"{error} of {V}")
            self.add_word(word, position)
            self.add_numbers(numbers[None], lambda r: position, [word])
            self.rows = row
        if not self.reader.at_end():
            self.add("trailing", f": row {V + 1}", f"data continues after the {V} words given by the header")

    def add_word(self, word, position):
        """Check a word, given as bytes."""
        if word in self.seen:
            self.add("duplicate", position, f"{quoted(word)} was already defined at {self.seen[word].lstrip(': ')}")
        else:
            self.seen[word] = position
        try:
            text = word.decode()
        except UnicodeDecodeError:
            return self.add("encoding", position, f"the word {quoted(word)} is not UTF-8")
        if not word:
            self.add("blanks", position, "has no word")
        elif odd := ODD.search(text):
            self.add(
                "odd word",
                position,
                f"the word {text!a:.60} contains U+{ord(odd[0]):04X}, a space or control character",
            )

    def add_numbers(self, matrix, position, words):
        """Check the rows of a matrix (V, E); position(row) returns the position of a row, counted from 0."""
        norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
        for row in np.flatnonzero(~((0 < norms) & (norms <= LARGEST_NORM))).tolist():
            norm, vector = norms[row], f"the vector of {quoted(words[row])}"
            if not np.isfinite(norm):
                self.add("not finite", position(row), f"{vector} has a value that is nan or infinite")
            elif norm == 0 and words[row] not in NEVER_PREDICTED:
                self.add("zero", position(row), f"{vector} is all zeros")
            elif norm and matrix[row].min() < 0:
                self.add(
                    "huge",
                    position(row),
                    f"{vector} has norm {norm:.2g}; if training diverged, lower the learning rate",
                )
