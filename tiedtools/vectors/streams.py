"""Vectors in one stream: word2vec's text and binary formats, and GloVe's text format.

    text     a header line "V E", then one line per word:    word x1 x2 ... xE
    binary   a header line "V E", then for each word:        word, a space, E little-endian float32, LF
    glove    text without the header

Only ASCII spaces and tabs separate fields, and only LF ends a line: real words contain U+00A0, U+0085, U+2028, and
U+3000.
"""

import codecs
import collections
import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import Mistyped, TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.text.sources import SURROGATE, counted, open_source, shown
from tiedtools.vectors.formats import FORMATS, NUMBER, PEEK, SPACES
from tiedtools.vectors.norms import Matrix, blocks, finite_rows
from tiedtools.vectors.rows import FATAL, WHOLE, Rows, not_finite

BLOCK = 1 << 20
MAX_E = 1 << 20
MAX_LINE = 64 * MAX_E
MAX_WORD = 1 << 22
LARGEST_HALF = 65520  # numbers from it on are rounded to infinity in float16
ZERO_HALF = 2.0**-25  # numbers up to it are rounded to 0 in float16

HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t\r]*\n?")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def read(rows: Rows, format: str | None = None) -> bool:
    """Read a stream as `format` (text, binary, glove; None: detect) into Rows; return whether it has vectors."""
    with open_source(rows.path) as file:
        reader = VectorReader(file, rows)
        reader.first_line(MAX_LINE)
        if recognized := rows.recognize(reader):
            reader.read(format)
    return recognized


class VectorReader:
    """Single-pass reader of a vector stream into Rows; the stream need not be seekable or of known length."""

    def __init__(self, file: Any, rows: Rows) -> None:
        self.file, self.rows = file, rows
        self.rest, self.at = b"", 0  # data read but not yet consumed, which begins at byte `at`

    def read(self, format: str | None) -> None:
        """Read the stream; report problems to the Rows, with the position of the line (text) or row (binary)."""
        rows = self.rows
        if self.first_line(MAX_LINE).startswith(codecs.BOM_UTF8):
            self.rest = self.rest.removeprefix(codecs.BOM_UTF8)
        line = self.first_line(MAX_LINE)
        V, header = math.inf, format != "glove" and HEADER.fullmatch(line)
        if header:
            V, rows.E = int(header[1]), int(header[2])
            self.rest = self.rest[len(line) :]
            if not V or not 0 < rows.E <= MAX_E:
                what = f"the header gives {V} words of {rows.E} numbers, which is out of range"
                rows.problem(":1", what, "get an undamaged file", "header", FATAL)
                V = math.inf
            elif format == "binary" or self.looks_binary(rows.E):
                if format == "text":
                    return rows.problem(":2", "is not a row of text", "get an undamaged file", level=FATAL)
                return self.read_binary(V, rows.E)
            if line.endswith(b"\r\n"):
                rows.oddity("crlf", ":1", "ends in CR LF")
        elif format not in (None, "glove"):
            what = f"is not the header 'V E' of a word2vec {format} file"
            return rows.problem(":1", what, "correct it", "header", FATAL)
        E = rows.dimension(self.most_common_count(), count_numbers(line))
        rows.format = ("text" if header else "glove") if E else None
        if E == 1 and not header and (format is None or rows.tabs):
            log.warning(f"{shown(rows.path)}: has one number per word; is it a vocabulary, not vectors?")
        if E:
            return self.read_lines(V, E, 2 if header else 1)
        what = "is neither a word2vec header 'V E' nor a word and numbers"
        rows.oddity("ragged", ":2" if header else ":1", f"{what}; is it a text, for `tiedtools vocab`?")
        rows.problem(":1", what, "give word2vec vectors or the .txt file of GloVe", "", FATAL)

    def more(self) -> bool:
        """Append the next block to `rest`; return False at the end of the file."""
        data = self.file.read(BLOCK)
        self.rest += data
        return bool(data)

    def first_line(self, size: int) -> bytes:
        """Return the next bytes up to the first LF, at most about `size`, without consuming them."""
        while b"\n" not in self.rest and len(self.rest) < size and self.more():
            pass
        return self.rest[: self.rest.find(b"\n") + 1] or self.rest

    def first_lines(self) -> bytes:
        """Return the next bytes, at least PEEK lines, without consuming them."""
        while self.rest.count(b"\n") < PEEK and len(self.rest) < MAX_LINE and self.more():
            pass
        return self.rest

    def most_common_count(self) -> int:
        """Return the most common count of numbers in the next PEEK rows; 0 if there are none."""
        lines = itertools.islice((line for line in self.first_lines().split(b"\n") if line.strip()), PEEK)
        counts = collections.Counter(count_numbers(line) for line in lines)
        return counts.most_common(1)[0][0] if counts else 0

    def looks_binary(self, E: int) -> bool:
        """Return whether the first row after the header is binary."""
        with contextlib.suppress(ValueError):
            parse_line(self.first_line(64 * E + MAX_WORD), E)
            return False
        # Not a valid row of text: report it as damaged text, unless the bytes are not text at all.
        while len(self.rest) < 4096 and self.more():
            pass
        try:
            sample = self.rest[:4096]
            codecs.getincrementaldecoder("utf-8")().decode(sample)
            return CONTROL.search(sample) is not None
        except UnicodeDecodeError:
            return True

    def read_lines(self, V: float, E: int, line: int) -> None:
        """Read the rest of a text file; `line` is the number of the next line, and V is infinite without a header."""
        from tiedtools.kernels.text.floats import parse_rows  # imported here because compiled code loads slowly

        def parse(block: bytes, start: int = 0) -> tuple[bytes, Matrix, list[Any]]:
            """Parse a block from byte `start` up to the first line that the kernel rejects."""
            most = (len(block) - start) // (2 * E + 2) + 1  # a row has at least 2E + 2 bytes
            numbers, spans = np.empty((most, E), np.float32), np.empty((most, 2), np.int64)
            n, stop = parse_rows(numbers, spans, np.frombuffer(block, np.uint8), start, most, E)
            return block, numbers[:n], [*spans[:n].tolist(), (stop, stop)]

        rows, limit, done, unk = self.rows, V, 0, 0
        rows.begin(V, E)
        empty = []  # numbers of empty lines, an error only if a word follows
        for block, numbers, spans in ahead([parse] * available_cores(), iter(self.whole_lines, b"")):
            rows.block(block, line)
            while True:
                n = int(min(len(numbers), limit - done))
                start = spans[n][0]
                odd = block[start : block.find(b"\n", start) + 1]  # the line that the kernel rejected, if any
                if n or odd.strip():
                    for number in empty:
                        rows.problem(f":{number}", "is empty", "delete it", "blank line")
                    empty = []
                room = rows.room(n)
                room[:] = numbers[:n]
                rows.add([block[a:b] for a, b in spans[:n]], room, ":", line)
                line += n
                done += n
                if not odd:
                    break
                if not odd.strip():
                    empty.append(line)
                elif done == limit:
                    if not rows.skip and odd.startswith(b"<unk> "):
                        unk = 1  # GloVe's -write-header does not count it
                    elif not rows.skip:
                        rows.problem(f":{line}", f"more words than the header's {V}", "correct line 1", level=WHOLE)
                    limit = math.inf
                    numbers, spans = numbers[n:], spans[n:]
                    continue
                else:
                    self.add_line(odd, E, line)
                    done += 1
                line += 1
                _, numbers, spans = parse(block, start + len(odd))
        if done != V + unk != math.inf:
            rows.oddity("header", ":1", f"the header gives {counted(V, 'word')}, but the file has {done:,}")
            if done > V:
                rows.problem("", f"{counted(done, 'word')}, but the header gives {V:,}", "correct line 1", "", WHOLE)
            else:
                what = f"the file ends after {done:,} of the header's {counted(V, 'word')}"
                rows.problem(f":{line}", what, "get the whole file or correct line 1", "", WHOLE)

    def add_line(self, line: bytes, E: int, number: int) -> None:
        """Add a row of text that the kernel rejected."""
        try:
            word, numbers = parse_line(line, E)
        except ValueError as error:
            self.rows.bad_line(line, f":{number}", error)
        else:
            room = self.rows.room(1)
            room[0] = numbers
            self.rows.add([word], room, ":", number)

    def whole_lines(self) -> bytes:
        """Return the next block of whole lines, each with its LF; empty at the end of the file."""
        while b"\n" not in self.rest:
            if len(self.rest) > MAX_LINE:
                what = f"has a line of more than {MAX_LINE:,} bytes"
                self.rows.problem("", what, "is it a vector file?", level=FATAL)
            if not self.more():
                self.rest += b"\n" if self.rest else b""
                break
        cut = self.rest.rfind(b"\n") + 1
        block, self.rest = self.rest[:cut], self.rest[cut:]
        return block

    def read_binary(self, V: float, E: int) -> None:
        """Read V binary rows. It is a problem if the file ends early or continues after them."""
        rows, done = self.rows, 0
        rows.format = "binary"
        rows.begin(V, E)
        while done < V:
            try:
                words, numbers = self.binary_rows(V - done, E)
            except ValueError as error:
                what, remedy = f"{error}; the header gives {counted(V, 'word')}", "get the whole file or correct line 1"
                return rows.problem(f": row {done + 1}", what, remedy, "truncated", WHOLE)
            room = rows.room(len(words))
            room[:] = numbers
            rows.add(words, room, ": row ", done + 1)
            done += len(words)
        if not self.at_end():
            position, what = f": row {V + 1}", f"data continues after the {counted(V, 'word')} of the header"
            rows.oddity("trailing", position, what)
            rows.problem(position, what, "correct line 1", "", WHOLE)

    def binary_rows(self, most: float, E: int) -> tuple[list[bytes], Matrix]:
        """Read the next rows, 1 to `most`: words as bytes, and the numbers (n, E).

        Raises ValueError describing the problem if there is no whole row.
        """
        words, numbers = [], []
        while len(words) < most:
            blank = self.rest.find(b" ", self.at, self.at + MAX_WORD)
            end = blank + 1 + 4 * E
            if blank >= 0 and end <= len(self.rest):
                # Not all writers end each row with LF.
                words.append(self.rest[self.at : blank].lstrip(b"\n"))
                numbers.append(self.rest[blank + 1 : end])
                self.at = end
            elif words:
                break
            elif blank < 0 and len(self.rest) > self.at + MAX_WORD:
                raise ValueError(f"there is no word before the {E} numbers of this row")
            else:
                self.rest, self.at = self.rest[self.at :], 0
                if not self.more():
                    left = len(self.rest.strip(b"\n"))
                    raise ValueError(f"the file ends {f'{left} bytes into' if left else 'before'} this row")
        return words, np.frombuffer(b"".join(numbers), "<f4").reshape(-1, E)

    def at_end(self) -> bool:
        """Return whether only LFs remain."""
        self.rest, self.at = self.rest[self.at :].strip(b"\n"), 0
        while not self.rest and self.more():
            self.rest = self.rest.strip(b"\n")
        return not self.rest


def parse_line(line: bytes, E: int) -> tuple[bytes, Matrix]:
    """Parse a line into its word and E float32; slow, but the word may contain spaces, and any decimal is accepted.

    Raises ValueError describing the problem.
    """
    pieces = re.split(rb"([ \t]+)", line.rstrip(b" \t\r\n"))  # field, separator, field, ..., field
    fields = pieces[::2]
    word, numbers = b"".join(pieces[: -2 * E]), fields[-E:]
    if len(fields) <= E or NUMBER.fullmatch(fields[-E - 1]) and len(fields) > E + 1:
        raise ValueError(f"expected {counted(E, 'number')} after {quoted(fields[0])}, found {count_numbers(line)}")
    for number in numbers:
        if not NUMBER.fullmatch(number):
            raise ValueError(f"{quoted(number)}, one of the last {E} fields of {quoted(word)}, is not a number")
    with np.errstate(over="ignore"):
        values = np.array([float(number) for number in numbers], np.float32)
    if not np.isfinite(values).all():
        number = numbers[int(np.argmin(np.isfinite(values)))]
        raise ValueError(f"{quoted(word)} has the value {quoted(number)}, not a finite float32 (diverged training?)")
    return word, values


def count_numbers(line: bytes) -> int:
    """Return the number of numbers at the end of a line, without its first field."""
    fields = re.split(rb"[ \t]+", line.rstrip(b" \t\r\n"))[1:]
    return next((n for n, field in enumerate(reversed(fields)) if not NUMBER.fullmatch(field)), len(fields))


def check_writable(words: Sequence[str], matrix: Matrix, format: str, dtype: str = "float32") -> None:
    """Raise TiedtoolsError unless a format can represent these words and vectors in the type `dtype`."""
    if not matrix.size:
        raise TiedtoolsError("no vectors to write: there are no words or no dimensions; select at least one word")
    unwritable = re.compile(f"{FORMATS[format].unwritable}|{SURROGATE}", re.IGNORECASE)
    for row, word in enumerate(words, 1):
        if not isinstance(word, str):
            raise Mistyped(f"word {row:,}: {quoted(word)} is not a str; convert it")
        if not word or unwritable.search(word):
            problem = f"is empty, or has characters that {format} files cannot hold; rename it"
            if re.search(SPACES, word):
                problem = f"has whitespace that {format} files cannot hold; see `tiedtools convert --spaces`"
            raise TiedtoolsError(f"word {row:,}: {quoted(word)} {problem}")
    if not (fits := finite_rows(matrix, LARGEST_HALF if dtype == "float16" else np.inf)).all():
        row = int(fits.argmin())
        problem = f"{quoted(words[row])} has a value too large for float16; write float32"
        if not np.isfinite(matrix[row]).all():
            problem = "; ".join(not_finite(words[row]))
        raise TiedtoolsError(f"word {row + 1:,}: {problem}")
    if dtype == "float16":
        largest = np.concatenate([np.abs(rows).max(1) for _, rows in blocks(matrix)])
        if lost := np.flatnonzero((largest > 0) & (largest <= ZERO_HALF)).tolist():
            what = f"{counted(len(lost), 'vector')} too small for float16 written as 0, the first that of"
            log.warning(f"{what} {quoted(words[lost[0]])}; `normalize`, or write float32")


def write_text(file: BinaryIO, words: list[str], matrix: Matrix) -> None:
    """Write word2vec's text format to a binary file object."""
    file.write(b"%d %d\n" % matrix.shape)
    file.writelines(text_blocks(words, matrix))


def write_glove(file: BinaryIO, words: list[str], matrix: Matrix) -> None:
    """Write GloVe's text format to a binary file object."""
    if words[0].startswith("\ufeff"):  # a byte order mark at the start is removed when the file is read
        file.write(codecs.BOM_UTF8)
    file.writelines(text_blocks(words, matrix))


def text_blocks(words: list[str], matrix: Matrix) -> Iterator[bytes]:
    """Yield blocks of lines "word x1 ... xE", formatted by several threads.

    Values have six decimals, as in word2vec.c, or nine significant digits, from which the same float32 is read, where
    six decimals would be 0 or the whole vector is small; see `format_rows`.
    """
    V, E = matrix.shape
    step = max(1, BLOCK // (20 * E))
    block = lambda start: text_block(words[start : start + step], matrix[start : start + step])
    return ahead([block] * available_cores(), range(0, V, step))


def text_block(words: list[str], matrix: Matrix) -> bytes:
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
    lines, done = [], 0
    while done < rows:
        done, size = format_rows(out, matrix, text, offsets, done, rows, E)
        lines.append(out[:size].tobytes())
        if done < rows:
            lines.append(encoded[done] + b"".join(map(decimals, matrix[done].tolist())) + b"\n")
            done += 1
    return b"".join(lines)


def decimals(x: float) -> bytes:
    """Format a space and a float32, as `format_rows` does in a row with large values."""
    text = b" %.6f" % x
    return text if float(text) or not x else b" %.9g" % x


def write_binary(file: BinaryIO, words: list[str], matrix: Matrix) -> None:
    """Write word2vec's binary format to a binary file object."""
    file.write(b"%d %d\n" % matrix.shape)
    for start, numbers in blocks(matrix):
        rows = zip(words[start : start + len(numbers)], numbers.astype("<f4", copy=False), strict=True)
        file.write(b"".join(b"%b %b\n" % (word.encode(), row.tobytes()) for word, row in rows))
