"""Any text source as blocks of bytes that end between words."""

import contextlib
import sys

from tiedtools import digests
from tiedtools.errors import TiedtoolsError
from tiedtools.report import say

BLOCK = 1 << 20
LONGEST_WORD = 1 << 20


@contextlib.contextmanager
def open_source(path):
    """Open `path` for reading bytes; `-` is standard input; .gz, .bz2, .xz and .zst are decompressed.

    Raises TiedtoolsError for whatever goes wrong in opening and in reading.
    """
    try:
        if path == "-":
            if sys.stdin.isatty():
                say("reading standard input; end it with Ctrl-D")
            file = contextlib.nullcontext(sys.stdin.buffer)
        else:
            from xopen import xopen

            file = xopen(path, "rb", threads=0)
    except ImportError as error:
        raise TiedtoolsError(f'{path}: {error}; pip install "tiedtools[zst]", or decompress it first') from None
    except OSError as error:
        raise TiedtoolsError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    with file as file:
        try:
            with digests.watched(path, file) as source:
                yield source
        except (OSError, EOFError) as error:
            raise TiedtoolsError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        except Exception as error:
            # The decompressors' own exceptions share no base class.
            if type(error).__name__ in ("LZMAError", "ZstdError", "error"):
                raise TiedtoolsError(f"{path}: cannot be read: {error}") from None
            raise


def numbered_lines(path):
    """(number from 1, line) of each line of a small UTF-8 file, its byte order mark dropped.

    Raises TiedtoolsError naming file and line at bytes that are no text.
    """
    with open_source(str(path)) as file:
        data = file.read()
    try:
        return enumerate(data.decode("utf-8-sig").split("\n"), 1)
    except UnicodeDecodeError as error:
        number = 1 + data.count(b"\n", 0, error.start)
        raise TiedtoolsError(f"{path}:{number}: not UTF-8 text") from None


def blocks(paths, errors="strict"):
    """Yield (path, bytes) from each of `paths` in turn (none: standard input), about a megabyte at a time.

    Each block ends in ASCII white space, and a last line without a newline is given one when another file follows.
    `errors` is what to do with bytes that are no UTF-8: "strict" leaves them for the tokenizer to refuse, "replace"
    puts U+FFFD, "ignore" drops them.
    """
    previous, unfinished = None, False
    for path in paths or ["-"]:
        if unfinished:
            yield previous, b"\n"
        previous, unfinished = path, False
        with open_source(path) as file:
            tail = b""
            while data := file.read(BLOCK):
                data = tail + data
                cut = 1 + max(data.rfind(blank) for blank in (b" ", b"\n", b"\t", b"\r"))
                tail = data[cut:]
                if len(tail) > LONGEST_WORD:
                    raise TiedtoolsError(f"{path}: a word of more than {LONGEST_WORD} bytes; is this plain text?")
                if cut:
                    yield path, clean(data[:cut], errors)
                    unfinished = data[cut - 1 : cut] != b"\n"
            if tail:
                yield path, clean(tail, errors) + b" "
                unfinished = True


def clean(data, errors):
    return data if errors == "strict" else data.decode("utf-8", errors).encode()
