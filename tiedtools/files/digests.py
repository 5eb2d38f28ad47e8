"""Hashes of input files, recorded in run manifests and verified when a run is repeated."""

import contextlib
import contextvars
import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, BinaryIO

from tiedtools.base.errors import TiedtoolsError

BLOCK = 1 << 20
recorder = contextvars.ContextVar["Recorder | None"]("recorder", default=None)  # the one whose block is active


class Hashed:
    """Wrapper of a binary file that computes the SHA-256 and size of the data read.

    A thread does the hashing, which would otherwise add 5% to the time to read a text.
    """

    def __init__(self, file: BinaryIO, thread: ThreadPoolExecutor) -> None:
        self.file, self.hash, self.size, self.thread = file, hashlib.sha256(), 0, thread
        self.data, self.hashing = bytearray(), set[Future[None]]()  # not yet hashed; being hashed, at most one block

    def read(self, size: int = -1) -> bytes:
        return self.add(self.file.read(size))

    def readline(self, size: int = -1) -> bytes:
        return self.add(self.file.readline(size))

    def add(self, data: bytes) -> bytes:
        self.data += data
        self.size += len(data)
        if len(self.data) > BLOCK:
            wait(self.hashing)
            self.hashing, self.data = {self.thread.submit(self.hash.update, self.data)}, bytearray()
        return data

    def finish(self) -> dict[str, Any]:
        """Return dict(bytes, sha256)."""
        wait(self.hashing)
        self.hash.update(self.data)
        return dict(bytes=self.size, sha256=self.hash.hexdigest())


class Recorder:
    """Context manager that records the sources read by `open_source` within the block.

    `found` lists dicts of path, bytes, and sha256 in reading order. Sizes and hashes are of the decompressed data.

    expected  `found` of an earlier run; the first source that differs raises TiedtoolsError after it is read.
              None: accept any source
    """

    def __init__(self, expected: list[dict[str, Any]] | None = None) -> None:
        self.found, self.expected = [], expected

    def __enter__(self) -> "Recorder":
        self.token = recorder.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        recorder.reset(self.token)

    def add(self, path: str, digest: dict[str, Any]) -> None:
        self.found.append(dict(path=path, **digest))
        if self.expected is not None and self.found != self.expected[: len(self.found)]:
            what = f"not the text of the recorded run (SHA-256 {digest['sha256'][:12]}..., {digest['bytes']:,} bytes)"
            remedy = "give the original text, or run the training command itself"
            raise TiedtoolsError(f"{'standard input' if path == '-' else path}: {what}; {remedy}")


@contextlib.contextmanager
def watched(path: str, file: BinaryIO) -> Iterator[Any]:
    """Yield `file`, wrapped in Hashed if sources are being recorded.

    The source is recorded only if the block ends without an exception.
    """
    active = recorder.get()
    if active is None:
        yield file
        return
    with ThreadPoolExecutor(1) as thread:
        hashed = Hashed(file, thread)
        yield hashed
        active.add(path, hashed.finish())


def of_file(path: str) -> dict[str, Any]:
    """Return dict(bytes, sha256) of a file as stored, without decompression. Raises OSError."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
        return dict(bytes=file.tell(), sha256=hashed.hexdigest())
