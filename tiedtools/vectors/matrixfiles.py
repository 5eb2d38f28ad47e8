"""Vector formats of two files, a matrix and its words: NumPy, safetensors, and TensorBoard projector.

    x.npy           x.words          one word per line; x.vocab, with or without counts, and x.txt are also read
    x.safetensors   x.words          as for .npy
    x.tsv           x.metadata.tsv   tab-separated numbers; one word per line; vectors.tsv goes with metadata.tsv;
                                     without metadata, the word in each line before its numbers, as in StarSpace

Float32 and float16 matrices of the first two formats are memory-mapped.
"""

import codecs
import collections
import contextlib
import itertools
import json
import math
import operator
import os
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction, NotFound, TiedtoolsError, brief, quoted, unreadable
from tiedtools.base.messages import log
from tiedtools.files.modelfile import Arrays, npy_header
from tiedtools.files.output import STDOUT, is_file, open_output
from tiedtools.text.sources import byte_lines, counted, open_source
from tiedtools.vectors import streams
from tiedtools.vectors.formats import FORMATS, NUMBER, PEEK
from tiedtools.vectors.norms import blocks
from tiedtools.vectors.rows import Rows

WORDS = ".words", ".vocab", ".txt"  # extensions of the word list of a matrix, in order of precedence
SAFETENSORS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}  # NumPy has no bfloat16: read as raw bits
NUMBERS = re.compile(rb" *%b *(?:\t *%b *)*\r?\n?" % (2 * (NUMBER.pattern,)), re.IGNORECASE)
MAX_HEADER = 100_000_000  # in bytes, of safetensors
COUNTED = re.compile(rb"(.*) (\d{1,18})", re.DOTALL)  # a line of a vocabulary with counts
TABS = bytes.maketrans(b" ", b"\t")
BLANK = re.compile("[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*")  # of JavaScript's `trim`


def read_npy(rows: Rows, format: str | None = None) -> None:
    """Read Rows from an .npy file, a matrix (V, E) of any float type, which is mapped, and the word list beside it."""
    path = rows.path
    try:
        with open(path, "rb") as file:
            shape, order, dtype = npy_header(file)
            start, size = file.tell(), os.fstat(file.fileno()).st_size
        if len(shape) != 2 or dtype.kind != "f" or 0 in shape:
            raise TiedtoolsError(f"{path}: is not one matrix of floats; save one matrix with a row per word")
        if (needed := shape[0] * shape[1] * dtype.itemsize) != size - start:
            raise ValueError(f"{size - start:,} bytes of data, expected {needed:,}")
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise TiedtoolsError(f"{path}: is not a whole .npy file: {error}; get the whole file") from None
    words_path = words_of(path, "npy")
    rows.whole(words_in(rows, words_path), np.memmap(path, dtype, "r", start, shape, order), words_path)


def read_safetensors(rows: Rows, format: str | None = None) -> None:
    """Read Rows from a safetensors file and the word list beside it.

    The file must contain exactly one matrix with a row per word.
    """
    words_path = words_of(rows.path, "safetensors")
    words = words_in(rows, words_path)

    def choose(shapes: dict[str, list[int]]) -> list[str]:
        names = [name for name, shape in shapes.items() if len(shape) == 2]
        fitting = [name for name in names if shapes[name][0] == len(words)]
        if len(fitting) != 1:
            what = f"{len(fitting)} of its matrices ({brief(', '.join(names)) or 'none'}) have a row for each of the"
            raise TiedtoolsError(f"{rows.path}: {what} {len(words)} words of {words_path}; save exactly one")
        return fitting

    (matrix,) = read_tensors(rows.path, choose).values()
    rows.whole(words, matrix, words_path)


def read_tensors(path: str, choose: Callable[..., list[str]], types: Mapping[str, str] = SAFETENSORS) -> Arrays:
    """Memory-map tensors of a safetensors file, a dict: name -> array; bfloat16 is converted to float32.

    choose  function that returns the names of tensors, given {name: shape} of all
    types   type in the file -> type of the array
    """
    try:
        with open(path, "rb") as file:
            size, rest = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size - 8
            if not 0 < size <= min(rest, MAX_HEADER):
                raise ValueError(f"invalid header size of {size} bytes")
            tensors = json.loads(file.read(size))
        tensors.pop("__metadata__", None)
        arrays = {}
        for name in choose({name: list(tensor["shape"]) for name, tensor in tensors.items()}):
            (start, end), type = tensors[name]["data_offsets"], tensors[name]["dtype"]
            if type not in types:
                wanted = ", ".join(SAFETENSORS)
                raise TiedtoolsError(f"{path}: has numbers of type {quoted(str(type))}; save it as one of {wanted}")
            shape, dtype = tuple(map(operator.index, tensors[name]["shape"])), np.dtype(types[type])
            needed = math.prod(shape) * dtype.itemsize
            if not 0 <= start <= end <= rest - size or min(shape) < 1 or needed != end - start:
                raise ValueError(f"expected an array of {' by '.join(map(str, shape))}, found {end - start} bytes")
            array = np.memmap(path, dtype, "r", 8 + size + start, shape)
            arrays[name] = (array.astype(np.uint32) << 16).view(np.float32) if type == "BF16" else array
        return arrays
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"is not a whole safetensors file of floats: {brief(error)}"
        raise TiedtoolsError(f"{path}: {what}; get the whole file") from None


def read_tsv(rows: Rows, format: str | None = None) -> None:
    """Read Rows from a .tsv file and its metadata or, without metadata, with words in the first column."""
    if os.path.isfile(rows.path) and not os.path.exists(metadata_path(rows.path)):
        with open_source(rows.path) as file:
            fields = [line.partition(b"\t")[0] for line in itertools.islice(byte_lines(file, rows.path), PEEK)]
        if not all(NUMBER.fullmatch(field.strip()) for field in fields):
            rows.tabs = True
            if streams.read(rows, "glove"):
                rows.format = "tsv"
            return
    words_path = words_of(rows.path, "tsv")
    words = words_in(rows, words_path)
    with open_source(rows.path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an empty file, which `whole` rejects
        matrix = np.loadtxt(number_lines(file, rows, words), np.float32, comments=None, delimiter="\t", ndmin=2)
    rows.whole(words, matrix, words_path)


def number_lines(file: BinaryIO, rows: Rows, words: list[Any]) -> Iterator[bytes]:
    """Yield the lines of a file for np.loadtxt; all have the same number of tab-separated numbers.

    A bad line is reported to `rows` and replaced by nan, and its word in the list `words` by None.
    """
    lines = enumerate(byte_lines(file, rows.path), 1)
    first = list(itertools.islice(lines, PEEK))
    counts = collections.Counter(line.count(b"\t") + 1 for _, line in first if NUMBERS.fullmatch(line))
    E = counts.most_common(1)[0][0] if counts else 1
    for number, line in itertools.chain(first, lines):
        n = line.count(b"\t") + 1 if NUMBERS.fullmatch(line) else 0
        if n != E:
            problem = f"expected {E} numbers, found {n}" if n else "is not tab-separated numbers"
            rows.problem(f":{number}", problem, "correct the line", "ragged")
            line = b"\t".join([b"nan"] * E)
            if number <= len(words):
                words[number - 1] = None
        yield line


def words_of(path: str, format: str) -> str:
    """Return the path of a matrix's words: the metadata of a .tsv file, else a .words, .vocab, or .txt file.

    Raises TiedtoolsError if there is none.
    """
    stem = path.removesuffix(f".{format}")
    lists = [metadata_path(path)] if format == "tsv" else [stem + extension for extension in WORDS]
    if existing := next(filter(os.path.exists, lists), None):
        return existing
    if not os.path.exists(path):
        raise NotFound(f"{path}: no such file; give the name of a file")
    or_else = " (or .vocab, .txt)" * (len(lists) > 1)
    raise TiedtoolsError(f"{path}: has no list of words beside it; write one word per line to {lists[0]}{or_else}")


def words_in(rows: Rows, path: str) -> list[Any]:
    """Return the words of a word list; None replaces a bad word.

    A .vocab file has counts, as in word2vec.c, or only words, as in hyperwords. The metadata of a .tsv file, if they
    have several columns, start with a header line, as TensorBoard requires; the first column has the words.
    """
    text = read_list(path)
    lines = text.split(b"\n")
    if path.endswith(".tsv"):
        titles = b"\t" in lines[0]
        for row, line in enumerate(lines[titles:], 1):
            if is_blank(line.decode("utf-8", "replace")):
                problem = "the word is blank for TensorBoard, which skips it, so that all later words shift"
                rows.oddity("blank label", f": row {row}", f"{problem}; write the file again with `tiedtools convert`")
        words = b"\n".join(line.partition(b"\t")[0] for line in lines[titles:])
        return decoded(rows, words, 1 + titles, path) if lines[titles:] else []
    if not path.endswith(".vocab"):
        return decoded(rows, text, 1, path)
    counted = [COUNTED.fullmatch(line) for line in lines]
    words = decoded(rows, b"\n".join(match[1] if match else line for match, line in zip(counted, lines)), 1, path)
    problem = "is not `word count`" if counted[0] else "has a count"
    for row, match in enumerate(counted):
        if bool(match) != bool(counted[0]):
            rows.problem(f":{row + 1}", f"{problem}, unlike line 1", "correct the line", "ragged", path=path)
            words[row] = None
    return words


def metadata_path(path: str) -> str:
    """Return the path of a .tsv file's metadata."""
    folder, name = os.path.split(path)
    sibling = re.sub("vectors|tensor", "metadata", name, count=1)
    return os.path.join(folder, sibling if sibling != name else name.removesuffix(".tsv") + ".metadata.tsv")


def read_list(path: str) -> bytes:
    """Return the lines of a file, joined by LF, without byte order mark and carriage returns at the ends of lines."""
    with open_source(path) as file:
        data = file.read().removeprefix(codecs.BOM_UTF8)
    return data.removesuffix(b"\n").removesuffix(b"\r").replace(b"\r\n", b"\n")


def decoded(rows: Rows, lines: bytes, first: int, path: str) -> list[Any]:
    """Decode lines, joined by LF, from number `first` on; a bad one is reported and replaced by None."""
    with contextlib.suppress(UnicodeDecodeError):  # all at once, unless one is invalid
        return lines.decode().split("\n")
    words: list[Any] = []
    for number, line in enumerate(lines.split(b"\n"), first):
        try:
            words.append(line.decode("utf-8", rows.errors))
        except UnicodeDecodeError:
            rows.problem(f":{number}", "is not UTF-8", rows.replacing, path=path)
            words.append(None)
    return words


def write(path: str, words: Sequence[str], matrix: np.ndarray, format: str, dtype: str = "float32") -> None:
    """Write both files of a format, "npy", "safetensors", or "tsv"; the extension is added to `path` if missing.

    In the metadata of a .tsv file, blank words become code points, such as U+00A0. Metadata with the same words, which
    may have other columns, are not changed. Raises TiedtoolsError instead of replacing the word list of another matrix
    if its words are different.
    """
    words = list(words)
    streams.check_writable(words, matrix, format, dtype)
    matrix_path, words_path = paths(path, format)
    if format == "tsv" and (blank := sum(map(is_blank, words))):
        what = f"{counted(blank, 'blank word')} written by code point, such as U+00A0"
        log.warning(f"{words_path}: {what}; TensorBoard skips blank lines, which would shift all later words")
        words = [" ".join(f"U+{ord(c):04X}" for c in word) if is_blank(word) else word for word in words]
    has_words = lambda path: words_in(Rows(path, "surrogateescape"), path) == words
    if (existing := foreign_list(path, format)) and not has_words(existing):
        raise TiedtoolsError(f"{existing}: exists and has different words; choose another name")
    same = format == "tsv" and os.path.isfile(words_path) and has_words(words_path)
    with contextlib.ExitStack() as stack, open_output(matrix_path) as matrix_file:
        pkgutil.resolve_name(FORMATS[format].write)(matrix_file, matrix, dtype)
        matrix_file.flush()
        if is_file(matrix_path):
            os.fsync(matrix_file.fileno())  # reports a full disk before either file is renamed
        stack.enter_context(interrupts.deferred())  # until both are renamed
        if not same:
            with open_output(words_path) as words_file:
                write_words(words_file, words)


def foreign_list(path: Any, format: str) -> str | None:
    """Return the path of a word list that may belong to another matrix than the one to write; None if there is none.

    If the matrix to write exists, its word list may be replaced, unless another matrix shares it, or it is a link but
    not to the list of the matrix.
    """
    matrix_path, words_path = paths(path, format)
    stem = words_path.removesuffix(".words")
    shared = any(os.path.exists(stem + extension) for extension in {".npy", ".safetensors"} - {f".{format}"})
    files = os.path.realpath(matrix_path), os.path.realpath(words_path)
    own = os.path.exists(matrix_path) and (not os.path.islink(words_path) or files == paths(files[0], format))
    lists = [stem + extension for extension in WORDS] if shared else [words_path] * (not own)
    return next(filter(os.path.isfile, lists), None)


def write_words(file: BinaryIO, words: list[str]) -> None:
    """Write a word list to a binary file."""
    mark = "\ufeff" * words[0].startswith("\ufeff")  # a mark at the start is removed when the file is read
    file.write((mark + "".join(f"{word}\n" for word in words)).encode())


def is_blank(line: str) -> bool:
    """Return whether TensorBoard skips a line of metadata: JavaScript's `trim` makes it empty."""
    return BLANK.fullmatch(line) is not None


def paths(path: Any, format: str) -> tuple[str, str]:
    """Return the paths of the matrix and the words. Raises Contradiction for standard output."""
    if path in STDOUT:
        raise Contradiction(f"{path}: format {format} writes two files and cannot use standard output; name a file")
    stem = path.removesuffix(f".{format}")
    return f"{stem}.{format}", metadata_path(f"{stem}.tsv") if format == "tsv" else f"{stem}.words"


def write_npy(file: BinaryIO, matrix: np.ndarray, dtype: str = "float32") -> None:
    descr = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": matrix.shape}
    np.lib.format.write_array_header_1_0(file, descr)
    write_rows(file, matrix, dtype)


def write_safetensors(
    file: BinaryIO, matrix: np.ndarray, dtype: str = "float32", name: str = "vectors", zeros: int = 0
) -> None:
    """Write a matrix, followed by rows of zeros, as the tensor `name`."""
    (V, E), type = matrix.shape, np.dtype(dtype)
    size = (V + zeros) * E * type.itemsize
    tensor = dict(dtype=f"F{8 * type.itemsize}", shape=[V + zeros, E], data_offsets=[0, size])
    header = json.dumps({name: tensor}).encode()
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    write_rows(file, matrix, dtype)
    file.write(bytes(zeros * E * type.itemsize))


def write_rows(file: BinaryIO, matrix: np.ndarray, dtype: str) -> None:
    """Write the numbers of a matrix, little-endian; unlike numpy.save, this preserves the cause of an error."""
    for _, rows in blocks(matrix):
        file.write(np.ascontiguousarray(rows, np.dtype(dtype).newbyteorder("<")).data)


def write_tsv(file: BinaryIO, matrix: np.ndarray, dtype: str = "float32") -> None:
    for lines in streams.text_blocks([""] * len(matrix), matrix):
        file.write(lines[1:].translate(TABS).replace(b"\n\t", b"\n"))
