"""Read text sources, plain or compressed, as lines or as blocks of bytes that end between words."""

import bz2
import codecs
import contextlib
import gzip
import io
import itertools
import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from tiedtools.base.errors import Contradiction, TiedtoolsError, quoted, unreadable
from tiedtools.base.messages import log
from tiedtools.base.settings import ERRORS, one_of
from tiedtools.files import digests
from tiedtools.text.parts import Part, lines_before
from tiedtools.text.sentences import LONGEST_WORD, Chunks, Sentences, is_url, open_url, url_size

Path = str | os.PathLike[str]
BLOCK = 1 << 20
LONGEST_LINE = 1 << 28  # bytes; a compressed file may expand a thousandfold
LARGEST_LIST = 1 << 28
# The file may be binary, or text in a Windows encoding.
NO_UTF8 = (
    "invalid UTF-8 byte 0x{:02x}; is this plain text? `iconv -f CP1252 -t UTF-8` converts Western European text,"
    " `errors='replace'` substitutes U+FFFD"
)
TRAILING = "trailing data after the {0} stream; `{0} -dc` extracts what comes before it"
ZERO_BYTE = (
    "a zero byte; is this plain text? `iconv -f UTF-16 -t UTF-8` converts UTF-16; office programs save text as UTF-8"
)

TAR = "a tar archive; unpack it first"
SURROGATE = "[\ud800-\udfff]"  # matches what UTF-8 cannot encode
UNESCAPED = "[\ud800-\udc7f\udd00-\udfff]"  # surrogates that do not represent an invalid byte
DECOMPRESSED = bz2.BZ2File, gzip.GzipFile, lzma.LZMAFile
STDIN = "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"
SIGNATURES = {  # first bytes of files that are not plain text
    b"{\\rtf": "in Rich Text Format; save it as plain text, in UTF-8",
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "in UTF-32; `iconv -f UTF-32 -t UTF-8` converts it"),
    b"PK\3\4": "a zip archive or an office document; unpack it, or save it as plain text, in UTF-8",
    b"\xd0\xcf\x11\xe0": "an office document; save it as plain text, in UTF-8",
    b"%PDF-": "a PDF document; `pdftotext` extracts its text",
    b"PAR1\x15": "in Parquet format; export the texts as JSON lines, CSV, or plain text",
}


def is_tar(start: bytes) -> bool:
    """Return whether these are the first bytes of a tar archive."""
    return start[257:262] == b"ustar"


def shown(*paths: Any) -> str:
    """Return the names of text sources for messages; no paths: standard input."""
    return ", ".join("standard input" if path == "-" else name_of(path) for path in paths or ["-"])


def name_of(source: Any) -> str:
    """Return the path of a source, or the name of an open file, as a str."""
    return os.fspath(source) if is_path(source) else str(getattr(source, "name", "file"))


def is_path(source: Any) -> bool:
    """Return whether a source is a path, not an open file or sentences."""
    return isinstance(source, (str, os.PathLike))


def file_of(source: Any) -> Any:
    """Return a path of a source, or of the regular file that it reads, or None."""
    if is_path(source):
        return source
    with contextlib.suppress(AttributeError, OSError, ValueError):
        path = os.path.realpath(f"/dev/fd/{source.fileno()}")  # on Linux, the name of the file
        return path if os.path.isfile(path) else None


def read_once(*paths: Any) -> None:
    """Raise Contradiction if standard input (`-`, /dev/stdin) occurs more than once among the input paths."""
    if sum(path in STDIN for path in paths) > 1:
        raise Contradiction("standard input can be read only once; give a file for the other")


def refuse_missing(paths: Any) -> None:
    """Raise TiedtoolsError if an input file does not exist, before the first file is read."""
    for path in (path for path in dict.fromkeys(paths) if path != "-"):
        try:
            url_size(path) if is_url(path) else os.stat(path)
        except OSError as error:
            raise unreadable(path, error) from None


def counted(n: Any, noun: str) -> str:
    """Format a count with its noun: "1 word", "2,000 words"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def as_chunks(source: Any) -> Chunks | None:
    """Return Sentences as they are, and an open text file as Chunks; None for anything else."""
    if isinstance(source, Sentences):
        return source
    read: Any = getattr(source, "read", None)
    if not read or not isinstance(first := read(0), str):
        return None
    texts = filter(None, itertools.chain([first], iter(lambda: read(BLOCK), "")))  # some readers ignore the size
    # A surrogate becomes an invalid byte, for which `errors` applies.
    return Chunks(re.sub(UNESCAPED, "\udcff", text).encode("utf-8", "surrogateescape") for text in texts)


@contextlib.contextmanager
def open_source(path: Any) -> Iterator[BinaryIO]:
    """Open a path, a URL, a Part, or a raw.Raw for reading bytes; `-` is standard input.

    gzip, bzip2, xz, and Zstandard are decompressed. Sentences and open files, binary or text, are read from their
    current position and stay open.

    Raises TiedtoolsError for all errors in opening and in reading.
    """
    from xopen import xopen

    if hasattr(path, "pieces"):  # a Raw, whose source is opened in turn
        with contextlib.closing(io.BufferedReader(Chunks(path.pieces(), together=False), BLOCK)) as file:
            yield file
        return
    if raw := as_chunks(path):
        with digests.watched(shown(path), io.BufferedReader(raw, BLOCK)) as watched:
            yield watched
        return
    if path == "-" and not hasattr(sys.stdin, "buffer"):
        raise TiedtoolsError("standard input has no bytes here, as in a notebook; name a file")
    if path == "-" and sys.stdin.isatty():
        log.warning("reading standard input; end it with Ctrl-D")
    source = sys.stdin.buffer if path == "-" else path
    opened = contextlib.nullcontext()
    try:
        if isinstance(path, Part) or is_url(path):
            source = opened = path.open() if isinstance(path, Part) else open_url(path)
        # A Part of a plain file may begin like a compressed file; gzip.open returns a file with the name of one.
        file = source if isinstance(path, (Part, *DECOMPRESSED)) else xopen(source, "rb", threads=0)
    except OSError as error:
        raise unreadable(shown(path), error) from None
    # xopen returns an uncompressed file object unchanged; standard input must stay open.
    with opened, contextlib.nullcontext() if file is source else file:
        try:
            with digests.watched(name_of(path), file) as watched:
                yield watched
        except TiedtoolsError:
            raise
        except Exception as error:
            # The exceptions of the decompressors share no base class.
            corrupt = type(error).__name__ in ("LZMAError", "ZstdError", "IsalError", "error")
            if corrupt or isinstance(error, OSError | EOFError):
                raise unreadable(shown(path), diagnose(error, source, file)) from None
            raise


def diagnose(error: BaseException, source: Any, file: Any) -> Any:
    """Return why reading `file`, opened by xopen from `source`, failed: the exception or a clearer message.

    The gzip libraries report fewer than 10 bytes of trailing data as truncation, so a gzip file is read again.
    """
    at_header = "Not a gzipped file" in str(error)
    if isinstance(file, gzip.GzipFile) and (at_header or isinstance(error, EOFError)):
        trailing = has_trailing_data(source)
        if trailing or trailing is None and at_header:
            return TRAILING.format("gzip")
        if trailing is None:
            return "the gzip data is truncated, or a few bytes follow its end; copy it again"
    if isinstance(error, EOFError):
        return "the compressed data is truncated; copy the file again"
    if "Unknown frame descriptor" in str(error) and file.tell():
        return TRAILING.format("zstd")
    return error


def has_trailing_data(source: Any) -> bool | None:
    """Return whether data follows the last stream of a gzip path or file; None if it cannot be read again."""
    named, has_stream = isinstance(source, str | os.PathLike), False
    if not (os.path.isfile(source) if named else source.seekable()):
        return None
    try:
        if not named:
            source.seek(0)
        with gzip.open(source) as file:
            while file.read1():
                has_stream = True
    except (OSError, EOFError, zlib.error) as error:
        return has_stream and "Not a gzipped file" in str(error)
    return False


def beginning(data: bytes, path: Any) -> bytes:
    """Return the first bytes of a text without a byte order mark. Raises TiedtoolsError for SIGNATURES."""
    if data.removeprefix(codecs.BOM_UTF8).lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        log.warning(f"{shown(path)}: is HTML or XML, whose tags are read as words; convert it to plain text first")
    kind = TAR if is_tar(data) else next((kind for start, kind in SIGNATURES.items() if data.startswith(start)), None)
    if kind:
        raise TiedtoolsError(f"{shown(path)}:1: is {kind}")
    if b"\n" not in data and data.count(b"\r") > max(1, len(data) // 1000):
        log.warning(f"{shown(path)}: its lines end in CR, which does not end a line here; convert it: tr '\\r' '\\n'")
    return data.removeprefix(codecs.BOM_UTF8)


def byte_lines(file: BinaryIO, path: Any) -> Iterator[bytes]:
    """Yield the lines of a binary file; see `beginning`. Raises TiedtoolsError if a line is too long."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
        if len(line) > LONGEST_LINE:
            raise TiedtoolsError(f"{path}:{number}: a line of more than {LONGEST_LINE:,} bytes; is this plain text?")
        if line := beginning(line, path) if number == 1 else line:
            yield line


def decoded_lines(source: Any, errors: str = "strict") -> Iterator[str]:
    """Yield the lines of a text source; `errors` as for Decoder. Raises TiedtoolsError if one cannot be read."""
    with open_source(source) as file, Decoder(source, errors) as decode:
        for line in byte_lines(file, shown(source)):
            yield decode(line)


def numbered_lines(path: Any, most: float | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line) for each line of a small UTF-8 file, without line ends.

    most  maximum size in bytes; None: LARGEST_LIST

    Raises TiedtoolsError with file and line for bytes that are not text, and for a larger file.
    """
    size, most, name = 0, LARGEST_LIST if most is None else most, shown(str(path))
    with open_source(str(path)) as file:
        for number, line in enumerate(byte_lines(file, name), 1):
            size += len(line)
            if size > most:
                raise TiedtoolsError(f"{name}: has more than {most:,} bytes; is this the right file?")
            try:
                line = line.removesuffix(b"\n").decode()
            except UnicodeDecodeError:
                raise TiedtoolsError(f"{name}:{number}: not UTF-8 text; convert it to UTF-8") from None
            if "\0" in line:
                raise TiedtoolsError(f"{name}:{number}: {ZERO_BYTE}")
            yield number, line


def json_lines(path: Any, remedy: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, JSON object) for each nonblank line of a small file. Raises TiedtoolsError for others."""
    for number, line in numbered_lines(path):
        if line.strip():
            try:
                yield number, {**json.loads(line)}
            except (ValueError, TypeError, RecursionError):
                raise TiedtoolsError(f"{shown(str(path))}:{number}: not a JSON object; {remedy}") from None


def blocks(paths: Any, errors: str = "strict", more: bool = False) -> Iterator[tuple[Any, bytes]]:
    """Yield (path, bytes) blocks of about 1 MiB from each of `paths` in turn (none: standard input).

    Each block ends in ASCII whitespace. A missing final newline is added if another file follows, and after the last of
    `paths` if `more` is true. Byte order marks are removed. `errors` as for Decoder.
    """
    previous, unfinished = None, False
    for path in paths or ["-"]:
        if unfinished:
            yield previous, b"\n"
        previous, unfinished = path, False
        with open_source(path) as file, Decoder(path, errors) as decode:
            tail, first = b"", not (isinstance(path, Part) and path.start)
            while data := file.read(BLOCK):
                data, first = tail + (beginning(data, path) if first else data), False
                cut = 1 + max(data.rfind(blank) for blank in (b" ", b"\n", b"\t", b"\r"))
                tail = data[cut:]
                if len(tail) > LONGEST_WORD:
                    what = f"a word of more than {LONGEST_WORD:,} bytes"
                    raise TiedtoolsError(f"{shown(path)}: {what}; is this plain text?")
                if cut:
                    yield path, decode.clean(data[:cut])
                    unfinished = data[cut - 1 : cut] != b"\n"
            if tail:
                yield path, decode.clean(tail) + b" "
                unfinished = True
    if unfinished and more:
        yield previous, b"\n"


class Decoder:
    """Incremental UTF-8 decoder of the text at `path`; as a context manager, it logs invalid sequences at the end.

    errors  handling of invalid UTF-8: "strict" raises TiedtoolsError, "replace" inserts U+FFFD, "ignore" skips it
    line    line number at which the next piece begins
    invalid number of invalid sequences so far; first: the line of the first one
    """

    def __init__(self, path: Any, errors: str) -> None:
        self.path, self.errors = path, errors
        self.line, self.invalid, self.first = 1, 0, 0

    def __enter__(self) -> "Decoder":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.invalid and not kind:
            log_invalid(self.path, self.errors, self.invalid, f"line {lines_before(self.path) + self.first:,}")

    def __call__(self, data: bytes) -> str:
        if b"\0" in data:
            self.refuse(ZERO_BYTE, data, data.index(b"\0"))
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if self.errors == "strict":
                self.refuse(NO_UTF8.format(data[error.start]), data, error.start)
            replaced, text = data.decode("utf-8", "replace"), data.decode("utf-8", self.errors)
            self.invalid += replaced.count("\ufffd") - data.count("\ufffd".encode())
            self.first = self.first or self.line + data.count(b"\n", 0, error.start)
        self.line += data.count(b"\n")
        return text

    def clean(self, data: bytes) -> bytes:
        """Return `data` as valid UTF-8; with "strict" unchanged, since the tokenizer checks it."""
        return data if self.errors == "strict" else self(data).encode()

    def refuse(self, reason: str, data: bytes, offset: int) -> None:
        line = lines_before(self.path) + self.line + data.count(b"\n", 0, offset)
        raise TiedtoolsError(f"{shown(self.path)}:{line}: {reason}") from None


def log_invalid(path: Any, errors: str, n: int, position: str) -> None:
    """Log that n invalid UTF-8 sequences were replaced or skipped, and the position of the first."""
    action = "replaced {} with U+FFFD" if errors == "replace" else "skipped {}"
    log.warning(f"{shown(path)}: {action.format(counted(n, 'invalid UTF-8 sequence'))}, the first in {position}")


@contextlib.contextmanager
def word_errors(path: Any, errors: str) -> Iterator[str]:
    """Yield the `errors` argument with which bytes.decode decodes words of a file; log invalid words at the end."""
    one_of("errors", errors, ERRORS)
    words = []

    def handle(error: Any) -> tuple[str, int]:
        words.append(error.object)
        return "\ufffd" if errors == "replace" else "", error.end

    name = errors if errors == "strict" else f"tiedtools-{errors}"  # words of fastText are decoded later
    if name != errors:
        codecs.register_error(name, handle)
    yield name
    if words:
        log_invalid(path, errors, len(words), f"the word {quoted(words[0])}")
