"""Test files of other programs: formats that are read, and one-line errors that name unsupported formats."""

import gzip
import pickle
import struct

import numpy as np
import pytest
from refusals import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors, files_read

FASTTEXT = struct.pack("<2i12id3i2q", 793712314, 12, 2, 5, 5, 1, 5, 1, 2, 2, 10, 3, 6, 100, 1e-4, 1, 1, 0, 3, -1)


def test_hyperwords_matrices_with_words_but_no_counts(tmp_path):
    np.save(tmp_path / "sgns.words.npy", np.float32([[1, 2], [3, 4], [5, 6]]))
    (tmp_path / "sgns.words.vocab").write_text("the\n1984\na\u00a0b\n")
    vectors = Vectors.read(tmp_path / "sgns.words.npy")
    assert vectors.words == ["the", "1984", "a\u00a0b"] and vectors["1984"].tolist() == [3, 4]
    assert Check(str(tmp_path / "sgns.words.npy")).problems.keys() == {"odd word"}
    (tmp_path / "sgns.words.vocab").write_text("the\na 5\nb\n")
    refused(lambda: Vectors.read(tmp_path / "sgns.words.npy"), "sgns.words.vocab:2: has a count, unlike line 1;")


STARSPACE = "the\t0.5\t-0.25\n1984\t1e-05\t2\n__label__a\t3\t4\n"


def test_starspace_models(run, tmp_path):
    path = tmp_path / "model.tsv"
    for text in STARSPACE, "".join(STARSPACE.splitlines(True)[::-1]), "".join(STARSPACE.splitlines(True)[1:]):
        path.write_text(text)  # also with a number as the first word
        expected = [line.split("\t") for line in text.splitlines()]
        for format in None, "tsv", "glove":
            vectors = Vectors.read(path, format)
            assert vectors.words == [word for word, *_ in expected]
            np.testing.assert_array_equal(vectors.matrix, np.float32([row for _, *row in expected]))
    path.write_text(STARSPACE)
    assert files_read(str(path)) == [str(path)]
    assert run("check", path).stdout == f"{path}: tsv, 3 words of 2 numbers, all well\n"
    assert run("nn", path, "the", "--top", 1).stdout.split("\t")[:2] == ["the", "__label__a"]
    path.write_text(STARSPACE.replace("\t4", ""))
    refused(lambda: Vectors.read(path), "model.tsv:3: expected 2 numbers after '__label__a', found 1")
    assert Check(str(path)).problems.keys() == {"ragged"}


def test_a_damaged_projector_file_is_not_mistaken_for_starspace(tmp_path):
    (tmp_path / "vectors.tsv").write_text("x\t2\n3\t4\n5\t6\n")
    (tmp_path / "metadata.tsv").write_text("a\nb\nc\n")
    refused(lambda: Vectors.read(tmp_path / "vectors.tsv"), "vectors.tsv:1: is not tab-separated numbers")
    (tmp_path / "metadata.tsv").unlink()
    (tmp_path / "vectors.tsv").write_text("1\t2\n3\t4\n")
    refused(lambda: Vectors.read(tmp_path / "vectors.tsv"), "has no list of words beside it")


def saved(protocol, module, name):
    """Return the first bytes that gensim's `save` writes, with a line feed before the class in each protocol."""
    if protocol < 4:
        return b"\x80%cc%b\n%b\nq\x00)" % (protocol, module, name)
    return b"\x80%c\x95\n\5\0\0\0\0\0\0\x8c%c%b\x94\x8c%c%b\x94" % (protocol, len(module), module, len(name), name)


GENSIM = {
    saved(2, b"gensim.models.keyedvectors", b"KeyedVectors"): "`KeyedVectors.load('{}').save_word2vec_format(",
    saved(4, b"gensim.models.keyedvectors", b"KeyedVectors"): "`KeyedVectors.load('{}').save_word2vec_format(",
    saved(4, b"gensim.models.fasttext", b"FastTextKeyedVectors"): "`KeyedVectors.load('{}').save_word2vec_format(",
    saved(5, b"gensim.models.word2vec", b"Word2Vec"): "`Word2Vec.load('{}').wv.save_word2vec_format(",
}
PROBLEMS = [
    (FASTTEXT, "is a model of fastText (.bin or .ftz); give the name of an uncompressed file, not a pipe"),
    *GENSIM.items(),
    (pickle.dumps(["a"], 4), "is a Python pickle, which could run any code; save its matrix as .npy"),
]


@pytest.mark.parametrize("name", ["m.bin", "m.kv.gz", "-"])
@pytest.mark.parametrize("data, problem", PROBLEMS, ids=lambda part: type(part).__name__)
def test_other_binary_formats_are_named(run, tmp_path, name, data, problem):
    """Each error is one line, also if line feeds are among the first bytes."""
    path = name if name == "-" else tmp_path / name
    if name != "-":
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    if (data, name) == (FASTTEXT, "m.bin"):
        problem = "is not a whole fastText model: "
    shown = "FILE" if name == "-" else str(path)
    for command in ["nn", path, "a"], ["convert", path, "-"], ["pca", path], ["check", path]:
        result = run(*command, input=data)
        assert result.exit_code == 1
        line = (result.stdout if command[0] == "check" else result.stderr).splitlines()[0]
        assert problem.format(shown) in line


def test_what_gensim_saves(tmp_path):
    models = pytest.importorskip("gensim.models")
    for kind in models.Word2Vec, models.FastText:
        model = kind([["a", "b"]] * 9, vector_size=2, min_count=1)
        for saved, name in (model, kind.__name__), (model.wv, type(model.wv).__name__):
            saved.save(str(tmp_path / "m"))
            with pytest.raises(TiedtoolsError, match=f"is a {name} saved by gensim") as error:
                Vectors.read(tmp_path / "m")
            code = str(error.value).split("`")[1].replace("OUT.bin", str(tmp_path / "m.bin"))
            eval(code, vars(models))
            assert sorted(Vectors.read(tmp_path / "m.bin").words) == ["a", "b"]
