"""Hashes of input files, recorded in run manifests and verified when a run is repeated."""

import contextlib
import contextvars
import hashlib
import queue
import threading

from tiedtools.base.errors import TiedtoolsError

BLOCK = 1 << 20
WAITING = 4  # maximum number of queued blocks; bounds memory if reading is faster than hashing

# The Recorder of the active `recorded` block.
recorder: contextvars.ContextVar["Recorder | None"] = contextvars.ContextVar("recorder", default=None)


class Digest:
    """SHA-256 and size of a byte stream.

    A thread does the hashing, which would otherwise add 5% to the time to read a text.
    """

    def __init__(self):
        self.hash, self.size = hashlib.sha256(), 0
        self.blocks = queue.Queue(WAITING)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while block := self.blocks.get():
            self.hash.update(block)

    def update(self, block):
        if block:
            self.size += len(block)
            self.blocks.put(block)

    def finish(self):
        """Return the dict(bytes, sha256) and stop the thread."""
        self.blocks.put(None)
        self.thread.join()
        return dict(bytes=self.size, sha256=self.hash.hexdigest())


class Recorder:
    """Record of the sources read: `found` lists dicts of path, bytes, and sha256 in reading order.

    Sizes and hashes are of the decompressed data.

    expected  `found` of an earlier run; the first source that differs raises TiedtoolsError once it has been read.
              None: accept any source
    """

    def __init__(self, expected=None):
        self.found, self.expected = [], expected

    def add(self, path, digest):
        self.found.append(dict(path=path, **digest))
        if self.expected is not None and self.found != self.expected[: len(self.found)]:
            raise TiedtoolsError(
                f"{'standard input' if path == '-' else path}: not the text of the recorded run"
                f" (SHA-256 {digest['sha256'][:12]}..., {digest['bytes']:,} bytes); give the original text,"
                " or run the training command itself"
            )


@contextlib.contextmanager
def recorded(expected=None):
    """Record the sources that `open_source` reads within the block; yields the Recorder."""
    active = Recorder(expected)
    token = recorder.set(active)
    try:
        yield active
    finally:
        recorder.reset(token)


class Hashed:
    """Wrapper of a binary file that hashes what is read.

    The file is read from start to end, either with `read` only or with `readline` only.
    """

    def __init__(self, file):
        self.file, self.digest, self.lines, self.held = file, Digest(), [], 0

    def read(self, size=-1):
        data = self.file.read(size)
        self.digest.update(data)
        return data

    def readline(self, size=-1):
        line = self.file.readline(size)
        self.lines.append(line)
        self.held += len(line)
        if self.held > BLOCK:
            self.pass_on()
        return line

    def pass_on(self):
        self.digest.update(b"".join(self.lines))
        self.lines, self.held = [], 0

    def finish(self):
        self.pass_on()
        return self.digest.finish()


@contextlib.contextmanager
def watched(path, file):
    """Yield `file`, wrapped in Hashed if sources are being recorded.

    The source is recorded only if the block ends without an exception.
    """
    active = recorder.get()
    if active is None:
        yield file
        return
    hashed = Hashed(file)
    try:
        yield hashed
    except BaseException:
        hashed.finish()
        raise
    active.add(path, hashed.finish())


def of_file(path):
    """Return the dict(bytes, sha256) of a file as stored, without decompression. Raises OSError."""
    digest = Digest()
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    finally:
        found = digest.finish()
    return found
