"""Cases for the fuzzer: readers of vectors, compared with simple readers; see fuzzcases.py."""

import contextlib
import tempfile
import zipfile

import numpy as np
import plainreaders as plain
from fuzzmutations import decompressed

from tiedtools.base.errors import TiedtoolsError, printable
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors


def content(path, files):
    """Return the bytes of a file, decompressed by the standard library."""
    return decompressed(files[path.name])


def agree(found, expected, *arguments):
    """Check that found, (words, matrix), is what the simple reader `expected` returns, which must accept the file."""
    try:
        words, matrix = expected(*arguments)
    except Exception as error:
        raise AssertionError(f"accepted, but should be rejected: {type(error).__name__}: {error}") from None
    assert found[0] == words, f"words {found[0]!r:.200}, expected {words!r:.200}"
    assert found[1].shape == matrix.shape and found[1].astype("<f4").tobytes() == matrix.astype("<f4").tobytes(), (
        "different numbers"
    )


def read_vectors(path, format=None):
    """Read vectors, and check that with bad rows skipped they are the same, if there are none."""
    with contextlib.suppress(TiedtoolsError):
        skipping = Vectors.read(path, format, skip_bad=True)
    found = Vectors.read(path, format)
    assert skipping.words == found.words and skipping.matrix.tobytes() == found.matrix.tobytes()
    return found


def vectors(path, files, rng, format):
    """Read a given or detected format; a detected one may be any in which the file can be read."""
    found = read_vectors(path, told := rng.choice((None, format)))
    reads = [getattr(plain, told)] if told else [plain.text, plain.glove, plain.binary]
    for read in reads[:-1]:
        try:
            return agree((found.words, found.matrix), read, content(path, files))
        except AssertionError:
            pass
    agree((found.words, found.matrix), reads[-1], content(path, files))


def fasttext_vectors(path, files, rng):
    """Compute all vectors, in words' order and in blocks, and compose some words."""
    found, skipping = Vectors.read(path), Vectors.read(path, errors="replace", skip_bad=True)
    assert len(found.words) == len(found) and all(found.index[word] == k for k, word in enumerate(found.words))
    matrix = np.asarray(found.matrix)
    assert matrix.shape == found.matrix.shape and matrix.tobytes() == found.matrix[np.arange(len(found))].tobytes()
    assert np.asarray(skipping).tobytes() == matrix.tobytes()
    if found.composes:
        assert np.isfinite(found.matrix.compose(["unseen", "caf\u00e9s", ""])[1]).all()
    assert found.matrix.sentences([[b"the", b"unseen"], []]).shape == (2, found.dim)


def npy_vectors(path, files, rng):
    found = read_vectors(path)
    (words_name,) = files.keys() - {path.name}
    words = plain.word_list(files[words_name], words_name.endswith(".vocab"))
    agree((found.words, found.matrix), lambda: plain.paired(words, plain.npy(files[path.name])))


def safetensors_vectors(path, files, rng):
    found = read_vectors(path)
    words = plain.word_list(files[f"{path.stem}.words"])
    agree((found.words, found.matrix), plain.safetensors, files[path.name], words)


def folder_vectors(path, files, rng):
    """Read a folder of static embeddings; its files have other names in `files`."""
    with tempfile.TemporaryDirectory() as folder:
        matrix, tokens = (f"{folder}/{name}" for name in ("model.safetensors", "tokenizer.json"))
        (tokens_name,) = files.keys() - {path.name}
        for name, target in (path.name, matrix), (tokens_name, tokens):
            with open(target, "wb") as file:
                file.write(files[name])
        try:
            found = read_vectors(folder)
        except TiedtoolsError as error:
            message = str(error).replace(tokens, printable(str(path.with_name(tokens_name))))
            for name in matrix, folder:
                message = message.replace(name, printable(str(path)))
            raise TiedtoolsError(message) from None
    if b"mapping" not in files[path.name] and b"weights" not in files[path.name]:
        agree((found.words, found.matrix), plain.static, files[path.name], files[tokens_name])


def projector_vectors(path, files, rng):
    found = read_vectors(path)
    agree((found.words, found.matrix), plain.tsv, files[path.name], files[f"{path.stem}.metadata.tsv"])


def model_vectors(path, files, rng):
    which = rng.choice(("in", "out", "sum"))
    found = Vectors.read(f"{path}:{which}")
    assert np.isfinite(found.matrix).all() and found.matrix.size and len(found.words) == len(found.matrix)
    with zipfile.ZipFile(path) as archive:
        read = ("emb_in",) if which == "in" else ("emb_in", "emb_out", "proj")  # damage elsewhere is not seen
        names = [name for name in read if f"{name}.npy" in archive.namelist()]
        member = lambda name: plain.npy(archive.open(f"{name}.npy").read(path.stat().st_size))
        parts = {name: member(name) for name in names}
        assert member("words").tobytes().decode() == "\n".join(found.words)
    one = parts.get("emb_in")
    two = parts.get("emb_out", one)[: len(found)]
    with np.errstate(over="ignore"):
        if which == "sum":
            expected = (one @ parts["proj"] if "proj" in parts else one) + two
            np.testing.assert_allclose(found.matrix, expected.astype("f4"), rtol=1e-5)
        else:
            assert np.array_equal((one if which == "in" else two).astype("f4"), found.matrix)


def checked(path, files, rng):
    """Check that `tiedtools check` reports every file that the reader rejects."""
    check = Check(str(path), examples=rng.choice((1, 3)))
    assert all(c.isprintable() for cases in check.problems.values() for _, text in cases for c in text)
    if check.use:  # as a file of another kind
        return
    try:
        Vectors.read(path)
    except TiedtoolsError as error:
        assert check.counts.total(), f"no problem found, but the reader says: {error}"
        raise
    assert "unreadable" not in check.counts, check.problems["unreadable"]
