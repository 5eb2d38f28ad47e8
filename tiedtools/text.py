"""Any text source as blocks of bytes that end between words."""

import contextlib
import sys

from tiedtools.errors import TiedtoolsError

BLOCK = 1 << 20
LONGEST_WORD = 1 << 20


@contextlib.contextmanager
def open_source(path):
    """Open `path` for reading bytes; `-` is standard input; .gz, .bz2, .xz and .zst are decompressed.

    Raises TiedtoolsError for whatever goes wrong in opening and in reading.
    """
    if path == "-":
        yield sys.stdin.buffer
        return
    from xopen import xopen

    try:
        with xopen(path, "rb", threads=0) as file:
            yield file
    except ImportError as error:
        raise TiedtoolsError(f"{path}: no reader for this compression here: {error}") from None
    except (OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "unreadable"
        raise TiedtoolsError(f"{path}: cannot be read: {reason}") from None
    except Exception as error:
        # lzma.LZMAError, zlib.error and zstandard.ZstdError share no base class.
        if type(error).__module__.split(".")[0] in ("_lzma", "lzma", "zlib", "zstandard", "isal", "compression"):
            raise TiedtoolsError(f"{path}: damaged compressed file: {error}") from None
        raise


def blocks(paths, errors="strict"):
    """Yield (path, bytes) from each of `paths` in turn (none: standard input), about a megabyte at a time.

    Each block ends in ASCII white space, and a file whose last line has no newline is given one when another
    file follows. `errors` is what to do with bytes that are no UTF-8: "strict" leaves them for the tokenizer to
    refuse, "replace" puts U+FFFD, "ignore" drops them.
    """
    newline_due = False
    for path in paths or ["-"]:
        with open_source(path) as file:
            tail = b""
            while data := file.read(BLOCK):
                if newline_due:
                    yield path, b"\n"
                    newline_due = False
                data = tail + data
                cut = 1 + max(data.rfind(blank) for blank in (b" ", b"\n", b"\t", b"\r"))
                tail = data[cut:]
                if len(tail) > LONGEST_WORD:
                    raise TiedtoolsError(f"{path}: a word of more than {LONGEST_WORD} bytes; is this plain text?")
                if cut:
                    yield path, clean(data[:cut], errors)
                    newline_due = data[cut - 1 : cut] != b"\n"
            if tail:
                yield path, clean(tail, errors) + b" "
                newline_due = True


def clean(data, errors):
    return data if errors == "strict" else data.decode("utf-8", errors).encode()
