"""What is wrong with a file of word vectors: it is read to its end, also where no reader would take it."""

import collections
import itertools
import math
import os
import re
from typing import Any

import numpy as np

from tiedtools.errors import TiedtoolsError, printable, quoted
from tiedtools.text.sources import open_source, shown
from tiedtools.text.vocab import END
from tiedtools.vectors import formats, matrixfiles
from tiedtools.vectors.formats import HEADER, MAX_E, NUMBER, VectorReader, count_numbers, parse_line
from tiedtools.vectors.vectors import EXTENSIONS, READERS, find_model, read_model

BOM = b"\xef\xbb\xbf"
# White space that some readers take for the end of a field, what cannot be seen, and controls.
ODD = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2060\ufeff]")
NEVER_PREDICTED = END, END.encode()  # by word2vec, whose output vectors start at 0
# Euclidean norm beyond which a vector with negative numbers comes from diverged training: skip-gram's from 17 million
# words of Wikipedia have .5 to 32. Vectors of raw counts, which have no negative numbers, may be larger.
LARGEST_NORM = 1e4
PEEK = 10  # rows, of which most have the right count of numbers


class Check:
    """The problems of a file, found when this is made.

    format    "text", "binary", "glove", "npy", "safetensors", "tsv" or "model"; None: detected, as Vectors.read does
    problems  dict: kind -> list of (position, what is wrong), all or the first `examples` of them; position is ":LINE",
              ": row ROW" or ""
    counts    Counter: kind -> how many
    rows      read; E: numbers of most; None where nothing can be read
    """

    def __init__(self, path, format=None, examples=3):
        self.path, self.format, self.examples = path, format, examples
        self.problems, self.counts = {}, collections.Counter()
        self.rows, self.seen = 0, {}
        self.E: Any = None
        if format is None:
            self.format = EXTENSIONS.get(os.path.splitext(path)[1])
        try:
            if model := find_model(path):
                self.format = "model"
                self.check_matrix(*read_model(*model))
            elif self.format == "npy":
                self.check_npy()
            elif self.format in READERS:
                self.check_matrix(*READERS[self.format](path, "surrogateescape"))
            else:
                self.check_stream()
        except TiedtoolsError as error:
            self.add("unreadable", "", str(error).removeprefix(printable(shown(path))).removeprefix(": "))

    def add(self, kind, position, problem):
        self.counts[kind] += 1
        if self.counts[kind] <= self.examples:
            self.problems.setdefault(kind, []).append((position, printable(problem)))

    def check_npy(self):
        matrix = matrixfiles.open_npy(self.path)
        words_path, words = matrixfiles.read_words(self.path, "surrogateescape")
        if len(words) != len(matrix):
            self.add("header", "", f"has {len(matrix)} rows, but {words_path} has {len(words)} words")
        self.check_matrix(words, matrix)

    def check_matrix(self, words, matrix):
        self.rows, self.E = matrix.shape
        step = max(1, formats.BLOCK // self.E)
        named = words + [""] * (len(matrix) - len(words))
        for start in range(0, len(matrix), step):
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = np.asarray(matrix[start : start + step], np.float32)  # what readers make of them
            self.add_numbers(numbers, lambda r: f": row {start + r + 1}", named[start:])
        for row, word in enumerate(words, 1):
            self.add_word(word.encode("utf-8", "surrogateescape"), f": row {row}")

    def check_stream(self):
        with open_source(self.path) as file:
            self.reader = VectorReader(file, self.path)
            line = self.reader.first_line(formats.MAX_LINE)
            if not line:
                return self.add("empty", "", "is empty")
            self.reader.refuse_others(line)
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                return self.add("encoding", ":1", "is UTF-16; make it UTF-8")
            if line.startswith(BOM):
                self.add("bom", ":1", "starts with a byte order mark")
                self.reader.rest = self.reader.rest.removeprefix(BOM)
            header = self.format != "glove" and HEADER.fullmatch(line)
            V = math.inf
            if header:
                V, self.E = int(header[1]), int(header[2])
                self.reader.rest = self.reader.rest[len(line) - len(BOM) * line.startswith(BOM) :]
                if not V or not 0 < self.E <= MAX_E:
                    self.add("header", ":1", f"says {V} words of {self.E} numbers, which no vector file has")
                    V = math.inf
                elif self.format == "binary" or self.format is None and self.reader.looks_binary(self.E):
                    self.format = "binary"
                    return self.check_binary(V)
                if line.endswith(b"\r\n"):
                    self.add("crlf", ":1", "ends in CR LF")
            elif self.format in ("text", "binary"):
                return self.add("header", ":1", f"is not the 'V E' that a word2vec {self.format} file starts with")
            self.format = "text" if header else "glove"
            self.check_lines(V, 2 if header else 1)

    def check_lines(self, V, number):
        """Check text to its end; the next line is number `number`, and V is infinite where no header told it."""
        from tiedtools.kernels.floats import parse_rows

        E = self.most_common_count()
        if not E:
            return self.add("ragged", f":{number}", "is neither word2vec's 'V E' nor a word and numbers")
        if self.E not in (None, E):
            self.add("header", ":1", f"says {self.E} numbers a word, but most have {E}")
        self.E = E
        empty = []  # lines, of which those at the end do not count
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
            self.add("header", ":1", f"says {V} words, but {self.rows} follow")

    def most_common_count(self):
        """How many numbers most of the next rows have."""
        reader = self.reader
        while reader.rest.count(b"\n") < PEEK and len(reader.rest) < formats.MAX_LINE and reader.more():
            pass
        lines = itertools.islice((line for line in reader.rest.split(b"\n") if line.strip()), PEEK)
        counts = collections.Counter(count_numbers(line) for line in lines)
        return counts.most_common(1)[0][0] if counts else 0

    def look_at_spaces(self, block, first):
        """Carriage returns and blanks where one does not expect them; a blank before LF is word2vec's own."""
        if not (b"\r" in block or b"\t" in block or b"  " in block):
            return
        for number, line in enumerate(block.split(b"\n"), first):
            fields = line.removesuffix(b"\r")
            if fields != line:
                self.add("crlf", f":{number}", "ends in CR LF")
            if b"\t" in fields or b"  " in fields:
                self.add("blanks", f":{number}", "has tabs or several blanks between its fields")

    def add_odd_line(self, line, position):
        """A line that the kernel does not take."""
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
            self.add("trailing", f": row {V + 1}", f"line 1 says {V} words, but more follows")

    def add_word(self, word, position):
        """Look at a word, bytes."""
        if word in self.seen:
            self.add("duplicate", position, f"{quoted(word)} is there already at {self.seen[word].lstrip(': ')}")
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
                "odd word", position, f"the word {text!a:.60} holds U+{ord(odd[0]):04X}, blank or control character"
            )

    def add_numbers(self, matrix, position, words):
        """Check rows of numbers; position(row) is the position of each, from 0."""
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
