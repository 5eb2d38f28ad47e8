"""The table of the file formats of vectors. It imports no NumPy, so that `--help` can list them."""

import importlib
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

PEEK = 10  # number of rows that determine a layout
NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)
SPACES = "[ \t\n\r]"


class Format(NamedTuple):
    """A file format of vectors; functions are named "module:function" and imported on use.

    read        function of the Rows of a file, which reads the file into them; see `tiedtools.vectors.rows`
    write       function (binary file, words, matrix); with two files (file, matrix), for the matrix alone
    extensions  extensions of written files
    unwritable  regular expression that matches within words that could not be read back
    by_name     whether the extension also decides how a file is read; otherwise its first line does
    two_files   whether the words are in a separate file; see `tiedtools.vectors.matrixfiles`
    """

    read: str
    write: str
    extensions: tuple[str, ...]
    unwritable: str
    by_name: bool = True
    two_files: bool = False


STREAMS = "tiedtools.vectors.streams"
FASTTEXT = "tiedtools.vectors.fasttext"
MATRICES = "tiedtools.vectors.matrixfiles"
# Other programs split lines of text at all spaces, and lines of GloVe at the last E spaces, so that a number at the end
# of a word would become part of the vector.
FORMATS = {
    "text": Format(f"{STREAMS}:read", f"{STREAMS}:write_text", (".txt", ".vec", ".w2v"), SPACES, by_name=False),
    "binary": Format(f"{STREAMS}:read", f"{STREAMS}:write_binary", (".bin",), SPACES, by_name=False),
    "glove": Format(
        f"{STREAMS}:read", f"{STREAMS}:write_glove", (".glove",), rf"\n|[ \t](?:{NUMBER.pattern.decode()})?\Z", False
    ),
    "fasttext": Format(f"{FASTTEXT}:read", f"{FASTTEXT}writer:write", (".ftz",), "[ \t-\r\0]", by_name=False),
    "npy": Format(f"{MATRICES}:read_npy", f"{MATRICES}:write_npy", (".npy",), r"\n|\r\Z", two_files=True),
    "safetensors": Format(
        f"{MATRICES}:read_safetensors", f"{MATRICES}:write_safetensors", (".safetensors",), r"\n|\r\Z", two_files=True
    ),
    "tsv": Format(f"{MATRICES}:read_tsv", f"{MATRICES}:write_tsv", (".tsv",), r"[\t\n]|\r\Z", two_files=True),
}


def function(name: str) -> Callable[..., Any]:
    """Import and return the function named "module:function"."""
    module, _, attribute = name.partition(":")
    target: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return target


def extensions(by_name: bool = False) -> dict[str, str]:
    """Return {extension: format} of written files; `by_name`: only those that also decide how a file is read."""
    return {
        extension: name
        for name, format in FORMATS.items()
        for extension in format.extensions
        if format.by_name or not by_name
    }


def format_by_name(path: str) -> str | None:
    """Return the format that a file's extension determines; None: its first line determines it."""
    return extensions(by_name=True).get(os.path.splitext(path)[1])


def read(rows: Any, format: str | None = None) -> None:
    """Read the file of `rows` in a format; None: detect it by the extension, the first bytes, or the first line."""
    if format is None and function("tiedtools.vectors.foreign:is_fasttext")(rows.path):
        format = "fasttext"
    function(FORMATS[format or format_by_name(rows.path) or "text"].read)(rows, format)
