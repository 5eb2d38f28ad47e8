"""Test saved and loaded estimators, and slices."""

import copy
import dataclasses
import gzip
import inspect
import json
import os
import pickle

import numpy as np
import pytest
from common import make, refused
from scipy.linalg import orthogonal_procrustes

import tiedtools as tt
from tiedtools.api.slices import read_slices, train_slices
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import LmReading, Reading
from tiedtools.files import modelfile
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.translation.config import BitextReading, TranslationConfig
from tiedtools.models.word2vec.config import Config
from tiedtools.training.schedules import Training
from tiedtools.vectors import edit

SENTENCES = [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["the", "dog", "sat"]] * 60
TEXT = "".join(f"{' '.join(words)}\n" for words in SENTENCES)
PARTS = {
    "w2v": (Config, Reading), "lstm": (LstmConfig, Training, LmReading), "rnnlm": (RnnlmConfig, Training, LmReading),
    "nmt": (TranslationConfig, Training, BitextReading),
}  # fmt: skip
READING = dict(min_count=2, max_vocab=50, errors="ignore")
TRAINING = dict(
    epochs=2, sessions=2, restart="last", keep="last", lr=0.5, clip=0.7, schedule="decay", decay=1.5, min_gain=0.1,
    decay_after=2, min_improvement=1.01, eval_batch=3, valid_share=0.2, threads=2, seed=7,
)  # fmt: skip
OPTIMIZATION = dict(optimizer="nt-asgd", nonmono=3, average_after=1, l2=0.1, lr_weight_decay=0.01, weight_decay=0.02)
SMALL = dict(size=6, hidden=5, epochs=1)
# Models whose settings together differ from every default.
MODELS = {
    "w2v": [
        dict(
            size=6, architecture="skipgram", tying="linear", fit_pmi=True, window=2, negative=3, epochs=1, lr=0.01,
            sample=0.1, threads=1, seed=4, min_alpha=0.001, ns_exponent=0.5, fixed_window=True, shift=-0.5,
            lr_linear=0.02, init_linear="uniform", init_range=0.1, skip_input=False, exact=True, **READING,
        ),
        dict(
            size=6, tying="signs", negated=0.5, cbow_grad="ctool", cbow_sum=True, shared_negatives=(2, 8, 8),
            deterministic=True, precision="float32", threads=2, min_count=0,
        ),
        dict(size=6, hs=True, negative=0, min_count=3, cbow_grad="exact", skip_input=True),
        dict(size=4, tying="linear", precision="bfloat16", min_count=1),
        dict(size=4, subwords="ngrams", min_n=2, max_n=4, buckets=90, min_count=1),
    ],
    "lstm": [
        dict(
            tying="linear", linear_bias=True, linear_dropout="both", dropout_kind="locked", drop_word=0.1, drop_emb=0.1,
            drop_layer=0.1, drop_out=0.1, drop_weights=0.1, mask_sharing="batch", mc_samples=2, output_bias=False,
            augment_share=0.1, tau=9.0, detach=True, loss_scale="sum", ar=0.1, tar=0.2, layer_widths="4,6",
            init=0.2, init_lstm=0.15, init_bias="lstm", init_by_width=True, forget_bias=0.5, random_steps=True, steps=7,
            batch=3, precision="float32", **SMALL | TRAINING, **READING,
        ) | dict(hidden=6),
        dict(cell="rhn", depth=2, transform_bias=-1.5, dropout_kind="gal", drop_state=0.1, projection=0.1, **SMALL),
        dict(OPTIMIZATION, sampled=4, layers=3, drop_emb=0.2, schedule="constant", min_count=3, **SMALL),
        dict(unit_embeddings=True, augment=0.1, dtype="float64", precision="float32", drop_out=0, **SMALL),
        dict(
            subwords="chars", reuse="cnn", subword_dim=5, filters="3,2", highways=1, atomic_unk=True, **SMALL
        ),
        dict(preset="day", min_count=2, size=6, layer_widths="5,6", epochs=1, sampled=0),
    ],
    "rnnlm": [
        dict(
            hidden=5, classes=3, old_classes=True, doc_dim=4, doc_lr=0.2, start_doc="first", sentences=True,
            independent=True, bptt=2, bptt_block=3, defer=True, beta=1e-6, cutoff=7.0, direct=0.001, direct_order=2,
            **TRAINING, **READING,
        ),
        dict(hidden=5, dtype="float64", epochs=1, valid_share=0),
    ],
    "nmt": [
        dict(
            tie="decoder", init=0.2, drop_emb=0.1, drop_annotation=0.1, drop_out=0.1, batch=3, max_length=9, bpe=4,
            bleu=False, **SMALL | {k: v for k, v in TRAINING.items() if k != "valid_share"}, **READING,
        ),
        dict(OPTIMIZATION, min_count=2, schedule="constant", **SMALL),
        dict(preset="press-wolf-nmt", size=6, hidden=5, epochs=1, dtype="float64", precision="float32"),
    ],
}  # fmt: skip
CASES = [(kind, settings) for kind, models in MODELS.items() for settings in models]
# Implied by others, or of other libraries, or with a default that is a number of this machine.
UNSET = {
    "field", "target_field", "tokenize", "phrases", "learn_start", "shuffle", "language", "segmentation", "highway_dim",
    "threads",
}  # fmt: skip
every_model = pytest.mark.parametrize("kind, settings", CASES, ids=str)


def fitted(model, *more, **outputs):
    return model.fit(*[SENTENCES] * (1 + isinstance(model, tt.Translator)), *more, **outputs)


def flat(model):
    """Return all settings of a model, by name."""
    *parts, reading = model.configured
    return {name: value for part in parts for name, value in dataclasses.asdict(part).items()} | reading


def test_documented_defaults_are_true():
    for kind in tt.Word2Vec, tt.LanguageModel, tt.Translator:
        shown = {n: p.default for n, p in inspect.signature(kind).parameters.items() if p.default is not None}
        assert flat(kind()) == {name: shown.get(name, value) for name, value in flat(kind()).items()}


@pytest.mark.parametrize("kind", MODELS)
def test_the_models_below_have_every_setting(kind):
    names = {field.name for part in PARTS[kind] for field in dataclasses.fields(part)} - UNSET
    plain = flat(make(kind))
    for name in names:
        assert any(
            name in settings and flat(make(kind, **settings))[name] != plain.get(name) for settings in MODELS[kind]
        )


@every_model
def test_all_settings_survive(tmp_path, kind, settings):
    if settings.get("bpe"):
        pytest.importorskip("subword_nmt")
    model = fitted(make(kind, **settings))
    model.save(tmp_path / "model")
    pickle.loads(pickle.dumps(copy.deepcopy(model))).save(tmp_path / "pickled")
    fitted(make(kind, **settings), save_model=str(tmp_path / "written"), no_manifest=True)
    tt.load(tmp_path / "model").save(tmp_path / "again")
    expected = flat(model)
    if settings.get("precision") is None and "precision" in expected:
        expected["precision"] = model.model.config.precision
    expected |= {"bleu": True} if kind == "nmt" and "bleu" not in settings else {}
    expected["threads"] = min(expected["threads"], available_cores())
    for name in "model", "pickled", "written", "again":
        assert flat(tt.load(tmp_path / name)) == expected
    assert flat(tt.load(tmp_path / "model", threads=3)) == expected | {"threads": 3}


@pytest.mark.parametrize("command, settings", [
    ("w2v -min-count 2 -max-vocab 9 -size 6 -iter 1 -threads 1", dict(min_count=2, max_vocab=9, epochs=1, threads=1)),
    ("lstm -min-count 3 --size 6 --epochs 1 --lr 3 --valid-share .3", dict(min_count=3, lr=3.0, valid_share=0.3)),
    ("lm --cell gru --size 6 --epochs 1 --decay 3 --errors replace", dict(decay=3.0, errors="replace", cell="gru")),
    ("rnnlm -hidden 6 -max-iter 2 -min-count 2 -alpha .2", dict(epochs=2, min_count=2, lr=0.2, hidden=6)),
    ("rnnlm -hidden 6 --one-iter -min-count 2", dict(epochs=1, valid_share=0, min_count=2)),
    ("nmt --source text --target text --size 6 --hidden 6 --epochs 1 --no-bleu", dict(bleu=False, epochs=1)),
], ids=str)  # fmt: skip
def test_models_of_commands_keep_their_settings(tmp_path, monkeypatch, run, command, settings):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    result = run(*command.split(), "--save-model", "model", "-output", "vectors", *["text"] * ("nmt" not in command))
    assert result.exit_code == 0, result.stderr
    found = flat(tt.load("model"))
    assert {name: found[name] for name in settings} == settings
    fitted(tt.load("model"))


@pytest.mark.parametrize("kind", MODELS)
def test_fit_says_that_it_replaces_a_trained_model(tmp_path, messages, kind):
    told = "the model is already trained: `fit` trains a new one from scratch"
    model = make(kind, **MODELS[kind][-1 if kind in ("w2v", "rnnlm") else 1])
    fitted(model)
    assert told not in messages()
    model.save(tmp_path / "model")
    for trained in model, tt.load(tmp_path / "model"):
        fitted(trained)
        assert messages().count(told) == 1
    files = dict(checkpoint=str(tmp_path / "checkpoint"), resume=True)
    fitted(fitted(model, **files), **files)
    assert told not in messages()


@pytest.mark.parametrize("settings", [
    3, [1], {"min_count": -1}, {"min_count": "x"}, {"threads": "x"}, {"unheard_of": 1}, {"size": []},
], ids=str)  # fmt: skip
def test_wrong_settings_in_a_file_are_reported(tmp_path, settings):
    fitted(make("w2v", size=4, epochs=1, min_count=1)).save(tmp_path / "model")
    header, words, arrays = modelfile.load(str(tmp_path / "model"))
    with open(tmp_path / "model", "wb") as file:
        modelfile.save(file, "word2vec", header["config"], words, arrays, settings)
    refused(lambda: tt.load(tmp_path / "model"), "model: not a tiedtools model, or corrupt")


RNG = np.random.default_rng(5)
CLUSTERS = [[f"{name}{k}" for k in range(6)] for name in "abcd"]
SETTINGS = dict(size=10, epochs=4, min_count=1, threads=1, sample=0.0, architecture="skipgram", window=4)


def text(cluster, n=1200):
    """Return sentences in which `word` occurs among the words of one cluster."""
    lines = []
    for k in range(n):
        line = [*RNG.permutation(CLUSTERS[k % 4])[:5]]
        lines.append(" ".join([*line[:2], "word", *line[2:]] if k % 4 == cluster else line))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, cluster in ("1810s", 0), ("1820s", 0), ("1830s", 1):
        (folder / f"{name}.txt").write_text(text(cluster) + ("only here\n" * 5 if name == "1810s" else ""))
    return [str(folder / f"{name}.txt") for name in ("1810s", "1820s", "1830s")]


@pytest.mark.parametrize("tying", ["untied", "tied"])
def test_the_word_that_changed_is_found(texts, tmp_path, run, tying):
    train_slices(dict(SETTINGS, tying=tying), texts, str(tmp_path / "s"), runs=3)
    found = json.loads(run("shift", tmp_path / "s", "--json").stdout)
    assert (found["a"], found["b"]) == ("1810s", "1830s") and {"only", "here"} == {*found["only_a"]}
    assert found["results"][0]["word"] == "word" and found["results"][0]["low"] > found["results"][1]["change"]
    path = json.loads(run("shift", tmp_path / "s", "word", "--json").stdout)["results"]
    assert [line["slice"] for line in path] == ["1810s", "1820s", "1830s"]
    assert path[0]["cosine"] == pytest.approx(1, abs=1e-3) and path[1]["cosine"] > path[2]["cosine"]
    near = [[word for word in line["neighbors"] if word not in ("</s>", "only", "here")] for line in path]
    assert [{word[0] for word in words[:2]} for words in near] == [{"a"}, {"a"}, {"b"}]


def test_slices_of_untied_vectors_have_the_frozen_output_of_the_compass(texts, tmp_path, run):
    """A slice is a training that continues from the compass; words that it lacks are missing in it."""
    args = "-size 10 -iter 4 -min-count 1 -threads 1 -sample 0 -cbow 0 -window 4".split()
    assert run("w2v", "--slices", *texts, *args, "-output", tmp_path / "s").exit_code == 0
    slices = read_slices(str(tmp_path / "s"))
    model = tt.Word2Vec(**SETTINGS).fit(texts[1], init_from=tmp_path / "s" / "compass.npz", freeze="out")
    (_, matrix), words = slices["1820s"][0], slices["1820s"][0][0]
    assert "only" not in words and "only" in slices["1810s"][0][0]
    np.testing.assert_array_equal(matrix, [model.vectors[word].astype(np.float16) for word in words])
    compass = tt.load(tmp_path / "s" / "compass.npz").model
    order = [compass.vocab.words.index(word) for word in model.model.vocab.words]
    np.testing.assert_array_equal(model.model.emb_out, compass.emb_out[order])


def test_an_interrupted_training_is_continued(texts, tmp_path, messages):
    whole, part, settings = tmp_path / "whole", tmp_path / "part", dict(SETTINGS, shared_negatives=(8, 16, 32))
    (tmp_path / "1830s.txt.gz").write_bytes(gzip.compress(open(texts[2], "rb").read()))
    texts = [*texts[:2], str(tmp_path / "1830s.txt.gz")]
    train_slices(settings, texts, str(whole))

    def kill(trainer):  # between the compass and its manifest
        trainer.train()
        os.unlink(part / "compass.npz.run.json")
        raise KeyboardInterrupt

    def stop(trainer):
        if part.joinpath("1810s.runs").exists():
            raise KeyboardInterrupt
        trainer.train()

    trained, names = [], ("1810s.runs", "1820s.runs", "1830s.runs")
    for interrupt in kill, stop:
        with pytest.raises(KeyboardInterrupt):
            train_slices(settings, texts, str(part), interrupt)
    refused(lambda: read_slices(str(part)), "part: slice 1820s is not trained")
    (tmp_path / "slices.txt").touch(), refused(lambda: read_slices(str(tmp_path)), "no slices in slices.txt;")
    refused(lambda: train_slices(settings, texts, str(tmp_path)), "is not the list of these slices")
    train_slices(settings, texts, str(part), lambda trainer: (trained.append(1), trainer.train()))
    refused(lambda: train_slices(settings | dict(min_count=9), texts, str(part)), "`min_count=")
    refused(lambda: train_slices(settings, texts, str(part), write="concat"), "`write=in`; choose")
    refused(lambda: train_slices(settings, texts, str(part), write="out"), "omit it", kind=tt.Contradiction)
    refused(lambda: train_slices(settings, texts[::-1], str(part)), "compass.npz: was trained on other texts")
    train_slices(settings, texts, str(part), trained.append)
    assert len(trained) == 2 and "already complete (3 slices of 1 run)" in messages()
    assert all((part / name).read_bytes() == (whole / name).read_bytes() for name in names)
    (part / "1830s.runs.checkpoint").touch(), train_slices(settings, texts, str(part), trained.append)
    train_slices(settings, texts, str(part), trained.append, runs=2)  # more than there are
    assert len(trained) == 6 and trained[2].files.resume


@pytest.mark.parametrize("options", ["--valid x", "--save-model m.npz", "--checkpoint c", "-output -", ""])
def test_options_of_a_single_training_are_refused(texts, tmp_path, run, options):
    output = [] if options in ("", "-output -") else ["-output", tmp_path / "s"]
    result = run("w2v", "--slices", *texts, *options.split(), *output)
    assert result.exit_code == 2 and not (tmp_path / "s").exists()
    assert run("w2v", "--slices", texts[0], texts[0], "-output", tmp_path / "s").exit_code == 1
    (tmp_path / "empty.txt").write_text("\n")
    result = run("w2v", "--slices", texts[0], tmp_path / "empty.txt", "-output", tmp_path / "s")
    assert result.stderr.startswith(f"tiedtools: {tmp_path / 'empty.txt'}: ") and not (tmp_path / "s").exists()
    assert "is not a folder; give" in run("w2v", "--slices", *texts, "-output", texts[0]).stderr
    assert run("shift", tmp_path).exit_code == 1


def test_align(tmp_path, run, monkeypatch):
    """Vectors rotated and moved agree after alignment; the residual of the others shows in the table."""
    monkeypatch.setattr(edit, "BANDS", (1, 11))
    words = [f"w{k}" for k in range(50)]
    first = tt.Vectors(["</s>", *words, "w3"], RNG.standard_normal((52, 6)))  # the second w3 is ignored
    one = first.matrix[1:51]
    turned = one @ np.linalg.qr(RNG.standard_normal((6, 6)))[0] + 3
    tt.Vectors([*words, "new"], np.concatenate([turned, np.ones((1, 6))])).write(tmp_path / "b.txt")
    first.write(tmp_path / "a.txt")
    args = ["align", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "c.txt"]
    plain = json.loads(run(*args, "--json").stdout)["results"]
    a, b = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (one, turned))
    cosines = (a * (b @ orthogonal_procrustes(b, a)[0])).sum(1)
    for line, part, ranks in zip(plain, np.split(cosines, [10]), ("1 to 10", "11 to 51"), strict=True):
        mean, (low, high) = part.mean(), np.percentile(part, [5, 95])
        assert line == pytest.approx(dict(ranks=ranks, words=len(part), cosine=mean, low=low, high=high), abs=1e-5)
    found = json.loads(run(*args, "--center", "--no-normalize", "--json").stdout)["results"]
    assert [line["cosine"] for line in found] == pytest.approx([1, 1], abs=1e-6)
    aligned = tt.Vectors.read(tmp_path / "c.txt")
    assert aligned.words[-1] == "new"
    np.testing.assert_allclose(aligned.matrix[:-1], one, atol=1e-5)
    assert run("align", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "a.txt").exit_code == 2
