"""Recognize other files that tiedtools writes, and published test sets, for `check`.

A file is recognized by its first lines. Plain text is not recognized, since damaged vectors may look like text.
"""

import os
import re
from collections.abc import Callable, Sized
from typing import NamedTuple

from tiedtools.files import manifest
from tiedtools.text import morphs
from tiedtools.text.sources import json_lines, open_source, shown
from tiedtools.text.vocab import Vocab
from tiedtools.vectors import matrixfiles
from tiedtools.vectors.formats import NUMBER, PEEK

N = f"(?:{NUMBER.pattern.decode()})"
WORD = rf"(?!{N} )[^\t ]+"  # a word that is not a number


class Kind(NamedTuple):
    """A kind of file.

    use   the program that reads or wrote it
    read  function that reads a path, returns its words or None, and raises TiedtoolsError; None: cannot be checked
    """

    name: str
    use: str
    read: Callable[[str], Sized | None] | None = None


def read_manifest(path: str) -> None:
    with open_source(path) as file:
        manifest.loads(file.read(), shown(path))


def read_json(path: str) -> None:
    for _ in json_lines(path, "get the whole file or correct the line"):
        pass


VOCABULARY = Kind("vocabulary", "`-read-vocab` reads it", Vocab.read)
SEGMENTATION = Kind("segmentation", "`--segmentation` of `tiedtools lstm` reads it")
CLASSES = Kind("classes of words", "written by `w2v -classes`")
# Expressions that match the beginning of a file, in order of precedence.
BEGINNINGS = {
    re.escape(manifest.START.decode()): Kind("run manifest", "`tiedtools rerun` reads it", read_manifest),
    r'\{"epoch": ': Kind("training log", "`tiedtools plot curves` reads it", read_json),
    r'\{"line": \d+, "source": ': Kind("attention weights", "`tiedtools plot attention` reads them", read_json),
    r'\{"\w+": ': Kind("JSON", "written by a command with --json", read_json),
    r"# Morfessor Baseline": Kind("morphs", "`tiedtools segment --load` reads them", morphs.read),
    r"# \w+=|words +dim +": Kind("table", "written by a command that evaluates vectors"),
    r"(word\t[^\n]+\tcosine|a\tb\tc\t[^\n]+\tscore)[\t\n]": Kind("table", "written by `nn` or `analogy`"),
    r"file [^\n]*: [\d,]+ sentences, |[^\n]*\n\tp\( ": Kind("perplexity", "written by `tiedtools ppl`"),
    r"\n*(Iter|iter): +\d+|rnnlm file: |test log probability: ": Kind("log of rnnlm", "written by `tiedtools rnnlm`"),
    r"BLEU\|": Kind("BLEU", "written by `tiedtools bleu`"),
    rf": (?!{N}[\t \n])[^\n]+\n": Kind("analogy questions", "`tiedtools eval-analogy --set` reads them"),
    r"\ufffdPNG\n|<\?xml [^>]*>\s*<!DOCTYPE svg|<svg": Kind("picture", "written by `tiedtools plot`"),
}
SCORED = rf"{WORD} {WORD} {N}|[^\t]+\t(?!{N}\t)[^\t]+\t(.*\t)?{N}(\t.*)?|\d+\t[^\t]+\t{N}"
# Expressions that match each of the first lines.
LINES = {
    r"\d+ \|\|\| .* \|\|\| .*": Kind("n-best list", "written by `tiedtools translate`"),
    r"-(\d+\.\d+|inf)|0\.0+": Kind("log probabilities", "written by `tiedtools nbest`"),
    r"[^\t]+\t\d+\t-?\d\.\d+\t[^\t]+": Kind("similar sentences", "written by `tiedtools similar`"),
    SCORED: Kind("words and scores", "`tiedtools eval-sim --set` reads them if they are pairs of words"),
}


def kind_of(start: bytes) -> Kind | None:
    """Return the Kind of a file that begins with the bytes `start`, at least PEEK lines; None if unknown."""
    text = start.decode("utf-8", "replace").replace("\r\n", "\n")
    if kind := next((kind for pattern, kind in BEGINNINGS.items() if re.match(pattern, text)), None):
        return kind
    lines = text.split("\n")
    lines = lines[:-1] or lines
    counts = [re.fullmatch(r"[^\t ]+ (\d+)", line) for line in lines]
    if lines[0].startswith("</s> ") and all(counts):
        counts = [int(count[1]) for count in counts[1:] if count]
        return VOCABULARY if counts == sorted(counts, reverse=True) else CLASSES
    lines = lines[:PEEK]
    if all(map(is_segmentation, lines)):
        return SEGMENTATION
    return next((kind for pattern, kind in LINES.items() if all(re.fullmatch(pattern, line) for line in lines)), None)


def is_segmentation(line: str) -> bool:
    """Return whether a line is `word<TAB>sub sub`; syllables lack the hyphens of the word."""
    word, tab, subwords = line.partition("\t")
    return bool(tab) and subwords.replace(" ", "") in (word, word.replace("-", ""))


def matrix_of(path: str) -> str | None:
    """Return the path of the matrix that belongs to a .words or metadata file at `path`; None if there is none."""
    if path.endswith(".words"):
        matrices = [path.removesuffix("words") + extension for extension in ("npy", "safetensors")]
    else:
        folder, name = os.path.split(path)
        names = [name.replace("metadata", "vectors", 1), name.replace("metadata", "tensor", 1)]
        names.append(name.replace(".metadata", ""))
        matrices = [os.path.join(folder, name) for name in names]
        matrices = [matrix for matrix in matrices if matrix != path and matrixfiles.metadata_path(matrix) == path]
    return next(filter(os.path.exists, matrices), None)
