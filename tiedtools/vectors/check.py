"""Check vector files for errors: the readers report to a Check, which continues after most problems."""

import codecs
import collections
import contextlib
import itertools
import os
import re
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError, printable, quoted
from tiedtools.files import manifest, modelfile
from tiedtools.text import morphs
from tiedtools.text.sentences import is_url
from tiedtools.text.sources import counted, json_lines, open_source, shown
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors import formats, matrixfiles
from tiedtools.vectors.formats import NUMBER, PEEK
from tiedtools.vectors.modelvectors import find_model, read_model
from tiedtools.vectors.norms import blocks
from tiedtools.vectors.rows import ROW, Rows
from tiedtools.vectors.runs import SLICES
from tiedtools.vectors.streams import VectorReader

POSITION = re.compile(r"^:\d+|^: row \d+")  # after the path, in a message
# Unicode whitespace that some readers treat as a field separator, invisible characters, and control characters.
ODD = re.compile("[\\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2060\ufeff]")
NEVER_PREDICTED = END, END.encode()  # word2vec's output vectors start at 0, and the one of </s> may stay 0
# A vector with negative values and a larger Euclidean norm indicates diverged training: skip-gram vectors trained on 17
# million words of Wikipedia have norms of .5 to 32. Vectors of raw counts, which are nonnegative, may be larger.
LARGEST_NORM = 1e4
USES = {
    modelfile.CHECKPOINT: ("checkpoint", "`--checkpoint` with `--resume` continues from it"),
    "runs": ("file of runs", "`nn`, `cosine`, and `stability` of `tiedtools` read it"),
}


class Check(Rows):
    """Problems found in a vector file; the constructor runs the check.

    format    one of FORMATS, or "model"; None: detected, as by Vectors.read; the result may then also be the name of
              one of the kinds of file below
    use       the program that reads or wrote a file of another kind; empty for vectors and models
    checked   whether the content was checked; some kinds of file are only recognized
    problems  dict: kind -> list of (position, problem), at most the first `examples`; position is ":LINE", ": row ROW",
              or ""
    counts    Counter: kind -> number of problems
    rows      number of rows read
    E         dimension of most rows; None if unreadable
    """

    def __init__(self, path: str, format: str | None = None, examples: int = 3) -> None:
        super().__init__(path, "surrogateescape", skip=True)
        self.examples, self.requested = examples, format
        self.problems, self.counts = {}, collections.Counter()
        self.rows, self.seen, self.use, self.checked = 0, {}, "", True
        self.format = format or formats.format_by_name(path)
        try:
            if not format and any(map(os.path.exists, runs := slices_of(path))):
                self.format, self.checked, self.use = "slices", False, "`tiedtools shift FOLDER` reads them"
                for missing in itertools.filterfalse(os.path.exists, runs):
                    self.oddity("missing", "", f"lists {os.path.basename(missing)}, which does not exist")
            elif model := find_model(path):
                self.check_model(*model)
            elif not format and (matrix := matrix_of(path)):
                self.format, self.checked = "list of words", False
                self.use = f"`tiedtools check {matrix}` checks it with its vectors"
            else:
                formats.read(self, format)
        except TiedtoolsError as error:
            message = str(error).removeprefix(printable(shown(path)))
            position = "".join(POSITION.findall(message))
            self.oddity("unreadable", position, message.removeprefix(position).removeprefix(": "))

    def problem(
        self, position: str, what: str, remedy: str, kind: str = "unreadable", level: str = ROW, path: str | None = None
    ) -> None:
        if kind == "unreadable":  # ends the check
            raise TiedtoolsError(f"{shown(path or self.path)}{position}: {what}; {remedy}")
        if kind:  # of another file: "vectors.npy: vectors.vocab:3 has ..."
            self.oddity(kind, "" if path else position, f"{path}{position} {what}" if path else what)

    def oddity(self, kind: str, position: str, what: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= self.examples:
            self.problems.setdefault(kind, []).append((position, printable(what)))

    def check_model(self, path: str, which: str) -> None:
        self.format = "model"
        if modelfile.is_rnnlm(path):
            return self.check_matrix(*read_model(path, which))
        header, arrays = modelfile.read(path, expected="runs" if path.endswith(".runs") else "model")
        for name, array in arrays.items():
            if name != "emb_in" and array.dtype.kind == "f" and not np.isfinite(array).all():
                self.oddity("not finite", "", f"the array {name} has values that are nan or infinite")
        if header.get("kind") not in USES or which != "in":
            return self.check_matrix(*read_model(path, which))
        self.format, self.use = USES[header["kind"]]

    def whole(self, words: list[Any], matrix: np.ndarray, words_path: str) -> None:
        if len(words) != len(matrix) and self.format != "npy":
            return super().whole(words, matrix, words_path)
        if len(words) != len(matrix):
            rows = counted(len(matrix), "row")
            self.oddity("header", "", f"has {rows}, but {words_path} has {counted(len(words), 'word')}")
        self.check_matrix(words, matrix)

    def check_matrix(self, words: list[Any], matrix: np.ndarray) -> None:
        self.rows, self.E = matrix.shape
        padded = words + [""] * (len(matrix) - len(words))
        for start, numbers in blocks(matrix):  # as readers convert them
            self.add_numbers(numbers, ": row ", start + 1, padded[start : start + len(numbers)])
        self.add_words(words, ": row ", 1)

    def recognize(self, reader: VectorReader) -> bool:
        """Return whether a stream may have vectors. A file of another Kind is checked here."""
        start = reader.rest
        if not start:
            self.oddity("empty", "", "is empty")
            return False
        super().recognize(reader)
        if not self.requested and (kind := kind_of(reader.first_lines())):
            self.format, self.use = kind.name, kind.use
            self.checked = kind.read is not None and (os.path.isfile(self.path) or is_url(self.path))
            if kind.read and self.checked:
                self.rows = len(kind.read(self.path) or ())
            return False
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.oddity("encoding", ":1", "is UTF-16; convert it to UTF-8")
            return False
        if start.startswith(codecs.BOM_UTF8):
            self.oddity("bom", ":1", "starts with a byte order mark")
            reader.rest = reader.rest.removeprefix(codecs.BOM_UTF8)
        return True

    def dimension(self, common: int, first: int) -> int:
        if common and self.E not in (None, common):
            self.oddity("header", ":1", f"the header gives {self.E} numbers per word, but most rows have {common}")
        return common

    def begin(self, V: float, E: int) -> None:
        self.E = E

    def room(self, n: int) -> np.ndarray:
        return np.empty((n, self.E), np.float32)

    def add(self, words: list[bytes], numbers: np.ndarray, place: str, number: int) -> None:
        self.add_words(words, place, number)
        self.add_numbers(numbers, place, number, words)
        self.rows += len(words)

    def bad_line(self, line: bytes, position: str, error: ValueError) -> None:
        self.rows += 1
        fields = line.split()
        complete = len(fields) == self.E + 1 and all(NUMBER.fullmatch(field) for field in fields[1:])
        self.oddity("not finite" if complete else "ragged", position, str(error))
        self.add_words(fields[:1], ":", int(position[1:]))

    def block(self, text: bytes, first: int) -> None:
        """Report carriage returns, tabs, and repeated spaces; word2vec itself writes a space before LF."""
        if not (b"\r" in text or b"\t" in text or b"  " in text):
            return
        for number, line in enumerate(text.split(b"\n"), first):
            fields = line.removesuffix(b"\r")
            if fields != line:
                self.oddity("crlf", f":{number}", "ends in CR LF")
            if b"\t" in fields and not self.tabs or b"  " in fields:
                self.oddity("blanks", f":{number}", "has tabs or repeated spaces between fields")

    def add_words(self, words: list[Any], place: str, number: int) -> None:
        """Check words, all str or all bytes, at the positions PLACE NUMBER, PLACE NUMBER + 1, ...

        If none is odd, all are checked at once.
        """
        new = dict(zip(words, itertools.count(number)))
        if words and len(new) == len(words) and self.seen.keys().isdisjoint(new) and all(words):
            with contextlib.suppress(UnicodeError):
                text = "".join(words) if isinstance(words[0], str) else b"".join(words).decode()
                text.encode()  # fails for undecoded bytes
                if " " not in text and (text.isprintable() or not ODD.search(text)):
                    self.seen |= new
                    return
        for k, word in enumerate(words, number):
            if word is not None:  # of a line that was reported
                self.check_word(word, place, k)

    def check_word(self, word: str | bytes, place: str, number: int) -> None:
        position, first = f"{place}{number}", self.seen.setdefault(word, number)
        word = word.encode("utf-8", "surrogateescape") if isinstance(word, str) else word
        if first != number:
            self.oddity("duplicate", position, f"{quoted(word)} was already defined at {place.lstrip(': ')}{first}")
        try:
            text = word.decode()
        except UnicodeDecodeError:
            return self.oddity("encoding", position, f"the word {quoted(word)} is not UTF-8")
        if not word:
            self.oddity("blanks", position, "has no word")
        elif odd := ODD.search(text):
            what = f"the word {text!a:.60} contains U+{ord(odd[0]):04X}, a space or control character"
            self.oddity("odd word", position, what)

    def add_numbers(self, matrix: np.ndarray, place: str, number: int, words: list[Any]) -> None:
        """Check the rows of a matrix (V, E) at the positions PLACE NUMBER, PLACE NUMBER + 1, ..."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ve,ve->v", matrix, matrix)  # in float32, which may round, overflow, or underflow
        for row in np.flatnonzero(~((1e-30 < squares) & (squares < LARGEST_NORM**2 * 0.99))).tolist():
            norm = np.linalg.norm(matrix[row].tolist())  # float64, without warnings
            if words[row] is None:
                continue
            if not np.isfinite(norm):
                kind, what = "not finite", "has a value that is nan or infinite"
            elif norm == 0 and words[row] not in NEVER_PREDICTED:
                kind, what = "zero", "is all zeros"
            elif norm > LARGEST_NORM and matrix[row].min() < 0:
                kind, what = "huge", f"has norm {norm:.2g}; if training diverged, lower the learning rate"
            else:
                continue
            self.oddity(kind, f"{place}{number + row}", f"the vector of {quoted(words[row])} {what}")


# Other files that tiedtools writes, and published test sets, are recognized by their first lines. Plain text is not,
# since damaged vectors may look like text.
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
    collections.deque(json_lines(path, "get the whole file or correct the line"), maxlen=0)


VOCABULARY = Kind("vocabulary", "`-read-vocab` reads it", Vocab.read)
# Expressions that match the beginning of a file, in order of precedence.
BEGINNINGS = {
    re.escape(manifest.START.decode()): Kind("run manifest", "`tiedtools rerun` reads it", read_manifest),
    r'\{"epoch": ': Kind("training log", "`tiedtools plot curves` reads it", read_json),
    r'\{"run": \d+, "epoch": ': Kind("training log", "of `tiedtools w2v --runs`", read_json),
    r'\{"line": \d+, "source": ': Kind("attention weights", "`tiedtools plot attention` reads them", read_json),
    r'\{"\w+": ': Kind("JSON", "written by a command with --json", read_json),
    r"pass\tphrase\twords\tscore\t": Kind("phrase list", "`--phrases` reads it"),
    r"# Morfessor Baseline": Kind("morphs", "`tiedtools segment --load` reads them", morphs.read),
    # Of files of runs, too, whose tables begin with the names of columns, two or more spaces apart.
    r"# \w+=|\w+( \w)* {2,}(b|words|dim|count|neighbor|answer|slice|value|pairs|questions)  ": Kind(
        "table", "written by a command that evaluates vectors"
    ),
    r"(word\t[^\n]+\tcosine|a\tb\tc\t[^\n]+\tscore)[\t\n]": Kind("table", "written by `nn` or `analogy`"),
    r"file [^\n]*: [\d,]+ sentences, |sentence\tposition\t|[^\n]*\n\tp\( ": Kind(
        "perplexity", "written by `tiedtools ppl`"
    ),
    r"\n*(Iter|iter): +\d+|Starting training using file |rnnlm file: |test log probability: ": Kind(
        "log of rnnlm", "written by `tiedtools rnnlm`"
    ),
    r"BLEU\|": Kind("BLEU", "written by `tiedtools bleu`"),
    rf": (?!{N}[\t \n])[^\n]+\n": Kind("analogy questions", "`tiedtools eval-analogy --set` reads them"),
    r"\ufffdPNG\n|<\?xml [^>]*>\s*<!DOCTYPE svg|<svg": Kind("picture", "written by `tiedtools plot`"),
    r"<!DOCTYPE html>\n": Kind("page", "written by `tiedtools explore`"),
}
SCORED = rf"# (?!{N}).*|{WORD} {WORD} {N}|[^\t]+\t(?!{N}\t)[^\t]+\t(.*\t)?{N}(\t.*)?|\d+\t[^\t]+\t{N}"
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
    lines = text.split("\n")[:-1] or [text]
    counts = [re.fullmatch(r"[^\t ]+ (\d+)", line) for line in lines]
    if lines[0].startswith("</s> ") and all(counts):
        counts = [int(count[1]) for count in counts[1:] if count]
        vocabulary = counts == sorted(counts, reverse=True)
        return VOCABULARY if vocabulary else Kind("classes of words", "written by `w2v -classes`")
    lines = lines[:PEEK]
    pairs = [line.partition("\t") for line in lines]  # `word<TAB>sub sub`; syllables lack the hyphens of the word
    if all(tab and subwords.replace(" ", "") in (word, word.replace("-", "")) for word, tab, subwords in pairs):
        return Kind("segmentation", "`--segmentation` of `tiedtools lstm` reads it")
    return next((kind for pattern, kind in LINES.items() if all(re.fullmatch(pattern, line) for line in lines)), None)


def slices_of(path: str) -> list[str]:
    """Return the paths of the files of runs that a folder of slices, or its list at `path`, names; [] for others."""
    listed = path if os.path.basename(path) == SLICES else os.path.join(path, SLICES)
    names = Path(listed).read_bytes().split(b"\n")[:-1] if os.path.isfile(listed) else ()
    return [os.path.join(os.path.dirname(listed), os.fsdecode(name + b".runs")) for name in names]


def matrix_of(path: str) -> str | None:
    """Return the path of the matrix that belongs to a .words or metadata file at `path`; None if there is none."""
    if path.endswith(".words"):
        matrices = [path.removesuffix("words") + extension for extension in ("npy", "safetensors")]
    else:
        folder, name = os.path.split(path)
        names = *(name.replace("metadata", other, 1) for other in ("vectors", "tensor")), name.replace(".metadata", "")
        matrices = [os.path.join(folder, other) for other in names if other != name]
        matrices = [matrix for matrix in matrices if matrixfiles.metadata_path(matrix) == path]
    return next(filter(os.path.exists, matrices), None)
