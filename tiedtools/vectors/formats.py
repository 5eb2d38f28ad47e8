"""The table of the file formats of vectors. It imports no NumPy, so that `--help` can list them."""

import os
import pkgutil
import re
from typing import Any, NamedTuple

from tiedtools.base.errors import TiedtoolsError

PEEK = 10  # number of rows that determine a layout
NUMBER = re.compile(rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
SPACES = "[ \t\n\r]"


class Format(NamedTuple):
    """A file format of vectors; functions are named "module:function" and imported on use.

    read        function of the Rows of a file, which reads the file into them; see `tiedtools.vectors.rows`
    write       function (binary file, words, matrix); with two files (file, matrix, dtype), for the matrix alone; for a
                folder (path, words, matrix, dtype)
    extensions  extensions of written files
    unwritable  regular expression that matches within words that could not be read back
    by_name     whether the extension also decides how a file is read; otherwise its first line does
    two_files   whether the words are in a separate file; see `tiedtools.vectors.matrixfiles`
    dtypes      types of the numbers that can be written
    """

    read: str
    write: str
    extensions: tuple[str, ...]
    unwritable: str
    by_name: bool = True
    two_files: bool = False
    dtypes: tuple[str, ...] = ("float32",)


STREAMS = "tiedtools.vectors.streams"
FASTTEXT = "tiedtools.vectors.fasttext"
MATRICES = "tiedtools.vectors.matrixfiles"
STATIC = "tiedtools.vectors.staticfolder"
FOLDER = "model2vec"  # the format of folders
DTYPES = "float32", "float16"
# Other programs split lines of text at all spaces, and lines of GloVe at the last E spaces, so that a number at the end
# of a word would become part of the vector.
LISTED = r"\n|\r\Z", True, True, DTYPES  # of a matrix and a list of words
FORMATS = {
    "text": Format(f"{STREAMS}:read", f"{STREAMS}:write_text", (".txt", ".vec", ".w2v"), SPACES, by_name=False),
    "binary": Format(f"{STREAMS}:read", f"{STREAMS}:write_binary", (".bin",), SPACES, by_name=False),
    "glove": Format(f"{STREAMS}:read", f"{STREAMS}:write_glove", (".glove",),
                    rf"\n|[ \t](?:{NUMBER.pattern.decode()})?\Z", by_name=False),
    "fasttext": Format(f"{FASTTEXT}:read", f"{FASTTEXT}writer:write", (".ftz",), "[ \t-\r\0]", by_name=False),
    "npy": Format(f"{MATRICES}:read_npy", f"{MATRICES}:write_npy", (".npy",), *LISTED),
    "safetensors": Format(f"{MATRICES}:read_safetensors", f"{MATRICES}:write_safetensors", (".safetensors",), *LISTED),
    "tsv": Format(f"{MATRICES}:read_tsv", f"{MATRICES}:write_tsv", (".tsv",), r"[\t\n]|\r\Z", two_files=True),
    FOLDER: Format(f"{STATIC}:read", f"{STATIC}:write", (), SPACES, dtypes=DTYPES),
}  # fmt: skip


def extensions(by_name: bool = False) -> dict[str, str]:
    """Return {extension: format} of written files; `by_name`: only those that also decide how a file is read."""
    formats = {name: format for name, format in FORMATS.items() if format.by_name or not by_name}
    return {extension: name for name, format in formats.items() for extension in format.extensions}


def format_by_name(path: str) -> str | None:
    """Return the format of a folder, or that a file's extension determines; None: its first line determines it."""
    if os.path.isdir(path) or path.endswith("/"):
        return FOLDER
    return extensions(by_name=True).get(os.path.splitext(path)[1])


def read(rows: Any, format: str | None = None) -> None:
    """Read the file of `rows` in a format; None: detect it by the extension, the first bytes, or the first line.

    Raises TiedtoolsError; of a file that does not have the chosen format, it suggests to omit it.
    """
    kind = format or format_by_name(rows.path) or "text"
    if format is None and pkgutil.resolve_name("tiedtools.vectors.rows:is_fasttext")(rows.path):
        kind = "fasttext"
    try:
        pkgutil.resolve_name(FORMATS[kind].read)(rows, format)
    except TiedtoolsError as error:
        if format is None or isinstance(error, OSError):
            raise
        raise TiedtoolsError(f"{error}, or omit `format={format}`") from None
