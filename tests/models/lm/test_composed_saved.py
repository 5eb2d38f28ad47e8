"""Test model files, checkpoints, and the command line with word vectors composed from subwords."""

import json
import pickle

import numpy as np
import pytest
from common import refused, rewrite, save
from fitcase import Stopping, fit
from lmcase import window
from subwordcase import WORDS, V, composed, lettered, model

from tiedtools.models.composing import of_words
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.runs.progress import Progress
from tiedtools.text.subwords import Subwords
from tiedtools.text.vocab import Vocab
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training
from tiedtools.vectors.vectors import Vectors


def scores(m):
    ids = np.arange(len(m.vocab), dtype=np.int32)[:, None]
    return m.score(ids, ids[::-1].copy(), m.start(1))[0]


DAMAGES = {
    "no subwords": lambda header, words, arrays: arrays.pop("subwords"),
    "subwords that are no text": lambda header, words, arrays: arrays.update(subwords=np.zeros(3)),
    "another kind": lambda header, words, arrays: header["config"].update(subwords="words"),
    "another layer": lambda header, words, arrays: header["config"].update(reuse="hw3"),
    "no filters": lambda header, words, arrays: header["config"].update(filters=""),
    "no layer": lambda header, words, arrays: arrays.pop("emb_in.cnn.W2"),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_errors_name_the_corrupt_file(change, tmp_path):
    save(lettered(), path := str(tmp_path / "model.npz"))
    rewrite(path, change)
    refused(lambda: LstmLM.load(path), f"{path}: ", "corrupt")


@pytest.mark.parametrize("reuse", ["none", "all", "emb,hw1"])
def test_other_words_are_composed(reuse):
    m = lettered(reuse)
    before = scores(m)
    for which in "in", "out":
        theirs = m.vectors(which).matrix  # does not change with the next composition
        np.testing.assert_allclose(m.compose(WORDS[2:9], which).matrix, theirs[2:9], rtol=1e-6)
        new = m.compose(["cat", "tac", "catcatcatcat", "dog!"], which).matrix
        np.testing.assert_allclose(new[0], theirs[WORDS.index("cat")], rtol=1e-6)
        assert np.abs(new[1] - new[0]).max() > 1e-3 and np.isfinite(new).all()
    np.testing.assert_array_equal(scores(m), before)
    m = lettered(reuse, dtype="float64")
    same = m.of_words(WORDS)
    np.testing.assert_allclose(scores(same), scores(m), rtol=1e-12)
    other = m.of_words([*WORDS[:9], "tac", "gods"])
    np.testing.assert_allclose(other.vectors("out").matrix[:9], m.vectors("out").matrix[:9], rtol=1e-6)
    np.testing.assert_allclose(other.vectors("out").matrix[9:], m.compose(["tac", "gods"], "out").matrix, rtol=1e-6)
    bias = m.params["emb_out.b"]
    np.testing.assert_allclose(other.params["emb_out.b"], [*bias[:9], bias.mean(), bias.mean()])
    logs, _ = other.predict(np.zeros((1, 1), np.int32), other.start(1))
    assert np.exp(logs).sum() == pytest.approx(1)


def test_vectors_and_scores_of_other_words():
    letters, long = Subwords.learn("chars", WORDS), ["</s>", "catcatcatcat"]
    config = LstmConfig(subwords="morphs", size=5, reuse="all", dtype="float64")
    m = LstmLM(Vocab(WORDS, np.arange(len(WORDS), 0, -1), letters), config)
    expected = composed(dict(m.params.owners()), "emb_in", config, letters.table(long))
    np.testing.assert_allclose(m.compose(long).matrix, expected, rtol=1e-5)
    np.testing.assert_allclose(m.of_words(long).vectors("out").matrix, expected, rtol=1e-5)
    m = lettered("plain")
    assert len(m.compose(["tac"])) == 1
    refused(lambda: m.compose(["tac"], "out"), "the output vectors of this model are not composed")
    refused(lambda: of_words(m, WORDS, "FILE"), "FILE: has an output vector per word")
    m = model("morphs", "none", sampled=20)
    before = m.score(*window(m))[0]
    m.train_step(*window(m), 1)
    np.testing.assert_array_equal(m.score(*window(m))[0], before)


TRAINING = Training(epochs=3, lr=2.0, clip=1.0, eval_batch=2)
TEXT = np.random.default_rng(1).integers(0, V, 200).astype(np.int32)


def trained(kind, sampled, report=None, **options):
    m = model(kind, "emb,hw1", sampled=sampled, dtype="float32", batch=3, steps=5)
    history = fit(m, TEXT, TEXT[:50], TRAINING, report or Progress(), **options)
    return m.params.values.tobytes(), [epoch["valid_ppl"] for epoch in history]


def test_settings_of_files_and_runs(tmp_path, no_signals):
    path = str(tmp_path / "checkpoint")
    with pytest.raises(KeyboardInterrupt):
        trained("morphs", 0, Stopping(2), checkpoint=path)
    (m := model("morphs", "emb,hw1", dtype="float32", batch=3, steps=5)).vocab.subwords.rows[5] = 1
    refused(lambda: Fit(m, TEXT, TEXT[:50], TRAINING, path, resume=True), "created with a different segmentation;")
    path = str(tmp_path / "model.npz")
    save(lettered(), path)
    before = LstmLM.load(path, 1)
    rewrite(path, lambda header, words, arrays: header["config"].pop("atomic_unk"))
    loaded = LstmLM.load(path, 1)
    assert loaded.config == before.config and loaded.vocab.subwords.units == before.vocab.subwords.units
    np.testing.assert_array_equal(scores(loaded), scores(before))


# The command line

LINES = "".join(f"the {a}s sat on the {b}\n" for a in ("cat", "dog", "owl") for b in ("mat", "box", "log")) * 10
QUICK = "lstm --subwords chars --subword-dim 3 --filters 4,3 --hidden 6 --epochs 2 --lr 2 --batch 4 --steps 5".split()
QUICK += ["--precision", "float32"]


@pytest.mark.parametrize("reuse", ["plain", "none", "all", "emb,cnn"])
def test_all_commands_read_the_model(run, corpus, tmp_path, reuse):
    path, vectors = tmp_path / "model.npz", tmp_path / "vectors"
    result = run(*QUICK, "--threads", 1, "--reuse", reuse, corpus, "--save-model", path, "--output", vectors)
    assert result.exit_code == 0, result.stderr
    assert "subwords: 18 chars, at most 6 in a word\n" in result.stderr
    form = f"model: LSTM, chars, reuse {reuse}{'' if reuse == 'plain' else ', L'}, 2 x 6, embeddings of 7, "
    assert form in result.stderr
    for source in vectors, path:
        assert np.allclose(Vectors.read(str(source)).matrix, LstmLM.load(str(path)).vectors("in").matrix, atol=1e-6)
    told = run("ppl", path, corpus, "--json")
    assert 1 < json.loads(told.stdout_bytes)["ppl"] < 12
    for command, more, given in (
        ("predict", [], b"the cats\n"), ("generate", ["--lines", 2], None),
        ("nbest", [], b"0 ||| the cats sat ||| f=1\n"), ("nn", ["cats"], None),
    ):  # fmt: skip
        result = run(command, path, *more, input=given)
        assert result.exit_code == 0 and result.stdout_bytes, (command, result.stderr)


@pytest.mark.parametrize("options, atomic", [
    ("", False), ("--atomic-unk", True), ("--preset kim-small", True), ("--preset kim-small --no-atomic-unk", False),
    ("--preset assylbekov-chars-small", False),
])  # fmt: skip
def test_unk_as_one_subword(run, corpus, tmp_path, options, atomic):
    path = str(tmp_path / "model.npz")
    corpus.write_text(LINES.replace("owls", "<unk>"))
    result = run(*QUICK, *options.split(), "--epochs", 1, "--save-model", path, corpus)
    assert result.exit_code == 0, result.stderr
    for m in LstmLM.load(path, 1), pickle.loads(pickle.dumps(LstmLM.load(path, 1))):
        assert m.config.atomic_unk == m.vocab.subwords.atomic_unk == atomic
        spelled = m.vocab.subwords.spelled("<unk>")
        assert spelled == ["<w>", *(["<unk>"] if atomic else "<unk>"), "</w>"]
        assert ("<" in m.vocab.subwords.index) != atomic and m.vocab.subwords.spelled("cat") == ["<w>", *"cat", "</w>"]
    table = m.vocab.subwords.table(m.vocab.words)
    expected = composed(dict(m.params.owners()), "emb_in", m.config, table)
    np.testing.assert_allclose(m.vectors("in").matrix, expected, rtol=1e-4, atol=1e-5)


CONTRADICTIONS = """
--reuse emb; --highways 1; --atomic-unk; --subwords morphs --reuse cnn; --subwords chars --reuse emb,proj;
--subwords chars --filters 3,x; --subwords chars --highway-dim 9; --subwords morphs --tie;
--subwords morphs --reuse plain --tie-linear; --subwords morphs --unit-embeddings;
--subwords morphs --reuse all --write concat
""".split(";")


@pytest.mark.parametrize("options", CONTRADICTIONS, ids=str.strip)
def test_contradictions_name_the_last_option_in_one_line(run, options):
    result = run("lstm", *options.split(), "is/not/there")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    named = [part for part in options.split() if part.startswith("--")][-1]
    assert named in result.stderr.replace("--reuse plain", "--tie-linear"), result.stderr


def test_implied_tying_and_options_without_effect(run):
    config = lambda **options: LstmConfig(subwords="morphs", **options)
    assert config().tying == "untied" and config(highway_dim=100).tying == "linear"
    assert config(tying="linear").tying == "linear" and config(highway_dim=100, reuse="plain").tying == "untied"
    assert LstmConfig(subwords="chars").highway_dim == 525 and LstmConfig(subwords="syllables").subword_dim == 50
    idle = ["--subwords morphs --filters 3,4", "--subwords morphs --language de", "--preset kim-small --size 9"]
    idle.append("--subwords chars --layer-widths 5,7 --size 9")
    for options in *idle, "--subwords morphs --highways 1", "--preset assylbekov-morphs-small --size 9":
        told = run("lstm", *options.split(), "is/not/there").stderr
        assert (f"{options.split()[-2]} has no effect" in told) == ("no effect" in told) == (options in idle)
