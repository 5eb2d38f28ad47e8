"""Damage files at random: their bytes, or the contents of archives and compressed files, which are then repacked."""

import bz2
import gzip
import importlib
import io
import json
import lzma
import random
import re
import sys
import warnings
import zipfile

NUMBER = re.compile(rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
NUMBERS = (
    b"""0 -1 1 2 7 1.5 2147483648 9223372036854775808 1000000000000 -1000000000000 1e999 -1e39 1e-50 nan NaN inf -inf
Infinity 1_0 0x10 true null "x" [] +5 5. .5 1e5 00001""".split()
    + [b"", b"1" * 5000, "\u0663".encode()]
)
PIECES = [
    *(b"\0", b"\r", b"\n", b"\r\n", b"\n\n", b" ", b"\t", b",", b":", b'"', b"#", b"{}", b"</s>", b"<unk>", b"<s>"),
    *(b"\xff", b"\xc3", b"\x80", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1b[31m", b"[" * 5000, b"-" * 5000, b"a" * 5000),
    *(character.encode() for character in "\u00a0\u0085\u2028\u3000\u200b\u0130\U0001f600"),
]
ENCODINGS = "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037"
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
UNPACK = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zst": b"\x28\xb5\x2f\xfd"}
zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
PACK["zst"], UNPACK["zst"] = zstd.compress, zstd.decompress


def decompressed(data):
    """Return the data decompressed, in the format given by its first bytes."""
    return next((unpack(data) for ending, unpack in UNPACK.items() if data.startswith(MAGIC[ending])), data)


def span(rng, n, longest=64):
    start = rng.randrange(n + 1)
    return start, min(n, start + rng.randint(1, longest))


def flip(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def change(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice((0, 9, 10, 32, 48, 127, 128, 255, rng.randrange(256)))]) + data[at + 1 :]


def cut(rng, data):
    return data[: rng.randrange(len(data))]


def cut_out(rng, data):
    start, end = span(rng, len(data))
    return data[:start] + data[end:]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + (rng.choice(PIECES) if rng.random() < 0.8 else rng.randbytes(rng.randint(1, 20))) + data[at:]


def repeat(rng, data):
    start, end = span(rng, len(data))
    return data[:end] * rng.choice((1, 1, 1, 30)) + data[start:]


def exchange(rng, data):
    (a, b), (c, d) = sorted((span(rng, len(data)), span(rng, len(data))))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def lines(rng, data):
    rows = data.split(b"\n")
    a, b = rng.randrange(len(rows)), rng.randrange(len(rows))
    kind = rng.randrange(3)
    if kind == 0:
        rows[a], rows[b] = rows[b], rows[a]
    elif kind == 1:
        rows.insert(a, rows[b])
    else:
        del rows[a]
    return b"\n".join(rows)


def number(rng, data):
    found = list(NUMBER.finditer(data))
    if not found:
        return insert(rng, data)
    one = rng.choice(found[:40] if rng.random() < 0.5 else found)
    return data[: one.start()] + rng.choice(NUMBERS) + data[one.end() :]


def encode(rng, data):
    return data.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace")


def carriage_returns(rng, data):
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"")))


def twice(rng, data):
    return data + data


MUTATIONS = [flip, change, cut, cut_out, insert, repeat, exchange, lines, number]
MUTATIONS = 3 * MUTATIONS + 6 * [number] + [encode, carriage_returns, twice]


def bytes_of(rng, data):
    """Return the data with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(MUTATIONS)(rng, data) if data else insert(rng, data)
    return data


def packed(rng, data, pack, unpack):
    """Return a damaged compressed file: changed before or after compression, or with a second member."""
    draw = rng.random()
    if draw < 0.5:
        return pack(bytes_of(rng, unpack(data)))
    if draw < 0.6:
        return data + pack(bytes_of(rng, unpack(data)))
    return bytes_of(rng, data)


def archive(rng, data):
    """Return a damaged .npz: bytes changed; or members changed, removed, repeated, or compressed (valid checksums)."""
    if rng.random() < 0.2:
        return bytes_of(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        members = [(name, source.read(name)) for name in source.namelist()]
    at = rng.randrange(len(members)) if rng.random() < 0.6 else 0  # the header
    name, content = members[at]
    draw = rng.random()
    if draw < 0.05:
        del members[at]
    elif draw < 0.1:
        members[at] = rng.choice(members)[0], content  # possibly a duplicate name
    elif draw < 0.3:
        members[at] = name, content[:10] + bytes_of(rng, content[10:128]) + content[128:]
    elif name == "header.npy" and draw < 0.9:
        members[at] = name, npy(options(rng, content[128:]))
    elif name == "words.npy" and draw < 0.9:
        members[at] = name, npy(bytes_of(rng, content[128:]))
    else:
        members[at] = name, content[:128] + bytes_of(rng, content[128:])
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.03 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", kind) as target:
        warnings.simplefilter("ignore")
        for name, content in members:
            target.writestr(zipfile.ZipInfo(name), content, kind)
    return out.getvalue()


def npy(data):
    """Return bytes as an array of uint8 in an .npy file."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(data)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def options(rng, data):
    """Return a JSON header with one value replaced, at any depth, or with its bytes changed."""
    if rng.random() < 0.3:
        return bytes_of(rng, data)
    tree = json.loads(data)
    node, key = tree, rng.choice(list(tree))
    while isinstance(node[key], dict) and node[key]:
        node = node[key]
        key = rng.choice(list(node))
    values = [0, -1, 1, 2, 3, 10**6, 10**12, -(10**12), 2**63, 1.5, -0.5, 1e300, float("nan"), float("inf")]
    node[key] = rng.choice(values + [True, None, "x", "", [], {}, [1, 2], "float16", "tied", "untied"])
    return json.dumps(tree).encode()


def tensors(rng, data):
    """Return a safetensors file with a changed header of correct length, or with any bytes changed."""
    if rng.random() < 0.4:
        return bytes_of(rng, data)
    size = int.from_bytes(data[:8], "little")
    header = bytes_of(rng, data[8 : 8 + size])
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def mutated(rng: random.Random, name, data):
    """Return the content of a file, damaged in a way that depends on its format."""
    extension = name.rpartition(".")[2]
    if extension in PACK:
        return packed(rng, data, PACK[extension], UNPACK[extension])
    return {"npz": archive, "safetensors": tensors}.get(extension, bytes_of)(rng, data)
