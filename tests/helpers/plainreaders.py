"""Reference readers for every file format, simple and independent of the toolkit.

Each takes the bytes of a file and returns its content; any exception means that the file is invalid.
"""

import codecs
import contextlib
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
    if len(words) < V or words[V:] not in ([], ["<unk>"]) or not V or not E:  # GloVe's header does not count <unk>
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
    counted = [re.search(rb" \d+$", line) is not None for line in lines if counts]
    if any(counted) and not all(counted):
        raise ValueError("some words have counts")
    return [(line.rpartition(b" ")[0] if any(counted) else line).decode() for line in lines]


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


def static(data, tokenizer):
    model = json.loads(tokenizer)
    ids = model["model"]["vocab"]
    ids = {token: k for k, (token, _) in enumerate(ids)} if isinstance(ids, list) else ids
    ids = {**ids, **{token["content"]: token["id"] for token in model.get("added_tokens") or ()}}
    words = sorted(ids, key=ids.get)
    assert [ids[word] for word in words] == list(range(len(words)))
    size = int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8 : 8 + size])
    tensor = tensors.get("embeddings") or tensors["embedding.weight"]
    start, end = tensor["data_offsets"]
    types = {**FLOATS, "I8": "<i1", "I32": "<i4", "I64": "<i8"}
    matrix = np.frombuffer(data[8 + size :][start:end], types[tensor["dtype"]]).reshape(tensor["shape"])
    words, matrix = paired(words, matrix)
    if words[-1].startswith("[UNK]") and model["model"].get("unk_token") == words[-1] and not matrix[-1].any():
        words, matrix = words[:-1], matrix[:-1]
    return words, matrix


def tsv(data, metadata):
    lines = data.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
    matrix = [[decimal(field.strip()) for field in line.decode().strip("\r").split("\t")] for line in lines]
    words = [line.rstrip(b"\r").split(b"\t") for line in metadata.removesuffix(b"\n").split(b"\n")]
    return paired([word.decode() for word, *_ in words[len(words[0]) > 1 :]], matrix)


COLUMN_NAMES = "average human mean rating relatedness score similarity simlex999".split()
QUOTED = r' *(?:"((?:[^"]|"")*)"|([^"{0}][^{0}]*|))'


def cells(line, mark):
    """Return the fields of a line of a csv file with separator `mark`."""
    found, position = [], 0
    field = re.compile(QUOTED.format(mark))
    while True:
        cell = field.match(line, position)
        if cell[1] is None and "\r" in cell[2]:
            raise ValueError("a line end outside quotes")
        found.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        position = cell.end()
        if position == len(line):
            return found
        if line[position] != mark:
            raise ValueError("text after a quoted field")
        position += 1


def is_number(field):
    with contextlib.suppress(ValueError):
        float(field)
        return True
    return False


def names_score(field):
    return any(word in COLUMN_NAMES for word in re.split(r"\(.*\)|[\s_]+|\W", field.casefold()))


def similarity(data):
    """Return a sorted list of (word, word, score)."""
    found, rule = [], None
    for line in data.decode("utf-8-sig").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        marks = [mark for mark, least in (("\t", 1), (",", 1), (";", 2)) if line.count(mark) >= least]
        stripped = line.strip("\r \v\f")
        if not marks:
            fields = re.findall("[^\t-\r ]+", line)
        else:
            fields = cells(stripped, marks[0]) if '"' in line else stripped.split(marks[0])
        fields = [field.strip("\t\n\r\v\f ") for field in fields]
        numbers = [k for k, field in enumerate(fields) if is_number(field)]
        n = len(fields)
        if rule is None:
            scores = [k for k in range(2, n) if names_score(fields[k])]
            numbered = n > 2 and fields[0].endswith("1") and fields[1] == fields[0][:-1] + "2"
            if n > 2 and (scores or numbered) and not any(k < 3 for k in numbers):
                (column,) = [2] if n == 3 else scores
                rule = n, column
                continue
            later = [k for k in numbers if k > 1]
            rule = (3, 2) if n == 3 or not later or not marks else (None, later[0])
            others = [float(fields[k]) for k in later[1:]]
            if rule[0] is None and others and not min(others) <= float(fields[later[0]]) <= max(others):
                raise ValueError("ambiguous")
        width, column = rule
        if n != width if width else n < 4 or [k for k in numbers if k > 1][:1] != [column]:
            raise ValueError("another number of columns")
        a, b, score = *fields[:2], decimal(fields[column])
        if not a or not b:
            raise ValueError("no word")
        found.append((a, b, score))
    if all(re.fullmatch(r"(?s:.+)-[jnv]", word) for a, b, _ in found for word in (a, b)):
        found = [(a[:-2], b[:-2], score) for a, b, score in found]
    return sorted((*sorted((a, b)), score) for a, b, score in found)


def analogies(data):
    """Return a list of (section, four words) or, for a set of pairs, of (section, (word, correct answers...))."""
    found, section, width = [], None, None
    for words in (re.findall("[^\t-\r ]+", line) for line in data.decode("utf-8-sig").split("\n")):
        if words and words[0] == ":":
            section = " ".join(words[1:])
        elif words:
            width = width or (2 if len(words) == 2 else 4)
            if len(words) != width:
                raise ValueError("another number of words")
            found.append((section, tuple(words) if width == 4 else (words[0], *filter(None, words[1].split("/")))))
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
