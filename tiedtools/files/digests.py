"""What is read, by its hash, so that a run can tell what it has seen, and refuse to be repeated with another text."""

import contextlib
import hashlib
import queue
import threading

from tiedtools.errors import TiedtoolsError

BLOCK = 1 << 20
WAITING = 4  # blocks that may wait for their turn: memory must not fill up where reading is faster

recorder = None  # what `recorded` was asked for, while its block lasts


class Digest:
    """SHA-256 and number of bytes; `update` leaves the work to a thread: hashing would cost 5% of reading a text."""

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
        """dict: bytes, sha256."""
        self.blocks.put(None)
        self.thread.join()
        return dict(bytes=self.size, sha256=self.hash.hexdigest())


class Recorder:
    """The sources that were read, in `found`: dicts of path, bytes and sha256, decompressed, in the order of reading.

    expected  the `found` of another run: the first source that differs raises TiedtoolsError at its end. None: anything
    """

    def __init__(self, expected=None):
        self.found, self.expected = [], expected

    def add(self, path, digest):
        self.found.append(dict(path=path, **digest))
        if self.expected is not None and self.found != self.expected[: len(self.found)]:
            raise TiedtoolsError(
                f"{'standard input' if path == '-' else path}: not the text of the recorded run"
                f" (SHA-256 {digest['sha256'][:12]}..., {digest['bytes']:,} bytes): give the one it was trained on,"
                " or train anew with the command itself"
            )


@contextlib.contextmanager
def recorded(expected=None):
    """Record what text.open_source reads within the block; yields the Recorder."""
    global recorder
    before, recorder = recorder, Recorder(expected)
    try:
        yield recorder
    finally:
        recorder = before


class Hashed:
    """A binary file that is read from its beginning to its end, all in blocks or all by lines, into a Digest."""

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
    """The file, or where sources are recorded, one that is; it counts only if the block ends without an exception."""
    if recorder is None:
        yield file
        return
    hashed = Hashed(file)
    try:
        yield hashed
    except BaseException:
        hashed.finish()
        raise
    recorder.add(path, hashed.finish())


def of_file(path):
    """dict of bytes and sha256 of a file as it lies there. Raises OSError."""
    digest = Digest()
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    finally:
        found = digest.finish()
    return found
