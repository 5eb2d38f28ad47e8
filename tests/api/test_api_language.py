"""Test LanguageModel and Translator."""

import concurrent.futures
import inspect
import multiprocessing
import pickle

import numpy as np
import pytest
from common import refused

import tiedtools
import tiedtools as tt
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.perplexity import score_lines

TEXT = "the cat sat on the mat\nthe dog sat on a mat\na dog and a cat ran\n" * 20
SENTENCES = [line.split() for line in TEXT.splitlines()]
KINDS = {
    "lstm": dict(size=6, hidden=7, batch=3, steps=5, epochs=2, threads=1, tying="linear", dropout=0.1),
    "rnnlm": dict(hidden=6, classes=3, epochs=2, doc_dim=2),
}
OPTIONS = {
    "lstm": "--size 6 --hidden 7 --batch 3 --steps 5 --epochs 2 --threads 1 --tie-linear --dropout .1",
    "rnnlm": "--hidden 6 --classes 3 --epochs 2 --doc-dim 2",
}
both = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def models():
    return {kind: tt.LanguageModel(kind, **settings).fit(SENTENCES) for kind, settings in KINDS.items()}


@both
def test_the_command_line_writes_the_same_bytes(tmp_path, run, kind):
    """Also the model file and, but for times, the log."""
    (tmp_path / "text").write_text(TEXT)
    files = {name: tmp_path / f"ours.{name}" for name in ("output", "save_model", "log_json")}
    tt.LanguageModel(kind, **KINDS[kind]).fit(iter(SENTENCES), valid=SENTENCES[:5], test=SENTENCES[:7], **files)
    (tmp_path / "valid").write_text("".join(" ".join(s) + "\n" for s in SENTENCES[:5]))
    (tmp_path / "test").write_text("".join(" ".join(s) + "\n" for s in SENTENCES[:7]))
    given = [part for name in files for part in (f"--{name.replace('_', '-')}", tmp_path / f"theirs.{name}")]
    texts = ["--valid", tmp_path / "valid", "--test", tmp_path / "test", tmp_path / "text"]
    result = run(kind, *OPTIONS[kind].split(), *given, *texts)
    assert result.exit_code == 0, result.stderr
    for name in "output", "save_model":
        assert files[name].read_bytes() == (tmp_path / f"theirs.{name}").read_bytes()
    ours, theirs = (path.read_text().count("valid_ppl") for path in (files["log_json"], tmp_path / "theirs.log_json"))
    assert ours == theirs == 2


@both
def test_figures_are_those_of_ppl_nbest_and_predict(tmp_path, run, models, kind):
    model, text = models[kind], tmp_path / "text"
    text.write_text("the cat sat\nthe unseen dog\n")
    model.save(tmp_path / "model")
    printed = lambda command, *options: run(command, tmp_path / "model", text, *options).stdout_bytes.decode()
    sentences = ["the cat sat".split(), "the unseen dog".split()]
    for options, settings in ([], {}), (["--independent"], dict(independent=True)), (["--batch", 2], dict(batch=2)):
        for source in text, sentences, iter(sentences):
            assert f"ppl= {model.perplexity(source, **settings):g} " in printed("ppl", *options)
    statistics = model.statistics(text)
    assert [statistics[name] for name in ("sentences", "words", "oovs", "as_unk")] == [2, 6, 1, 0]
    text.write_text("the cat sat\n\na dog\n")
    scores = model.score(["the cat sat".split(), [], ["a", "dog"]])
    assert scores.dtype == np.float64 and printed("nbest") == "".join(f"{score:.6f}\n" for score in scores)
    codes = Lexicon(model.model.vocab).codes(["the", "cat", "sat", "\n"])
    np.testing.assert_allclose(scores[0], score_lines(model.model, [codes])[0].sum() / np.log(10), rtol=1e-6)
    text.write_text("the cat\n")
    for context in "the cat", ["the", "cat"]:
        found = model.next_words(context, 3)
        assert printed("predict", "--top", 3) == "".join(f"1\t{word}\t{p:.6g}\n" for word, p in found)
    everything = model.next_words(top=1000)
    assert sum(p for _, p in everything) == pytest.approx(1) and len(everything) == len(model.model.vocab)


@both
def test_with_a_cache_figures_are_those_of_the_commands(tmp_path, run, models, kind):
    """Also after pickling; the defaults are those of the commands. The model without a cache does not change."""
    (tmp_path / "text").write_text("the cat sat\nthe unseen dog\nthe cat sat\n")
    models[kind].save(tmp_path / "model")
    plain = models[kind].perplexity(tmp_path / "text")
    for options, settings in (
        ([], {}),
        (["--cache-theta", 2, "--cache-lambda", 0.3], dict(cache_theta=2, cache_lambda=0.3)),
    ):
        model = pickle.loads(pickle.dumps(models[kind].with_cache(5, **settings)))
        printed = lambda *line: run(*line, "--cache", 5, *options).stdout_bytes.decode()
        assert f"ppl= {model.perplexity(tmp_path / 'text'):g} " in printed("ppl", tmp_path / "model", tmp_path / "text")
        scores = model.score([["the", "cat", "the", "cat"]])
        (tmp_path / "line").write_text("the cat the cat\n")
        assert printed("nbest", tmp_path / "model", tmp_path / "line") == f"{scores[0]:.6f}\n"
        rows = [line.split("\t") for line in printed("predict", tmp_path / "model", tmp_path / "line").splitlines()]
        found = model.next_words("the cat the cat")
        assert [(word, float(p)) for _, word, p in rows] == [(word, pytest.approx(p, rel=1e-5)) for word, p in found]
        assert sum(p for _, p in model.next_words("the cat the cat", top=100)) == pytest.approx(1)
        assert next(model.generate(1)) != [] and len(model.vectors) == len(models[kind].vectors)
    assert models[kind].perplexity(tmp_path / "text") == plain == model.with_cache(0).perplexity(tmp_path / "text")
    assert plain != model.perplexity(tmp_path / "text")


@both
@pytest.mark.parametrize("limits, options", [
    (dict(sentences=3), ["--lines", 3]), (dict(words=9, seed=5), ["--words", 9, "--seed", 5]),
    (dict(sentences=2, prompt="the cat", temperature=0.5), ["--lines", 2, "--prompt", "the cat", "--temperature", 0.5]),
    (dict(top_k=2, no_unk=True, words=20), ["--top-k", 2, "--no-unk", "--words", 20]), ({}, []),
], ids=str)  # fmt: skip
def test_text_is_that_of_generate(tmp_path, run, models, kind, limits, options):
    models[kind].save(tmp_path / "model")
    printed = run("generate", tmp_path / "model", *options).stdout_bytes.decode()
    assert printed == "".join(" ".join(sentence) + "\n" for sentence in models[kind].generate(**limits))


def score_in_child(model):
    return model.score(SENTENCES[:3])


@both
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_scoring_in_other_processes(models, kind, method):
    """After threads of this process have computed."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        np.testing.assert_array_equal(pool.map(score_in_child, [models[kind]])[0], models[kind].score(SENTENCES[:3]))


@both
def test_threads_may_share_a_model(models, kind):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: models[kind].perplexity(SENTENCES[k : k + 20]), range(20)))
    assert found == [models[kind].perplexity(SENTENCES[k : k + 20]) for k in range(20)]


def test_a_callback_stops_training_and_the_best_epoch_remains():
    model = tt.LanguageModel("lstm", **KINDS["lstm"] | dict(epochs=50))
    model.fit(SENTENCES, on_epoch=lambda figures: figures["epoch"] < 3)
    assert [epoch["epoch"] for epoch in model.history] == [1, 2, 3]
    best = min(model.history, key=lambda epoch: epoch["valid_ppl"])
    cut = round(0.9 * len(SENTENCES))
    assert model.perplexity(SENTENCES[cut:]) == pytest.approx(best["valid_ppl"], rel=0.02)
    model = tt.LanguageModel("lstm", **KINDS["lstm"]).fit(SENTENCES)
    before = model.score(SENTENCES[:3])
    model.settings |= dict(lr=1e6, clip=0.0)
    with pytest.raises(tt.Diverged, match="lower `lr` or set `clip`"):
        model.fit(SENTENCES)
    np.testing.assert_array_equal(model.score(SENTENCES[:3]), before)


def test_a_preset_and_its_vocabulary():
    config, training, reading = tt.LanguageModel(preset="gulordava-wiki-600-300", hidden=500, drop_emb=None).configured
    assert (config.size, config.hidden, config.drop_emb, config.batch, training.lr) == (300, 500, 0.2, 128, 20.0)
    assert reading == {"max_vocab": 50_000}


def test_mistakes(tmp_path, model):
    tt.Word2Vec(size=4, epochs=1, min_count=1).fit(SENTENCES).save(tmp_path / "vectors.npz")
    assert isinstance(tt.load(tmp_path / "vectors.npz"), tt.Word2Vec)
    refused(lambda: tt.LanguageModel().perplexity(SENTENCES), "not trained; call `fit` first")
    refused(lambda: tt.LanguageModel(**KINDS["lstm"]).fit(iter(["the cat"])), "a sentence is a list of words, not str")
    refused(lambda: tiedtools.Translator(sise=3), "unknown setting `sise`", kind=Contradiction)
    refused(lambda: tiedtools.Translator(tie="both"), "`tie='both'` is not one of none", kind=Contradiction)
    refused(lambda: tiedtools.Translator(optimizer="asgd", sessions=2), "`optimizer=asgd` averages", kind=Contradiction)
    refused(lambda: model.translations(SOURCE, beam=0), "beam=0", kind=Contradiction)
    refused(lambda: model.score(SOURCE, TARGET[:1]), "target: has 1 line, fewer than source")
    refused(lambda: tiedtools.Translator().translate(SOURCE), "call `fit` first")
    refused(lambda: tiedtools.LanguageModel().word_vectors("source"), "`which='source'`", kind=Contradiction)


def test_public_names():
    assert {name for name in tt.__all__ if inspect.isclass(getattr(tt, name))} == {
        "Word2Vec", "LanguageModel", "Phrases", "Runs", "SentenceVectors", "Translator", "Vectors",
        "TiedtoolsError", "Contradiction", "Diverged",
    }  # fmt: skip
    assert set(tt.__all__) <= set(dir(tt))
    with pytest.raises(AttributeError, match="no attribute 'Glove'"):
        _ = tt.Glove


SOURCE = [["a", "b"], ["b"], ["c", "a", "b"], ["c"]] * 6
TARGET = [["x", "y"], ["y"], ["z", "x", "y"], ["z"]] * 6
SETTINGS = dict(size=8, hidden=8, epochs=2, batch=4, threads=1, seed=2)


@pytest.fixture(scope="module")
def model():
    return tiedtools.Translator(tie="decoder", **SETTINGS).fit(SOURCE, TARGET)


def test_translators_are_saved_and_translate_with_scores(model, tmp_path):
    assert [epoch["epoch"] for epoch in model.history] == [1, 2]
    for vectors, words in (model.vectors, "xyz"), (model.word_vectors("source"), "abc"):
        assert dict(zip(vectors, vectors.counts)) == dict(zip(("</s>", "<unk>", *words), (24, 0, 12, 18, 12)))
    assert repr(model) == f"Translator(tie='decoder', {', '.join(f'{k}={v}' for k, v in SETTINGS.items())})"
    model.save(tmp_path / "m.npz")
    again = tiedtools.load(tmp_path / "m.npz", threads=1)
    assert isinstance(again, tiedtools.Translator) and again.settings["tie"] == "decoder"
    assert list(again.translate(SOURCE[:3])) == list(model.translate(SOURCE[:3]))
    sentences = [["a", "b"], [], ["c", "nothing"]]
    found = list(model.translations(sentences, beam=3, align=True, max_length=5))
    assert [best.text for best, *_ in found] == list(model.translate(sentences, beam=3, max_length=5))
    assert found[1][0].text == "" and found[0][0].weights.shape == (len(found[0][0].target), 3)
    for normalize in False, True:
        best = found[0]
        scores = model.score([["a", "b"]] * len(best), [t.text.split() for t in best], normalize=normalize)
        lengths = [len(t.target) if normalize else 1 for t in best]
        np.testing.assert_allclose(scores, [t.logprob / n for t, n in zip(best, lengths)], atol=1e-4)
    assert len(list(model.translate(iter([["a"]] * 3), batch=1))) == 3
    pytest.importorskip("sacrebleu")
    seen = []
    model = tiedtools.Translator(tie="all", **SETTINGS)
    model.fit(SOURCE, TARGET, SOURCE[:4], TARGET[:4], on_epoch=seen.append)
    assert [epoch["valid_bleu"] for epoch in model.history] == [epoch["valid_bleu"] for epoch in seen]
