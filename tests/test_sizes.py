"""Test that sizes in a file are checked before memory is allocated, and that model files never run code."""

import copy
import gzip
import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from common import refused
from fuzzcases import LOG, VOCAB, written
from fuzzmutations import PACK, npy

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation import analogysets, lexicon, rnnlmtest, similarity
from tiedtools.evaluation.pictures import read_log
from tiedtools.files import modelfile
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.rnnlm import program
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.text import sources
from tiedtools.text.encoding import encode
from tiedtools.text.vocab import Vocab
from tiedtools.vectors import streams
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors

MANY = 10**12
LIMIT = 40 << 20  # bytes


@pytest.fixture
def little_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < LIMIT, f"{peak:,} bytes"


def npy_header(shape, descr="<f4"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def tensors(rows, columns):
    header = json.dumps(dict(x=dict(dtype="F32", shape=[rows, columns], data_offsets=[0, 4 * rows * columns]))).encode()
    return struct.pack("<Q", len(header)) + header + bytes(24)


def archive(members, kind=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return out.getvalue()


def header(kind="word2vec", **config):
    return npy(json.dumps(dict(format=1, kind=kind, version="0", config=config)).encode())


CLAIMS = {
    "v.txt": {"v.txt": b"%d 3\na 1 2 3\n" % MANY},
    "v.bin": {"v.bin": b"%d 3\na " % MANY + bytes(12)},
    "wide.txt": {"wide.txt": b"1 %d\na 1 2 3\n" % MANY},
    "wide.bin": {"wide.bin": b"1 1048576\na " + bytes(12)},
    "v.npy": {"v.npy": npy_header((MANY, 3)) + bytes(12), "v.words": b"a\n"},
    "h.npy": {"h.npy": b"\x93NUMPY\x02\0" + struct.pack("<I", 2**32 - 1) + b"{", "h.words": b"a\n"},
    "v.safetensors": {"v.safetensors": tensors(2, MANY), "v.words": b"a\nb\n"},
    "h.safetensors": {"h.safetensors": struct.pack("<Q", 2**62) + b"{", "h.words": b"a\nb\n"},
    "m.npz": {"m.npz": archive(dict(header=header(), words=npy(b"a"), emb_in=npy_header((MANY, 3)) + bytes(12)))},
    "npy.npz": {"npy.npz": npy_header((MANY, 3)) + bytes(12)},
}


@pytest.mark.parametrize("name", CLAIMS)
def test_false_sizes_in_headers_of_vector_files(tmp_path, little_memory, name):
    for file, data in CLAIMS[name].items():
        (tmp_path / file).write_bytes(data)
    refused(lambda: Vectors.read(tmp_path / name), f"{tmp_path}")
    assert Check(str(tmp_path / name)).counts.total()


def language_models():
    lstm = LstmLM(VOCAB, LstmConfig(size=4, layers=1))
    rnnlm = Rnnlm(VOCAB, RnnlmConfig(hidden=3, classes=2, direct=8))
    for model, changes in (
        (lstm, [dict(size=10**6, hidden=10**6), dict(layers=MANY), dict(layers=100), dict(hidden=MANY), dict(size=-4)]),
        (rnnlm, [dict(hidden=10**7), dict(direct=MANY), dict(doc_dim=10**9), dict(bptt=10**9), dict(bptt_block=10**9)]),
    ):
        for change in changes:
            yield pytest.param(model, change, id=f"{model.kind}-{change}")


@pytest.mark.parametrize("model, change", list(language_models()))
def test_false_sizes_in_options_of_model_files(tmp_path, little_memory, model, change):
    (path := tmp_path / "m.npz").write_bytes(written(model.save))
    head, words, arrays = modelfile.load(path)
    path.write_bytes(written(modelfile.save, model.kind, {**head["config"], **change}, words, arrays))
    refused(lambda: load_language_model(path), f"{path}: not a tiedtools model, or corrupt")


@pytest.mark.parametrize("label", ["vocabulary", "hidden layer", "class"])
def test_false_sizes_in_rnnlm_files(tmp_path, little_memory, label):
    model = Rnnlm(VOCAB, RnnlmConfig(hidden=3, classes=2))
    lines = written(program.write, model).decode().split("\n")
    sizes = {"vocabulary": len(VOCAB), "hidden layer": 3, "class": len(model.starts) - 1, label: MANY}
    sizes["input layer"] = sizes["vocabulary"] + sizes["hidden layer"]
    sizes["output layer"] = sizes["vocabulary"] + sizes["class"]
    for k, line in enumerate(lines):
        if line.partition(" size:")[0] in sizes:
            lines[k] = f"{line.partition(':')[0]}: {sizes[line.partition(' size:')[0]]}"
    (tmp_path / "m").write_text("\n".join(lines))
    message = "the file is too short|vocabulary entry|must be from 1 to"
    with pytest.raises(TiedtoolsError, match=f"^{tmp_path}/m: .*({message})"):
        load_language_model(tmp_path / "m")


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('code in a model file was run')",)


@pytest.mark.parametrize("name", ["header", "words", "emb_in"])
@pytest.mark.parametrize("raw", [False, True])
def test_model_files_never_run_code(tmp_path, name, raw):
    path = tmp_path / "m.npz"
    member = pickle.dumps(Trap()) if raw else written(np.save, np.array([Trap()], object), allow_pickle=True)
    members = dict(header=header("lstm"), words=npy(b"a"), emb_in=npy_header((1, 1)) + bytes(4))
    path.write_bytes(archive(members | {name: member}))
    for read in Vectors.read, modelfile.load, load_language_model:
        refused(lambda: read(path), f"{path}: ", "corrupt")
    path.write_bytes(pickle.dumps(Trap()))
    refused(lambda: Vectors.read(path), f"{path}: not a tiedtools model")


def test_compressed_and_overlapping_members_are_rejected(tmp_path, little_memory):
    path = tmp_path / "m.npz"
    path.write_bytes(archive(dict(header=header(), emb_in=npy_header((1, 10**6)) + bytes(10**6)), zipfile.ZIP_DEFLATED))
    refused(lambda: Vectors.read(path), "m.npz: ", "its arrays are compressed")
    zipfile.ZipFile(path, "w").close()
    refused(lambda: Vectors.read(path), "m.npz: is a zip archive, not a tiedtools model; unpack it")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", header())
        file.writestr("words.npy", npy(b"a"))
        file.writestr("emb_in.npy", npy_header((1, 1000)) + bytes(4000))
        for k in range(50):  # directory entries that all point to the same bytes
            file.filelist.append(copy.copy(file.getinfo("emb_in.npy")))
            file.filelist[-1].filename = f"x{k}.npy"
    refused(lambda: modelfile.load(path), "m.npz: ", "its arrays are larger than the file")
    path.write_bytes(archive(dict(header=npy(b'{"format": 1, "config": []}'))))
    refused(lambda: modelfile.read_header(path), "its header has no config")
    for expression in ("(exit(),)", "(" + "-" * 5000 + "1,)", "(" * 3000 + ")" * 3000, "(1" + "0" * 5000 + ",)"):
        (tmp_path / "v.npy").write_bytes(npy_header(expression))
        (tmp_path / "v.words").write_text("a\n")
        refused(lambda: Vectors.read(tmp_path / "v.npy"), "v.npy: is not a whole .npy file: no .npy header")


READERS = {
    "vocabulary": Vocab.read, "similarity set": similarity.read_set, "questions": analogysets.read_set, "log": read_log,
    "lines": lambda path: list(lexicon.lines(path)), "probabilities": lambda path: list(rnnlmtest.probabilities(path)),
    "text": lambda path: encode([path]), "scored text": lambda path: list(lexicon.pieces(path)),
    "vectors": Vectors.read,
}  # fmt: skip


@pytest.fixture(scope="module", params=["gz", "xz"])
def bomb(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bomb") / f"bomb.{request.param}"
    path.write_bytes(PACK[request.param](b"a" * (64 << 20)))
    return str(path)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_decompression_bombs(bomb, monkeypatch, little_memory, read):
    """An endless line is rejected for its length, before memory runs out."""
    monkeypatch.setattr(sources, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(streams, "MAX_LINE", 1 << 20)
    refused(lambda: read(bomb), f"{bomb}")


def test_lists_that_are_too_large_when_decompressed(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_LIST", 1 << 16)
    (path := tmp_path / "s.gz").write_bytes(gzip.compress(b"a b 1\n" * 20_000))
    refused(lambda: similarity.read_set(path), "has more than 65,536 bytes")
    path.write_bytes(gzip.compress(LOG))
    assert len(read_log(path)) == 3
