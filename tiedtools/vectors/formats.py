"""Streaming vector formats: word2vec's text and binary formats, and GloVe's text format.

    text     a header line "V E", then one line per word:    word x1 x2 ... xE
    binary   a header line "V E", then for each word:        word, a space, E little-endian float32, LF
    glove    text without the header

Only ASCII spaces and tabs separate fields, and only LF ends a line: real words contain U+00A0, U+0085, U+2028, and
U+3000.
"""

import codecs
import collections
import itertools
import math
import re

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.processor import ahead, available_cores
from tiedtools.text.sources import shown
from tiedtools.vectors.badrows import STRICT, sound
from tiedtools.vectors.foreign import refuse_foreign

BLOCK = 1 << 20
MAX_E = 1 << 20
MAX_LINE = 64 * MAX_E
MAX_WORD = 1 << 22
PEEK = 10  # number of rows that determine a layout

HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*\n?")
NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
SPACES = "[ \t\n\r]"
# Words that could not be read back: separators, and surrogates, which UTF-8 cannot encode. Lines of text are split at
# spaces by other programs; those of GloVe at the last ones, and a number there would count as one of the vector.
UNWRITABLE = {
    "text": SPACES,
    "binary": SPACES,
    "glove": rf"\n|[ \t](?:{NUMBER.pattern.decode()})?\Z",
    "npy": r"\n|\r\Z",
    "safetensors": r"\n|\r\Z",
    "tsv": r"[\t\n]|\r\Z",
}


class VectorReader:
    """Single-pass reader of one vector stream, which need not be seekable or of known length.

    bad  the Bad that lines and rows that cannot be read are reported to

    The matrix grows by an eighth at a time as rows are read, whatever word count the header gives: memory stays within
    9/8 of the matrix.
    """

    def __init__(self, file, path, errors="strict", bad=STRICT):
        self.file, self.path, self.errors, self.bad = file, path, errors, bad
        self.rest, self.at = b"", 0  # data read but not yet consumed, from byte `at`
        self.words = []
        self.matrix = np.empty((0, 0), np.float32)

    def read(self, format=None):
        """Read the stream as `format` (text, binary, glove; None: detect) and return words and matrix (V, E).

        Raises TiedtoolsError naming the path and the line (text) or row (binary).
        """
        line = self.first_line(MAX_LINE)
        refuse_foreign(self.path, self.rest)
        header = format != "glove" and HEADER.fullmatch(line)
        if header:
            V, E = int(header[1]), int(header[2])
            if not V or not 0 < E <= MAX_E:
                raise self.error(
                    f"the header gives {V} words of {E} numbers, which is out of range; get an undamaged file", ":1"
                )
            self.rest = self.rest[len(line) :]
            if format == "binary" or (format is None and self.looks_binary(E)):
                self.read_binary(V, E)
            else:
                self.read_lines(V, E, 2)
        elif format in (None, "glove"):
            E = self.most_common_count() or count_numbers(line)
            if not E:
                raise self.error(
                    "is neither a word2vec header 'V E' nor a word and numbers; give word2vec or GloVe vectors", ":1"
                )
            self.read_lines(math.inf, E, 1)
        else:
            raise self.error(f"is not the header 'V E' of a word2vec {format} file; is it GloVe?", ":1")
        self.matrix.resize((len(self.words), E), refcheck=False)
        return self.words, self.matrix

    def error(self, problem, position=""):
        """Return a TiedtoolsError; `position`, ":LINE" or ": row ROW", follows the path in the message."""
        return TiedtoolsError(f"{shown(self.path)}{position}: {problem}")

    def more(self):
        """Append the next block to `rest`; return False at the end of the file."""
        data = self.file.read(BLOCK)
        self.rest += data
        return bool(data)

    def first_line(self, size):
        """Return the next bytes up to the first LF, at most about `size`, without consuming them."""
        while b"\n" not in self.rest and len(self.rest) < size and self.more():
            pass
        return self.rest[: self.rest.find(b"\n") + 1] or self.rest

    def first_lines(self):
        """Return the next bytes, at least PEEK lines, without consuming them."""
        while self.rest.count(b"\n") < PEEK and len(self.rest) < MAX_LINE and self.more():
            pass
        return self.rest

    def most_common_count(self):
        """Return the most common count of numbers in the next PEEK rows; 0 if there are none."""
        lines = itertools.islice((line for line in self.first_lines().split(b"\n") if line.strip()), PEEK)
        counts = collections.Counter(count_numbers(line) for line in lines)
        return counts.most_common(1)[0][0] if counts else 0

    def looks_binary(self, E):
        """Return whether the first row after the header is binary."""
        try:
            parse_line(self.first_line(64 * E + MAX_WORD), E)
            return False
        except ValueError:
            pass
        # Not a valid text row: treat it as damaged text, to be reported as such, unless the bytes are not text at all.
        while len(self.rest) < 4096 and self.more():
            pass
        try:
            sample = self.rest[:4096]
            codecs.getincrementaldecoder("utf-8")().decode(sample)
            return CONTROL.search(sample) is not None
        except UnicodeDecodeError:
            return True

    def grow(self, rows, V):
        """Grow the matrix to at least `rows` of its final `V` rows."""
        if rows > len(self.matrix):
            # Resize in place: the allocator remaps the pages of large blocks instead of copying them.
            rows = min(max(rows, len(self.matrix) * 9 // 8), V)
            self.matrix.resize((rows, self.matrix.shape[1]), refcheck=False)

    def add_word(self, data, position):
        """Add the word of a row; return whether it is valid."""
        try:
            word = data.decode("utf-8", self.errors)
        except UnicodeDecodeError:
            problem = f"the word {quoted(data)} is not UTF-8; if the file is undamaged, read it with `errors='replace'`"
        else:
            if word and "\n" not in word:
                self.words.append(word)
                return True
            problem = "has no word before its numbers; give it one, or get an undamaged file"
        self.bad.row(self.error(problem, position))
        return False

    def read_lines(self, V, E, line):
        """Read the rest of a text file; `line` is the next line's number, and V is infinite without a header."""
        from tiedtools.kernels.text.floats import parse_rows  # imported here because compiled code loads slowly

        words, header, found = self.words, V, 0
        if self.bad.skip:
            V = math.inf
        self.matrix = np.empty((0, E), np.float32)
        empty = []  # lines, which are an error only if a word follows
        while block := self.whole_lines():
            data = np.frombuffer(block, np.uint8)
            spans = np.empty((len(block) // (2 * E + 2) + 1, 2), np.int64)  # a row has at least 2E + 2 bytes
            start = 0
            while start < len(block):
                done = len(words)
                rows = min(len(spans), V - done)
                self.grow(done + rows, V)
                n, start = parse_rows(self.matrix[done:], spans, data, start, rows, E)
                valid = [self.add_word(block[a:b], f":{k}") for k, (a, b) in enumerate(spans[:n].tolist(), line)]
                if len(words) < done + n:
                    self.matrix[done : len(words)] = self.matrix[done : done + n][valid]
                line += n
                odd = block[start : block.find(b"\n", start) + 1]  # the line that the kernel rejected, if any
                start += len(odd)
                if n or odd.strip():
                    found += n + bool(odd.strip())
                    for number in empty:
                        self.bad.row(self.error("is empty; delete it", f":{number}"))
                    empty = []
                if not odd:
                    continue
                if not odd.strip():
                    empty.append(line)
                elif len(words) == V:
                    raise self.error(f"more words than the header's {V}; correct line 1", f":{line}")
                else:
                    self.add_line(odd, E, f":{line}")
                line += 1
        if found > header:
            self.bad.whole(self.error(f"{found} words, but the header gives {header}; correct line 1"))
        if found < header != math.inf:
            problem = (
                f"the file ends after {found} of the header's {header} words; get the whole file or correct line 1"
            )
            self.bad.whole(self.error(problem, f":{line}"))

    def add_line(self, line, E, position):
        """Add a row of text that the kernel rejects."""
        try:
            word, numbers = parse_line(line, E)
        except ValueError as error:
            self.bad.row(self.error(f"{error}; get the whole file or correct the line", position))
        else:
            if self.add_word(word, position):
                self.matrix[len(self.words) - 1] = numbers

    def whole_lines(self):
        """Return the next block of whole lines, each with its LF; empty at the end of the file."""
        while b"\n" not in self.rest:
            if len(self.rest) > MAX_LINE:
                raise self.error(f"has a line of more than {MAX_LINE} bytes; is it a vector file?")
            if not self.more():
                self.rest += b"\n" if self.rest else b""
                break
        cut = self.rest.rfind(b"\n") + 1
        block, self.rest = self.rest[:cut], self.rest[cut:]
        return block

    def read_binary(self, V, E):
        """Read V binary rows. Raises TiedtoolsError if the file ends early or continues after them."""
        self.matrix = np.empty((0, E), np.float32)
        for row in range(V):
            position = f": row {row + 1}"
            try:
                word, numbers = self.binary_row(E)
            except ValueError as error:
                self.bad.whole(self.error(f"{error} of {V}; get the whole file or correct line 1", position))
                break
            done = len(self.words)
            if self.add_word(word, position):
                self.grow(done + 1 + len(self.rest) // (4 * E), V)
                self.matrix[done] = numbers
        else:
            if not self.at_end():
                problem = f"data continues after the {V} rows given by the header; correct line 1"
                self.bad.whole(self.error(problem, f": row {V + 1}"))

    def binary_row(self, E):
        """Read the next row: the word as bytes, and the numbers (E,). Raises ValueError describing the problem."""
        while True:
            blank = self.rest.find(b" ", self.at, self.at + MAX_WORD)
            start, end = blank + 1, blank + 1 + 4 * E
            if blank >= 0 and end <= len(self.rest):
                break
            if blank < 0 and len(self.rest) > self.at + MAX_WORD:
                raise ValueError(f"there is no word before the {E} numbers of this row")
            self.rest, self.at = self.rest[self.at :], 0
            if not self.more():
                left = len(self.rest.strip(b"\n"))
                raise ValueError(
                    f"the file ends {left} bytes into this row" if left else "the file ends before this row"
                )
        # Not all writers end each row with LF.
        word, self.at = self.rest[self.at : blank].lstrip(b"\n"), end
        return word, np.frombuffer(self.rest, "<f4", E, start)

    def at_end(self):
        """Return whether only LFs remain."""
        self.rest, self.at = self.rest[self.at :].strip(b"\n"), 0
        while not self.rest and self.more():
            self.rest = self.rest.strip(b"\n")
        return not self.rest


def parse_line(line, E):
    """Parse a line into its word and E float32; slow, but the word may contain spaces, and any decimal is accepted.

    Raises ValueError describing the problem.
    """
    pieces = re.split(rb"([ \t]+)", line.rstrip(b" \t\r\n"))  # field, separator, field, ..., field
    fields = pieces[::2]
    word, numbers = b"".join(pieces[: -2 * E]), fields[-E:]
    if len(fields) <= E or NUMBER.fullmatch(fields[-E - 1]) and len(fields) > E + 1:
        raise ValueError(f"expected {E} numbers after {quoted(fields[0])}, found {count_numbers(line)}")
    for number in numbers:
        if not NUMBER.fullmatch(number):
            raise ValueError(f"{quoted(number)}, one of the last {E} fields of {quoted(word)}, is not a number")
    with np.errstate(over="ignore"):
        values = np.array([float(number) for number in numbers], np.float32)
    if not np.isfinite(values).all():
        number = numbers[int(np.argmin(np.isfinite(values)))]
        raise ValueError(f"{quoted(word)} has the value {quoted(number)}, not a finite float32 (diverged training?)")
    return word, values


def count_numbers(line):
    """Return how many numbers end the line, not counting its first field."""
    fields = re.split(rb"[ \t]+", line.rstrip(b" \t\r\n"))[1:]
    return next((n for n, field in enumerate(reversed(fields)) if not NUMBER.fullmatch(field)), len(fields))


def check_writable(words, matrix, format):
    """Raise TiedtoolsError unless a format can represent these words and vectors."""
    if not matrix.size:
        raise TiedtoolsError("no vectors to write: there are no words or no dimensions; select at least one word")
    unwritable = re.compile(rf"{UNWRITABLE[format]}|[\ud800-\udfff]", re.IGNORECASE)
    for row, word in enumerate(words, 1):
        if not word or unwritable.search(word):
            problem = "is empty, or is not valid Unicode; rename it"
            if re.search(SPACES, word):
                problem = f"has white space that {format} files cannot hold; see `tiedtools convert --spaces`"
            raise TiedtoolsError(f"word {row:,}: {quoted(word)} {problem}")
    sound(words, matrix, "word")


def write_text(file, words, matrix):
    """Write word2vec's text format to a binary file object."""
    file.write(b"%d %d\n" % matrix.shape)
    write_glove(file, words, matrix)


def write_glove(file, words, matrix):
    """Write GloVe's text format to a binary file object."""
    for lines in text_blocks(words, matrix):
        file.write(lines)


def text_blocks(words, matrix):
    """Yield blocks of lines "word x1 ... xE", formatted by several threads.

    Values have six decimals, as in word2vec.c, or nine significant digits, from which the same float32 is read, where
    six decimals would be 0 or the whole vector is small; see `format_rows`.
    """
    V, E = matrix.shape
    step = max(1, BLOCK // (20 * E))
    block = lambda start: text_block(words[start : start + step], matrix[start : start + step])
    return ahead([block] * available_cores(), range(0, V, step))


def text_block(words, matrix):
    """Return lines "word x1 ... xE" as bytes."""
    from tiedtools.kernels.text.floats import format_rows

    rows, E = matrix.shape
    encoded = [word.encode() for word in words]
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=offsets[1:])
    text = np.frombuffer(b"".join(encoded), np.uint8)
    # Copy, so that the kernel is compiled for one array type, whether mapped, read-only, or strided.
    matrix = np.array(matrix, np.float32, order="C")
    out = np.empty(len(text) + rows * (20 * E + 1), np.uint8)
    blocks, done = [], 0
    while done < rows:
        done, size = format_rows(out, matrix, text, offsets, done, rows, E)
        blocks.append(out[:size].tobytes())
        if done < rows:
            blocks.append(encoded[done] + b"".join(map(decimals, matrix[done].tolist())) + b"\n")
            done += 1
    return b"".join(blocks)


def decimals(x):
    """Return a space and a float32 as text, as `format_rows` writes it in a row with large values."""
    text = b" %.6f" % x
    return text if float(text) or not x else b" %.9g" % x


def write_binary(file, words, matrix):
    """Write word2vec's binary format to a binary file object."""
    V, E = matrix.shape
    file.write(b"%d %d\n" % (V, E))
    step = max(1, BLOCK // (4 * E))
    for start in range(0, V, step):
        rows = zip(words[start : start + step], np.asarray(matrix[start : start + step], "<f4"), strict=True)
        file.write(b"".join(b"%b %b\n" % (word.encode(), row.tobytes()) for word, row in rows))
