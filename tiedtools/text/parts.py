"""Divide a text among ranks: byte ranges of plain files that end at line ends, and whole compressed files."""

import bisect
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from tiedtools.base.errors import TiedtoolsError, unreadable
from tiedtools.files.output import split_compression
from tiedtools.text.sentences import Chunks, is_url, open_url, url_size

BLOCK = 1 << 20
PACKED = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"(\xb5/\xfd"  # first bytes of gzip, bzip2, xz, and Zstandard, as in xopen


class Part(NamedTuple):
    """The lines of a plain file whose first byte lies in [start, end).

    name        path or URL of the file
    start, end  byte positions, which need not be line starts
    """

    name: str
    start: int
    end: int

    def open(self) -> BinaryIO:
        """Open the lines as a binary file. Raises OSError or TiedtoolsError."""
        return io.BufferedReader(Chunks(blocks_of(self)), BLOCK)


def blocks_of(part: Part) -> Iterator[bytes]:
    """Yield the lines of a Part in blocks of bytes."""
    with opened(part.name) as file:
        end = line_start(file, part.end)
        left = end - line_start(file, part.start)
        while left and (block := file.read(min(left, BLOCK))):
            yield block
            left -= len(block)


def opened(path: str) -> Any:
    """Open a path or URL for reading bytes as stored. Raises OSError or TiedtoolsError."""
    return open_url(path) if is_url(path) else open(path, "rb")


def line_start(file: BinaryIO, position: int) -> int:
    """Seek to the first line of a binary file that starts at `position` or later; return its position."""
    file.seek(max(0, position - 1))
    while position and (piece := file.readline(BLOCK)) and not piece.endswith(b"\n"):
        pass
    return file.tell()


def lines_before(source: Any) -> int:
    """Return the number of lines before the first line of a Part; 0 for any other source."""
    if not isinstance(source, Part):
        return 0
    return sum(block.count(b"\n") for block in blocks_of(Part(source.name, 0, source.start)))


def size_of(source: Any) -> tuple[int, bool]:
    """Return (stored size in bytes, whether compressed) of a path or URL.

    Raises TiedtoolsError for a source that cannot be divided: standard input, an open file, or a pipe.
    """
    if source == "-" or not isinstance(source, str | os.PathLike):
        name = "standard input" if source == "-" else getattr(source, "name", "file")
        raise TiedtoolsError(f"{name}: cannot be divided among ranks; give files")
    path = os.fspath(source)
    try:
        size = url_size(path) if is_url(path) else os.path.getsize(path)
        if size is None or not (is_url(path) or os.path.isfile(path)):
            what = "not a regular file, or of unknown size, and cannot be divided among ranks"
            raise TiedtoolsError(f"{path}: {what}; give files")
        with opened(path) as file:
            return size, split_compression(path)[1] is not None or file.read(6).startswith(PACKED)
    except OSError as error:
        raise unreadable(path, error) from None


def shares(sources: Sequence[Any], size: int) -> list[list[Any]]:
    """Divide a text, a list of paths and URLs, among `size` ranks; return a list of sources for each rank.

    The shares have about equally many bytes; concatenated in order of rank, they are the text. A plain file is divided
    into Parts. A compressed file is read by a single rank: the rank whose byte range contains the middle of the file.
    With one rank, the share is all sources, of any kind.

    Raises TiedtoolsError if a source cannot be divided, or if a rank would have no bytes.
    """
    if size == 1:
        return [list(sources)]
    sizes = [size_of(source) for source in sources]
    total = sum(n for n, _ in sizes)
    if not total:
        raise TiedtoolsError(f"{', '.join(map(str, sources))}: no words; give a text")
    cuts = [total * rank // size for rank in range(size + 1)]
    divided, filled, offset = [[] for _ in range(size)], set(), 0
    for path, (n, packed) in zip(map(os.fspath, sources), sizes):
        if packed or not n:
            spans = [(min(bisect.bisect_right(cuts, offset + n // 2) - 1, size - 1), 0, n)]
        else:
            ends = enumerate(itertools.pairwise(cuts))
            spans = [(rank, max(start - offset, 0), min(end - offset, n)) for rank, (start, end) in ends]
        for rank, start, end in spans:
            if start < end or not n:
                divided[rank].append(path if end - start == n else Part(path, start, end))
            if start < end:
                filled.add(rank)
        offset += n
    if len(filled) < size:
        remedy = "use fewer ranks" + (", or decompress the files" if any(packed for _, packed in sizes) else "")
        raise TiedtoolsError(f"{size} ranks, but the text has parts for only {len(filled)}; {remedy}")
    return divided
