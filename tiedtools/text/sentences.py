"""Sources of text other than paths: sentences as lists of words, open files, and URLs (s3://, gs://, file://, ...)."""

import contextlib
import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from tiedtools.base.errors import Contradiction, Mistyped, NotFound, TiedtoolsError, brief, library, quoted, unreadable

BLANKS = "\t\n\v\f\r "  # the only characters that separate words
WORD = re.compile(f"[^{BLANKS}]+")
LONGEST_WORD = 1 << 20
URL = re.compile(r"[A-Za-z][\w+.:-]*://")  # also fsspec's chains, as in simplecache::s3://
# fsspec raises these without an error number.
NUMBERS: dict[type, int] = {
    FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES, IsADirectoryError: errno.EISDIR,
}  # fmt: skip


def sources(source: Any) -> list[Any]:
    """Return the list of texts that make up a source.

    source  a path, a list of paths, an open file (binary, possibly compressed, or text), or an iterable of sentences,
            each an iterable of words. A string is always a path.

    Raises FileNotFoundError for a string that is not an existing path and does not look like one, and TypeError for
    anything else.
    """
    if isinstance(source, (str, os.PathLike)):
        if isinstance(source, str) and is_absent(source) and (" " in source.strip() or not re.search("[./]", source)):
            example = f"[{quoted(' '.join(source.split()[:3]))}.split(), ...]"
            remedy = f"check the name or, in Python, pass a text as sentences, {example}"
            raise NotFound(f"{quoted(source)}: no such file; {remedy}")
        return [os.fspath(source)]
    if isinstance(source, bytes):
        raise Mistyped("expected a path, a file, or an iterable of sentences, found bytes; decode them")
    if hasattr(source, "read"):
        if getattr(source, "closed", False):
            raise Contradiction(f"{getattr(source, 'name', 'file')}: is closed; give an open file")
        if callable(readable := getattr(source, "readable", None)) and not readable():
            raise Contradiction(f"{getattr(source, 'name', 'file')}: is open for writing; open it for reading")
        return [source]
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, (str, os.PathLike)) for item in source):
        paths = [os.fspath(path) for path in source]
        named = [bool(re.search(r"/|\.\w", path)) for path in paths]  # they look like paths
        if is_absent(paths[0]) and not named[0] and (" " in paths[0] or len(paths) > 1 and not any(named)):
            remedy = "check the name; in Python, a list of strings is a list of paths, a text a list of lists of words"
            raise NotFound(f"{paths[0]}: no such file; {remedy}")
        return paths
    return [Sentences(source)]


def is_absent(path: str) -> bool:
    """Return whether a path is not an existing file, a URL, or standard input."""
    return not (path == "-" or is_url(path) or os.path.exists(path))


class Chunks(io.RawIOBase):
    """Binary file of the chunks of an iterator of bytes; each chunk is requested when it is read.

    together  a read returns several chunks if there is room for them
    """

    chunks: Any = None  # if the constructor of a subclass fails

    def __init__(self, chunks: Iterator[bytes], together: bool = True) -> None:
        self.chunks, self.rest, self.together = chunks, memoryview(b""), together

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = 0
        while n < len(buffer):
            if not self.rest and (n == 0 or self.together):
                self.rest = memoryview(next(self.chunks, b""))
            if not self.rest:
                break
            part, self.rest = self.rest[: len(buffer) - n], self.rest[len(buffer) - n :]
            buffer[n : n + len(part)] = part
            n += len(part)
        return n

    def close(self) -> None:
        if not self.closed and hasattr(self.chunks, "close"):
            self.chunks.close()
        super().close()


class Sentences(Chunks):
    """Sentences read as a text file: UTF-8, one sentence per line, words separated by spaces.

    A generator is consumed once and never held in memory.

    sentences  an iterable of iterables of words (str)
    raw        whether a sentence may be a string, a line of raw text

    Raises TiedtoolsError, with the number of the sentence, for a sentence that is not a list of words.
    """

    name, raw = "sentences", False

    def __init__(self, sentences: Any) -> None:
        if getattr(sentences, "gi_frame", True) is None:
            raise Contradiction("sentences: this generator is exhausted; recreate it, or give a list of sentences")
        what = f"expected a path, a file, or an iterable of sentences, found {type(sentences).__name__}"
        if isinstance(sentences, Mapping) or hasattr(sentences, "columns"):  # a data frame is iterated by their names
            raise Mistyped(f"{what}; give one of its columns")
        try:
            numbered = enumerate(sentences, 1)
        except TypeError:
            raise Mistyped(f"{what}; give one of them") from None
        split = lambda sentence: WORD.findall(sentence) if self.raw and isinstance(sentence, str) else sentence
        super().__init__(as_line(number, split(sentence)) for number, sentence in numbered)

    def __str__(self) -> str:
        return self.name


def words_of(text: Any) -> list[str]:
    """Return the words of a string, or of an iterable of words, as a list. Raises TiedtoolsError for anything else."""
    if isinstance(text, str):
        return WORD.findall(text)
    words = list(text) if isinstance(text, Iterator) else text
    return as_line(1, words) and list(words)  # type: ignore[return-value]


def as_line(number: int, sentence: Any) -> bytes:
    """Return a sentence as a line of UTF-8 text. Raises TiedtoolsError unless it consists of words."""
    where, kind = f"{Sentences.name}:{number}", type(sentence).__name__
    if isinstance(sentence, (str, bytes, Mapping, set, frozenset)) or not hasattr(sentence, "__iter__"):
        remedy = "split it into words" if isinstance(sentence, str) else "give lists of str"
        remedy = "give the words of one field" if isinstance(sentence, Mapping) else remedy
        missing = sentence is None or isinstance(sentence, float) and sentence != sentence
        remedy = "drop missing values" if missing else remedy
        raise Mistyped(f"{where}: a sentence is a list of words, not {kind} {quoted(sentence)}; {remedy}")
    words = list(sentence)
    with contextlib.suppress(TypeError, UnicodeEncodeError):
        line = " ".join(words).encode()
        # bytes.split separates at the characters that separate words in a text file.
        whole = line.split() == [word.encode() for word in words]
        if whole and b"\0" not in line and len(line) <= LONGEST_WORD:
            return line + b"\n"
    for word in words:  # one may be wrong
        if not isinstance(word, str):
            raise Mistyped(f"{where}: a word is a str, not {type(word).__name__} {quoted(word)}; convert it")
        try:
            data = word.encode()
        except UnicodeEncodeError:
            raise Contradiction(f"{where}: {quoted(word)} is not valid Unicode; decode the text as UTF-8") from None
        if data.split() != [data] or b"\0" in data:
            what = "is empty or contains whitespace or a zero byte"
            raise Contradiction(f"{where}: {quoted(word)} {what}; split or remove it")
        if len(data) > LONGEST_WORD:
            raise Contradiction(f"{where}: a word of more than {LONGEST_WORD:,} bytes; is this plain text?")
    return line + b"\n"


def is_url(source: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and URL.match(source) is not None


def open_url(url: str) -> BinaryIO:
    """Open the file at a URL for reading bytes. All errors in opening and in reading are TiedtoolsErrors."""
    return io.BufferedReader(Remote(url), 1 << 20)


def url_size(url: str) -> int | None:
    """Return the size of the file at a URL in bytes, None if unknown. Raises TiedtoolsError if it is missing."""
    with translate_errors(url):
        system, path = resolve(url)
        return system.info(path).get("size")


def resolve(url: str) -> tuple[Any, str]:
    """Resolve a URL to (fsspec file system, path)."""
    return library("fsspec.core", f"{url}: needs fsspec", "remote").url_to_fs(url)


@contextlib.contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Raise TiedtoolsError for any error in the block, since the exceptions of file systems share no base class."""
    try:
        yield
    except (TiedtoolsError, MemoryError):
        raise
    except ImportError as error:
        needed = error.name.partition(".")[0] if error.name else '"tiedtools[remote]"'
        raise TiedtoolsError(f"{url}: {brief(error)}; pip install {needed}") from None
    except Exception as error:
        if number := NUMBERS.get(type(error)):
            error = OSError(number, os.strerror(number))
        elif not getattr(error, "strerror", None):
            name = brief(error) or type(error).__name__
            error = OSError(f"{name}; check the URL, the credentials, and the network")
        raise unreadable(url, error) from None


class Remote(io.RawIOBase):
    """Unbuffered reader of the file at a URL."""

    file: Any = None

    def __init__(self, url: str) -> None:
        self.url = url
        with translate_errors(url):
            system, path = resolve(url)
            self.file = system.open(path, "rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.file.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with translate_errors(self.url):
            return self.file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with translate_errors(self.url):
            data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self.file:
            self.file.close()
        super().close()
