"""Test words outside the vocabulary: composed vectors in `composing`, `nn`, `analogy`, and `convert`."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from common import refused, save
from subwordcase import WORDS, composed, lettered

import tiedtools as tt
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation.similarity import SimilaritySet, judge
from tiedtools.files.modelfile import load_model
from tiedtools.models.composing import compose, composer, gates
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.npz"
    save(lettered("none"), path)
    return path


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("which", ["in", "out", "sum"])
def test_composed_vectors_are_those_of_the_file(model, which):
    path = f"{model}:{which}"
    theirs, made = Vectors.read(path), composer(path)(["cats", "gods", "1", "tac"])
    assert made.words == ["cats", "gods", "tac"]
    np.testing.assert_allclose(made["cats"], theirs["cats"], rtol=1e-5)
    assert np.abs(made.matrix[1:] - made["cats"]).max() > 1e-3


def test_only_models_with_composed_vectors_read_other_words(model, tmp_path, run, text):
    save(lettered("plain"), tmp_path / "plain.npz")
    Vectors.read(str(model)).write(str(tmp_path / "vectors.txt"))
    assert composer(str(tmp_path / "plain.npz"))(["gods"]).words == ["gods"]
    for name in "vectors.txt", "plain.npz:out", "plain.npz:sum", "-":
        assert composer(str(tmp_path / name) if name != "-" else name) is None
    path = tmp_path / "m.npz"
    save(LstmLM(Vocab.made_up(9), LstmConfig(size=2)), path)
    (tmp_path / "listed").write_text("gods\n")
    run.fails(1, f"{path}: has a vector per word; to compose", "ppl", path, text, "--vocabulary", tmp_path / "listed")


def test_unknown_subwords_are_reported(model, messages):
    words = ["gods", "1!", *(f"cat{k}" for k in range(9))]
    assert composer(str(model))(words).words == ["gods", *words[2:]]
    assert messages() == (
        f"{model}: unknown subwords left out of 9 words:"
        " 'cat0' (0), 'cat1' (1), 'cat2' (2), 'cat3' (3), 'cat4' (4), and 4 more\n"
    )
    np.testing.assert_array_equal(composer(str(model))(["cat1"])["cat1"], composer(str(model))(["cat"])["cat"])


def test_words_longer_than_those_of_training_are_reported(model, messages):
    long, longest = "cat" * 6, load_model(str(model)).longest
    vectors = composer(str(model))(["cats", long, long + "s"])
    assert messages() == f"{model}: 2 words cut to the first {longest} chars: {long!r}, {long + 's'!r}\n"
    np.testing.assert_array_equal(vectors[long], vectors[long + "s"])


@pytest.mark.parametrize("which", ["in", "out"])
def test_neighbors_of_words_outside_the_vocabulary(run, model, which):
    result = run("nn", f"{model}:{which}", "gods", "--top", 30)
    assert result.exit_code == 0 and result.stderr == ""
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    vector, theirs = load_model(str(model)).compose(["gods"], which)["gods"], Vectors.read(f"{model}:{which}")
    assert {word for _, word, _ in lines} == set(WORDS)
    for asked, word, score in lines:
        assert asked == "gods" and float(score) == pytest.approx(cosine(vector, theirs[word]), abs=1e-4)


def test_queries_and_vectors_of_words_of_all_kinds(run, model, tmp_path):
    result = run("nn", model, "cats + gods", "1!", "cat1", "cat", "--json")
    answer = json.loads(result.stdout)
    assert list(answer["neighbors"]) == ["cats + gods", "cat1", "cat"] and answer["unknown"] == ["1!"]
    assert "cats" not in dict(answer["neighbors"]["cats + gods"])
    told = f"{model}: unknown subwords left out of 1 word: 'cat1' (1)\n"
    assert result.exit_code == 1 and result.stderr == f"{told}tiedtools: {model}: no vector for '1!'\n"
    typed = run("nn", model, input=b"gods\n1\ncats\n")
    assert typed.exit_code == 1 and typed.stdout.count("\n") == 20
    result = run("analogy", model, "cat", "cats", "god", "--top", 1)
    assert result.exit_code == 0 and result.stdout.split("\t")[3] in WORDS
    wanted, written = tmp_path / "words", tmp_path / "vectors.npy"
    wanted.write_text("gods\ncats\n1!\nowl\nat1\ngods\n")
    result = run("convert", model, written, "--words", wanted)
    assert result.exit_code == 0 and f"{wanted}: 1 word of 5 without a vector in {model}\n" in result.stderr
    assert "'at1' (1)\n" in result.stderr
    found, m = Vectors.read(str(written)), load_model(str(model))
    assert found.words == ["gods", "cats", "owl", "at1"]
    np.testing.assert_allclose(found.matrix, m.compose(["gods", "cats", "owl", "at"]).matrix, rtol=1e-5)


def test_composed_vectors_in_python(model):
    m = tt.load(model)
    made = m.compose(["gods", "1", "cats"], "sum")
    np.testing.assert_allclose(made["cats"], m.word_vectors("sum")["cats"], rtol=1e-5)
    assert made.words == m.compose("gods cats").words == ["gods", "cats"] and len(m.compose([])) == 0
    m.model.settings = {"tokenize": "default"}
    other = m.of_words(long := ["gods", "cat" * 6])
    for same in other, pickle.loads(pickle.dumps(other)), other.of_words(long):
        assert same.compose(["cats", "gods"]).words == ["cats", "gods"] and same.split("gods.") == ["gods", "."]
        np.testing.assert_allclose(same.vectors[long], m.compose(long).matrix, rtol=1e-5)
    refused(lambda: other.save(f"{model}.2"), "a replaced vocabulary cannot be saved; save the original")
    refused(lambda: compose(LstmLM(Vocab.made_up(9), LstmConfig(size=2)), ["gods"]), "model: has a vector per word; to")
    refused(lambda: m.compose(["gods"], "both"), "`which='both'` is not one of in, out, sum,", kind=Contradiction)
    theirs, saved = Vectors.read(str(model)), load_model(str(model))
    judged = judge(theirs, SimilaritySet("toy", "toy", PAIRS, np.arange(5.0)), "compose", "lower", composer(str(model)))
    assert judged.used.tolist() == judged.known.tolist() == [True, True, False, True, True]
    expected = [cosine(*saved.compose([a.lower(), b.lower()]).matrix) for a, b in PAIRS]
    np.testing.assert_allclose(judged.cosines[judged.used], np.array(expected)[judged.used], rtol=1e-5)


PAIRS = [("cats", "owl"), ("Gods", "cats"), ("1!", "cat"), ("tac", "Owls"), ("OWL", "dog")]


@pytest.fixture
def pairs(tmp_path):
    (path := tmp_path / "pairs").write_text("".join(f"{a} {b} {k}\n" for k, (a, b) in enumerate(PAIRS)))
    return path


@pytest.mark.parametrize("case, covered, oov_words", [("as-is", 3, 5), ("fallback", 4, 3), ("lower", 4, 3)])
def test_similarity_of_words_outside_the_vocabulary(run, model, pairs, case, covered, oov_words):
    options = ["--oov", "compose", "--case", case, "--bootstrap", 0]
    result = run("eval-sim", model, "--set", pairs, "--json", *options)
    (told,) = json.loads(result.stdout)["results"][0]["sets"]
    assert (told["pairs"], told["covered"], told["oov_words"]) == (5, covered, oov_words)
    assert ("'Gods' (G)" in result.stderr) == (case != "lower")
    settings = dict(oov="compose", case=case, bootstrap=0)
    for source in model, tt.load(model):
        assert tt.evaluate_similarity(source, pairs, **settings)["sets"] == [told]


def test_similarity_refuses_files_without_composed_vectors(run, model, pairs, tmp_path):
    vectors = tmp_path / "vectors"
    Vectors.read(str(model)).write(vectors)
    for command in ["eval-sim", model, vectors], ["compare", model, vectors], ["eval-sim", "-"]:
        result = run(*command, "--set", pairs, "--oov", "compose", input=vectors.read_bytes())
        name = "standard input" if "-" in command else vectors
        told = (
            f"tiedtools: {name}: has no composed word vectors; give a model of fastText with n-grams, or one trained"
            " with `w2v --subwords` or `lstm --subwords`, or another"
        )
        assert (result.exit_code, result.stderr) == (1, f"{told} --oov\n")
    refused(lambda: tt.evaluate_similarity(Vectors.read(vectors), pairs, oov="compose"), "Vectors do not compose")


@pytest.fixture
def text(tmp_path):
    (path := tmp_path / "text").write_text("cats gods owl! owl\nboxing tac <unk>\n")
    return path


def test_perplexity_with_the_words_of_a_text_or_of_the_model(run, model, text, tmp_path):
    (listed := tmp_path / "listed").write_text("gods 3\ncats\n\nowl!\r\ntac 1\nowl\nboxing\n</s> 9\n")
    told = run("ppl", model, text, "--vocabulary", listed, "--json")
    assert f"{model}: 1 of 7 words left out of the vocabulary for unknown subwords: 'owl!'\n" in told.stderr
    found = json.loads(told.stdout)
    assert (found["words"], found["oovs"], found["oovs_scored"]) == (7, 2, False)
    m = load_model(str(model)).of_words(["</s>", "gods", "cats", "tac", "owl", "boxing"])
    ids = np.array([[0, 2, 1, 4, 0, 5, 3, 0]], np.int32).T
    (logprobs, _) = m.score(ids[:-1].copy(), ids[1:].copy(), m.start(1))
    assert found["logprob"] == pytest.approx(logprobs.sum() / np.log(10), rel=1e-6)
    in_python = tt.load(model).of_words("gods cats owl! tac owl boxing".split()).statistics(text)
    assert {"file": found["file"], **in_python} == found
    (listed := tmp_path / "listed").write_text("\n".join(WORDS))
    own, same = (json.loads(run("ppl", model, text, "--json", *o).stdout) for o in ([], ["--vocabulary", listed]))
    assert same["logprob"] == pytest.approx(own["logprob"], rel=1e-6) and same["as_unk"] == own["as_unk"] == 4


@pytest.mark.parametrize("reuse, sampled, problem", [
    ("none", 5, ""), ("emb", 0, ""), ("plain", 0, "m.npz: has an output vector per word; train a model"),
])  # fmt: skip
def test_vocabularies_of_models_of_all_kinds(run, text, tmp_path, reuse, sampled, problem):
    path = tmp_path / "m.npz"
    save(lettered(reuse, sampled=sampled), path)
    (tmp_path / "listed").write_text("gods\n<unk>\n")
    result = run("ppl", path, text, "--vocabulary", tmp_path / "listed")
    assert (result.exit_code, problem in result.stderr, "scored as <unk>: 5 words outside" in result.stdout) == (
        bool(problem),
        True,
        not problem,
    )


@pytest.mark.parametrize("reuse, names", [
    ("plain", ["hw1, input", "hw2, input"]), ("all", ["hw1, tied", "hw2, tied"]),
    ("none", ["hw1, input", "hw1, output", "hw2, input", "hw2, output"]),
    ("emb,cnn,hw1", ["hw1, tied", "hw2, input", "hw2, output"]),
])  # fmt: skip
def test_gates_of_input_and_output(tmp_path, reuse, names):
    path, m = str(tmp_path / "m.npz"), lettered(reuse)
    save(m, path)
    found, p = gates(path), dict(m.params.owners())
    assert [name for name, _ in found] == names
    x = composed(p, "emb_in", dataclasses.replace(m.config, reuse="none", highways=0), m.vocab.subwords.table(WORDS))
    expected = 1 / (1 + np.exp(-(x @ p["emb_in.hw1.W"] + p["emb_in.hw1.b"])[:, :5]))
    np.testing.assert_allclose(found[0][1], expected, rtol=1e-4)
    assert len({values.tobytes() for _, values in found}) == len(names)


def test_plots_of_gates(run, model, tmp_path):
    pytest.importorskip("matplotlib")
    output = tmp_path / "gates.svg"
    for options, legend in (
        ([model], ["hw1, input", "hw1, output", "hw2, input", "hw2, output"]),
        ([model, "--layer", 2], ["hw2, input", "hw2, output"]),
        ([model, tmp_path / "all.npz", "--layer", 1], [f"{model.name}, hw1, output", "all.npz, hw1, tied"]),
    ):
        save(lettered("all"), tmp_path / "all.npz")
        result = run("plot", "gates", *options, "-output", output)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
        assert all(f">{name}<" in output.read_text() for name in legend)
    save(LstmLM(Vocab.made_up(9), LstmConfig(size=2)), tmp_path / "words.npz")
    for args, problem, status in (
        ([tmp_path / "words.npz"], "words.npz: has no highway layers; give a model trained with", 1),
        ([model, "--layer", 3], "model.npz: has no highway layer 3; omit --layer", 2),
    ):
        run.fails(status, problem, "plot", "gates", *args, "-output", tmp_path / "x.png")
