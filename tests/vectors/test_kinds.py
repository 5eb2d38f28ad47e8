"""Test kinds of files by their content, and formats that are not read."""

import gzip
import json
import pickle
import struct

import numpy as np
import pytest
from common import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.text import morphs
from tiedtools.vectors.check import Check, kind_of
from tiedtools.vectors.vectors import Vectors, files_read

TEXT = "the cat sat on the mat .\nthe dog lay on the log .\na cow ate the old grass .\n" * 30


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIEDTOOLS_CACHE", str(tmp_path))
    (tmp_path / "text").write_text(TEXT)
    return tmp_path


W2V = "w2v text -size 4 -iter 1 -min-count 1 -threads 1 -debug 0"
LSTM = "lstm text --size 4 --hidden 4 --epochs 1 --threads 1 -debug 0 --steps 5 --batch 2"
RNNLM = "rnnlm -train text -hidden 4 -class 3 --max-iter 1 -debug 0 --threads 1 -direct 0"
# Command -> {file: what `check` says of it}.
TEXT_OF_4, MODEL = "text, 15 words of 4 numbers, all well", "model, 15 words of 4 numbers, all well"
VOCABULARY = "vocabulary, 15 words, all well; `-read-vocab` reads it"
TRAINING_LOG = "training log, all well; `tiedtools plot curves` reads it"
CHECKPOINT = "checkpoint, all well; `--checkpoint` with `--resume` continues from it"
MANIFEST = "run manifest, all well; `tiedtools rerun` reads it"
JSON = "JSON, all well; written by a command with --json"
RUNS = {
    f"{W2V} -output v.txt --save-model m --save-vocab c --log-json l --checkpoint k --manifest n": {
        "v.txt": TEXT_OF_4, "m": MODEL, "c": VOCABULARY, "l": TRAINING_LOG, "k": CHECKPOINT, "n": MANIFEST,
        "v.txt.run.json": MANIFEST,
    },
    f"{W2V} -output v --runs 2 --log-json l": {
        "v": "file of runs, all well; `nn`, `cosine`, and `stability` of `tiedtools` read it",
        "l": "training log, all well; of `tiedtools w2v --runs`",
    },
    "phrases text -threshold 1 -min-count 1 --save p.tsv -output q": {
        "p.tsv": "phrase list, not checked; `--phrases` reads it"
    },
    f"{W2V} -output v -classes 3 --save-vocab c.gz": {
        "v": "classes of words, not checked; written by `w2v -classes`", "c.gz": VOCABULARY,
    },
    f"{LSTM} -output v --save-model m --checkpoint k --log-json l": {
        "v": TEXT_OF_4, "m": MODEL, "k": CHECKPOINT, "l": TRAINING_LOG,
    },
    f"{RNNLM} -rnnlm m": {"m": MODEL}, f"{RNNLM} -rnnlm m -binary": {"m": MODEL},
    "vocab text -min-count 1 -output c": {"c": VOCABULARY}, "vocab text --json -output c": {"c": JSON},
    "segment text --chars --types -output s": {
        "s": "segmentation, not checked; `--segmentation` of `tiedtools lstm` reads it"
    },
}  # fmt: skip


@pytest.mark.parametrize("command", RUNS)
def test_outputs_are_recognized(run, here, command):
    assert run(*command.split()).exit_code == 0
    for name, verdict in RUNS[command].items():
        result = run("check", name)
        assert (result.exit_code, result.stdout) == (0, f"{name}: {verdict}\n")


VECTORS = "4 2\nthe 1 2\ncat 2 1\nsat 1 1\non 3 1\n"
SCORES = "words and scores, not checked; `tiedtools eval-sim --set` reads them if they are pairs of words"
SIDE_BY_SIDE = "table, not checked; written by `nn` or `analogy`"
TABLE = "table, not checked; written by a command that evaluates vectors"
PRINTED = {
    "nn v the": SCORES, "analogy v the cat sat": SCORES, "nn v the --with v": SIDE_BY_SIDE,
    "analogy v the cat sat --with v": SIDE_BY_SIDE, "nn v the --json": JSON, "pca v": TABLE, "compare v v": TABLE,
    "eval-sim v --set pairs --bootstrap 0": TABLE, "eval-analogy v --set questions": TABLE, "check v --json": JSON,
    "cosine v the cat": TABLE, "shift v v": TABLE, "align v v": TABLE,
}  # fmt: skip


@pytest.mark.parametrize("command", PRINTED)
def test_printed_results_are_recognized(run, here, command):
    """Also under a name like that of vectors; JSON from standard input is recognized by its first lines alone."""
    (here / "v").write_text(VECTORS)
    (here / "pairs").write_text("the cat 1\nthe sat 2\ncat sat 3\n")
    (here / "questions").write_text(": s\nthe cat sat the\n")
    printed, verdict = run(*command.split()).stdout_bytes, PRINTED[command]
    for name in "f", "f.tsv":
        (here / name).write_bytes(printed)
        result = run("check", name)
        assert (result.exit_code, result.stdout) == (0, f"{name}: {verdict}\n")
    result = run("check", "-", input=printed)
    assert (result.exit_code, result.stdout) == (0, f"-: {verdict.replace('all well', 'not checked')}\n")


SAMPLES = {
    "attention weights": '{"line": 1, "source": ["a"], "target": ["b"], "weights": [[1.0]]}\n',
    "n-best list": "0 ||| a cat ||| -1.25\n0 ||| the cat ||| -2.5\n",
    "words and scores": "1\tthe\t0.0867439\n1\t</s>\t0.0739887\n1\t5\t0.05\n",
    "words and scores ": "# pairs\r\nold\tnew\t1.58\r\ntake remove 6.81\r\ntake\tremove\tV\t6.81\tSYNONYMS\r\n",
    "similar sentences": "a cat sat\t139\t0.9978\tthe cat sat\na cat sat\t40\t0.9916\tthe dog 2\n",
    "perplexity": "file text: 3 sentences, 5 words, 0 OOVs\n0 zeroprobs, logprob= -8.7 ppl= 12.4 ppl1= 56.3\n",
    "log of rnnlm": "\niter: 0\nvalid log probability: -2562.1\n",
    "log of rnnlm ": "Starting training using file t\nVocab size: 3\nWords in train file: 9\nIter:   0\tAlpha: 0.1\n",
    "analogy questions": ": capitals\nAthens Greece Oslo Norway\n", "log probabilities": "-28.776737\n-inf\n-0.25\n",
    "perplexity ": "sentence\tposition\tbegin\n", "page": "<!DOCTYPE html>\n",
    "BLEU": "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0 = 38.9\n",
    "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".decode("latin-1"),
    "segmentation": "un-lock\tun lock\n1984\t19 84\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SAMPLES)
def test_samples_are_recognized(here, kind):
    (here / "f").write_bytes(SAMPLES[kind].encode("latin-1"))
    check = Check("f")
    assert check.format == kind.strip() and check.problems == {} and check.use


def test_formats_texts_and_lists_of_words_are_named(here, run):
    with open("f", "wb") as file:
        morphs.write(file, [(1, ["un", "lock"]), (2, ["a"])])
    assert ((check := Check("f")).format, check.rows, check.checked, check.problems) == ("morphs", 2, True, {})
    for name, text in ("f.tsv", "</s>\t3\nthe\t2\n"), ("f", "</s> 3\nthe 2\n"):
        (here / name).write_text(text)
        assert run("nn", name, "the").stderr == f"{name}: has one number per word; is it a vocabulary, not vectors?\n"
    assert "f: is a file; name the folder" in run("nn", "f", "the", "--format", "model2vec").stderr
    assert run("check", "f", "--format", "glove").stdout == "f: glove, 2 words of 1 number, all well\n"
    assert json.loads(run("check", "f", "--json").stdout)["files"][0] == {
        "file": "f", "format": "vocabulary", "words": 2, "dim": None, "checked": True, "problems": {}
    }  # fmt: skip
    result = run("check", "text")
    assert result.exit_code == 1 and result.stdout.splitlines() == [
        "text:1: is neither a word2vec header 'V E' nor a word and numbers; is it a text, for `tiedtools vocab`?",
        "text: no format, 0 words of 0 numbers, 1 problem",
    ]
    (here / "v").write_text(VECTORS)
    for name, words in (("b.npy", "b.words"), ("c.tsv", "c.metadata.tsv"), ("vectors.tsv", "metadata.tsv")):
        assert run("convert", "v", name).exit_code == 0
        told = f"{words}: list of words, not checked; `tiedtools check {name}` checks it with its vectors\n"
        assert (result := run("check", words)).exit_code == 0 and result.stdout == told


@pytest.mark.parametrize("text, position, problem", [
    ("</s> 3\nthe 2\nthe 1\n", ":3", "duplicate word 'the'; remove one line"),
    ('{\n  "tiedtools": "0.2.0"\n}\n', "", "not a run manifest, or corrupt"),
    ('{"epoch": 1}\n{"epoch": 2, "l', ":2", "not a JSON object; get the whole file or correct the line"),
    ("# Morfessor Baseline segmentation\n1 a\nb\n", ":3", "expected `count morph + morph`"),
])  # fmt: skip
def test_damage_is_located(run, here, text, position, problem):
    (here / "f").write_text(text)
    result = run("check", "f")
    assert result.exit_code == 1 and result.stdout.startswith(f"f{position}: ") and problem in result.stdout
    assert "all well" not in result.stdout


@pytest.mark.parametrize("text", [
    "the 5\nof 3\n",  # vectors of one number, or a vocabulary without </s>
    "</s> 0.5\nthe 2\n", "a\t1\t2\nb\tx\t2\nc\t1\t2\n", "1 2\na 0.5 1\n", "x\t0.5\ny\t5\n", "old new\n",
    "1984\t0.5\t2\nb\t1\t2\n", ": 0.5 1\n, 2 3\n", "# 0.5 1\n", "word\t0.5\t1\na\t2\t3\n",
])  # fmt: skip
def test_vectors_are_not_mistaken(text):
    assert kind_of(text.encode()) is None


@pytest.mark.parametrize("kind", ["lstm", "checkpoint"])
def test_arrays_of_models_are_checked(run, here, kind):
    arrays = {"emb_in": np.ones((2, 2), "f4"), "cell.W": np.float32([1, np.nan])}
    with open("m", "wb") as file:
        modelfile.save(file, kind, {}, ["a", "b"], arrays)
    lines = run("check", "m").stdout.splitlines()
    assert lines[0] == "m: the array cell.W has values that are nan or infinite" and "1 problem" in lines[1]
    with open("m", "wb") as file:
        modelfile.save(file, kind, {}, ["a", "b"], {**arrays, "cell.W": arrays["emb_in"]})
    assert run("check", "m").exit_code == 0


FASTTEXT = struct.pack("<2i12id3i2q", 793712314, 12, 2, 5, 5, 1, 5, 1, 2, 2, 10, 3, 6, 100, 1e-4, 1, 1, 0, 3, -1)


def test_files_of_hyperwords_starspace_and_gensim(tmp_path, run):
    np.save(tmp_path / "sgns.words.npy", np.float32([[1, 2], [3, 4], [5, 6]]))
    (tmp_path / "sgns.words.vocab").write_text("the\n1984\na\u00a0b\n")
    vectors = Vectors.read(tmp_path / "sgns.words.npy")
    assert vectors.words == ["the", "1984", "a\u00a0b"] and vectors["1984"].tolist() == [3, 4]
    assert Check(str(tmp_path / "sgns.words.npy")).problems.keys() == {"odd word"}
    (tmp_path / "sgns.words.vocab").write_text("the\na 5\nb\n")
    refused(lambda: Vectors.read(tmp_path / "sgns.words.npy"), "sgns.words.vocab:2: has a count, unlike line 1;")
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
    (tmp_path / "vectors.tsv").write_text("x\t2\n3\t4\n5\t6\n")
    (tmp_path / "metadata.tsv").write_text("a\nb\nc\n")
    refused(lambda: Vectors.read(tmp_path / "vectors.tsv"), "vectors.tsv:1: is not tab-separated numbers")
    (tmp_path / "metadata.tsv").unlink()
    (tmp_path / "vectors.tsv").write_text("1\t2\n3\t4\n")
    refused(lambda: Vectors.read(tmp_path / "vectors.tsv"), "has no list of words beside it")
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


STARSPACE = "the\t0.5\t-0.25\n1984\t1e-05\t2\n__label__a\t3\t4\n"


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
    (FASTTEXT, "is a model of fastText (.bin or .ftz); give an uncompressed file, not a pipe"),
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
