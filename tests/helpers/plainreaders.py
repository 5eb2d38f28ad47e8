"""Reference readers for every file format, simple and independent of the toolkit.

Each takes the bytes of a file and returns its content; any exception means that the file is invalid.
"""

import codecs
import json
import math
import re
import struct

import numpy as np

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
FLOATS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def decimal(field):
    """Parse a decimal number; rejects nan and 1_000."""
    if not DECIMAL.fullmatch(field):
        raise ValueError(field)
    return float(field)


def finite(matrix):
    with np.errstate(over="ignore"):
        matrix = np.asarray(matrix).astype(np.float32)
    if not np.isfinite(matrix).all():
        raise ValueError("not finite")
    return matrix


def tokens(data, errors="strict"):
    """Return the words of a text, with `</s>` for each newline."""
    found = []
    for k, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors).split("\n")):
        found += ["</s>"] * (k > 0) + re.findall("[^\t-\r ]+", line)
    return found


def vocab(data):
    """dict: word -> count."""
    counts = {}
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if fields := re.findall(rb"[^\t-\r ]+", line):
            word, count = fields
            if word.decode() in counts:
                raise ValueError("twice")
            counts[word.decode()] = int(re.fullmatch(rb"\d+", count)[0])
    return counts


def rows(lines, E):
    """Return the words and matrix of lines, each a word, which may contain spaces, and E numbers."""
    words, matrix = [], []
    for line in lines:
        line = line.rstrip(b" \t\r")
        if line.strip():
            row = re.fullmatch(rb"(.+?)((?:[ \t]+[^ \t]+){%d})" % E, line, re.DOTALL)
            if row is None:
                raise ValueError(line)
            words.append(row[1].decode())
            matrix.append([decimal(field.decode()) for field in re.findall(rb"[^ \t]+", row[2])])
    return words, finite(np.reshape(matrix, (-1, E)))


def header(data):
    """Return V, E, and the bytes after the first line."""
    V, E = re.fullmatch(rb"\s*(\d+)\s+(\d+)\s*", data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]).groups()
    if len(V + E) > 30:
        raise ValueError("too many")
    return int(V), int(E), data.partition(b"\n")[2]


def text(data):
    V, E, rest = header(data)
    words, matrix = rows(rest.split(b"\n") if E < len(data) else [], E)
    if len(words) != V or not V or not E:
        raise ValueError("another number of words")
    return words, matrix


def glove(data):
    lines = data.split(b"\n")
    E = 0
    for field in re.findall(rb"[^ \t]+", lines[0].rstrip(b" \t\r"))[:0:-1]:
        if not DECIMAL.fullmatch(field.decode("latin-1")):
            break
        E += 1
    if not E:
        raise ValueError("no numbers")
    return rows(lines, E)


def binary(data):
    V, E, rest = header(data)
    if V * E > len(data):
        raise ValueError("too short")
    words, matrix = [], []
    for _ in range(V):
        word, _, rest = rest.partition(b" ")
        words.append(word.lstrip(b"\n").decode())
        matrix.append(struct.unpack_from(f"<{E}f", rest))
        rest = rest[4 * E :]
    if rest.strip(b"\n"):
        raise ValueError("more")
    return words, finite(np.reshape(matrix, (V, E)))


def word_list(data, counts=False):
    data = data.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n")
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    return [(line.rpartition(b" ")[0] if counts else line).decode() for line in lines]


def paired(words, matrix):
    matrix = finite(matrix)
    if len(words) != len(matrix) or matrix.ndim != 2:
        raise ValueError("do not go together")
    return words, matrix


def npy(data):
    """Return the array in a version 1 .npy file."""
    size = int.from_bytes(data[8:10], "little")
    fields = re.search(rb"\{.*\}", data[10 : 10 + size], re.DOTALL)[0].decode()
    dtype = np.dtype(re.search(r"'descr'\s*:\s*'([^']*)'", fields)[1])
    shape = [int(n) for n in re.findall(r"\d+", re.search(r"'shape'\s*:\s*\(([^)]*)\)", fields)[1])]
    content = data[10 + size :]
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("another size")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if re.search(r"order'\s*:\s*True", fields) else "C")


def safetensors(data, words):
    size = int.from_bytes(data[:8], "little")
    found = {name: t for name, t in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}
    (tensor,) = (t for t in found.values() if len(t["shape"]) == 2 and t["shape"][0] == len(words))
    start, end = tensor["data_offsets"]
    matrix = np.frombuffer(data[8 + size :][start:end], FLOATS[tensor["dtype"]])
    return paired(words, matrix.reshape(tensor["shape"]))


def tsv(data, metadata):
    lines = data.removesuffix(b"\n").split(b"\n")
    matrix = [[decimal(field.strip()) for field in line.decode().strip("\r").split("\t")] for line in lines]
    words = [line.rstrip(b"\r").split(b"\t") for line in metadata.removesuffix(b"\n").split(b"\n")]
    return paired([word.decode() for word, *_ in words[len(words[0]) > 1 :]], matrix)


def similarity(data):
    """Return a sorted list of (word, word, score)."""
    found, first = [], True
    for line in data.decode("utf-8-sig").split("\n"):
        if line.strip() and not line.startswith("#"):
            parted = re.split("\t" if "\t" in line else "," if "," in line else "[\t-\r ]+", line.strip("\r \v\f"))
            fields = [field.strip("\t\r\v\f ") for field in parted]
            try:
                a, b, score = fields
                found.append((*sorted((a, b)), decimal(score)))
            except ValueError:
                if not first or len(fields) < 3:
                    raise
            first = False
    return sorted(found)


def analogies(data):
    """Return a list of (section, four words)."""
    found, section = [], None
    for words in (re.findall("[^\t-\r ]+", line) for line in data.decode("utf-8-sig").split("\n")):
        if words and words[0] == ":":
            section = " ".join(words[1:])
        elif words:
            a, b, c, d = words
            found.append((section, (a, b, c, d)))
    return found


def rnnlm(data):
    """Return (words, counts, classes, all numbers in file order) of an rnnlm model file."""
    head, rest = re.split(rb"Vocabulary:\s*?\n", data, maxsplit=1)
    lines = head.decode("utf-8", "replace").split("\n")
    labels = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in lines}
    V, M, C, D = (
        int(labels[name]) for name in ("vocabulary size", "hidden layer size", "class size", "direct connections")
    )
    lines = [rest.split(b"\n", V)[k].split(b"\t") for k in range(V)]
    rest = rest.split(b"\n", V)[V]
    n = M + M * (V + M) + (V + C) * M + D
    if int(labels["file format"]):
        numbers = np.frombuffer(rest, "<f4")
    else:
        numbers = finite([decimal(field) for field in re.sub(rb"[^\n]*:", b"", rest).decode().split()])
    if len(numbers) != n:
        raise ValueError("another number of numbers")
    words, counts, classes = zip(*((word.decode(), int(count), int(label)) for _, count, word, label in lines))
    return list(words), list(counts), list(classes), numbers
