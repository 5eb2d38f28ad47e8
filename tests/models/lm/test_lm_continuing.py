"""Test model files, and training that continues from an earlier language model."""

import numpy as np
import pytest
from common import MODEL_DAMAGES, refused, regex_or_skip, rewrite, save
from lmcase import CONFIGS, VOCAB, model, train, window

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lm.trainer import LstmTrainer, continued

RNG = np.random.default_rng(7)
SMALL = dict(size=8, layers=1, epochs=2, batch=4, steps=5, lr=1.0, dropout=0.0, threads=1, valid_share=0)
KINDS = {
    "untied": dict(), "tied": dict(tying="tied"), "linear": dict(tying="linear", hidden=12, cell="gru"),
    "chars": dict(subwords="chars", subword_dim=4, filters="4,6", reuse="all"),
    "plain": dict(subwords="chars", subword_dim=4, filters="4,6", reuse="plain", output_bias=False),
}  # fmt: skip
OPTIMIZERS = dict(
    sgd=dict(l2=0.01, weight_decay=0.01, lr_weight_decay=0.01, unit_embeddings=True),
    asgd=dict(sampled=5),
    adam=dict(lr=0.01, weight_decay=0.01, lr_weight_decay=0.01),
    adadelta=dict(l2=0.01, threads=2),
)


def sentences(words, n=60):
    """Return sentences of a language in which each word mostly follows the one before it."""
    starts, jumps = RNG.integers(len(words), size=(2, n, 8))
    noise = RNG.random((n, 8)) < 0.2
    return [
        [words[k] for k in (start[0] + np.arange(8) + noisy * jump) % len(words)]
        for start, jump, noisy in zip(starts, jumps, noise)
    ]


FIRST, SECOND = (sentences([f"w{chr(97 + k)}{k}" for k in numbers]) for numbers in (range(20), range(10, 26)))
ADDED = {word for line in SECOND for word in line} - {word for line in FIRST for word in line}


@pytest.fixture
def saved(tmp_path):
    """Return a function that trains on FIRST and saves the model."""

    def save(kind="tied", **settings):
        settings = {**SMALL, **KINDS[kind], **settings}
        return tt.LanguageModel("lm", **settings).fit(FIRST, save_model=tmp_path / "first.npz"), tmp_path / "first.npz"

    return save


def values(model):
    return {name: array.copy() for name, array in model.params.owners()}


def is_embedding(name):
    return name.startswith("emb_") and name != "emb_out.b"


def again(**settings):
    """Return an estimator with few settings, because the others are those of the model to continue from."""
    return tt.LanguageModel("lm", threads=1, valid_share=0, **settings)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_frozen_embeddings_stay_and_others_change(saved, kind, optimizer):
    old, path = saved(kind, optimizer=optimizer, **OPTIMIZERS[optimizer])
    new = again().fit(SECOND, init_from=path, freeze="embeddings")
    before, after = values(old.model), values(new.model)
    order = [old.model.vocab.words.index(word) for word in new.model.vocab.words]
    assert before.keys() == after.keys() and new.model.config.optimizer == optimizer
    for name, array in before.items():
        if is_embedding(name):
            np.testing.assert_array_equal(after[name], array[order], name)
        else:
            assert (after[name] != (array[order] if name == "emb_out.b" else array)).any(), name


def test_settings_that_do_not_fit_those_of_the_model(saved):
    _, path = saved("untied", optimizer="adam", lr=0.01)
    fit = lambda **settings: again(**settings).trainer(SECOND, init_from=str(path), freeze="embeddings")
    assert (fit(optimizer="sgd").schedule.lr, fit().schedule.lr) == (20.0, 0.01)
    refused(lambda: fit(unit_embeddings=True), "`unit_embeddings` would change", kind=tt.Contradiction)
    again(optimizer="adam", sampled=1, epochs=1, lr=1e-6).fit(SECOND)  # the first loss exceeds log 2 by far


def test_layers_that_compose_embeddings_are_frozen(saved):
    old, path = saved("chars")
    new = again().fit(FIRST, init_from=path, freeze="embeddings")
    changed = {name for name, array in values(new.model).items() if (array != values(old.model)[name]).any()}
    assert changed == {name for name in values(old.model) if not is_embedding(name)}


@pytest.mark.parametrize("kind", KINDS)
def test_known_words_keep_their_parameters_and_new_words_learn(saved, kind):
    old, path = saved(kind)
    estimator = again().trainer(SECOND, init_from=path, grow=True)
    source = LstmTrainer.read_source(str(path))
    text, _ = estimator.read()
    start = continued(source, text.vocab, estimator.config, estimator.continuation)
    words = text.vocab.words
    assert set(words) == {*old.model.vocab.words, *ADDED} and len(ADDED) == 6
    rows = [words.index(word) for word in old.model.vocab.words]
    for side in "in", "out":
        known, grown = old.model.vectors(side), start.vectors(side)
        np.testing.assert_array_equal([grown[word] for word in known.words], known.matrix)
        new = np.array([grown[word] for word in sorted(ADDED)])
        assert new.any(1).all() and len(np.unique(new, axis=0)) == len(new)
    if old.model.config.output_bias:
        np.testing.assert_array_equal(start.params["emb_out.b"][rows], old.model.params["emb_out.b"])
    for name, array in values(old.model).items():
        if not is_embedding(name) and name != "emb_out.b":
            np.testing.assert_array_equal(start.params[name], array, name)

    trained, untrained = again(epochs=4).fit(SECOND, init_from=path, grow=True), again()
    untrained.trained = start
    moved = trained.model.vectors("out")
    assert all((moved[word] != start.vectors("out")[word]).any() for word in ADDED)
    assert trained.perplexity(SECOND) < 0.7 * untrained.perplexity(SECOND)


def test_new_words_may_have_more_syllables_and_new_ones(tmp_path):
    settings = SMALL | dict(subwords="syllables", subword_dim=4, reuse="all")
    subwords = {"ab": "ab", "abcd": "ab cd", "cdab": "cd ab", "cdabcd": "cd ab cd"}
    (tmp_path / "syllables").write_text("".join(f"{word} {split}\n" for word, split in subwords.items()))
    first, second = ([RNG.choice([*subwords][:n], 5).tolist() for _ in range(40)] for n in (3, 4))
    estimator = tt.LanguageModel("lm", **settings, segmentation=str(tmp_path / "syllables"))
    old = estimator.fit(first, save_model=tmp_path / "first.npz").model
    (tmp_path / "syllables").unlink()
    new = again().trainer([*second, ["abx"]], init_from=str(tmp_path / "first.npz"), grow=True)
    start = new.make(new.read()[0])
    assert start.params["emb_in.proj.W"].shape[0] > old.params["emb_in.proj.W"].shape[0]
    assert len(start.vocab.subwords.units) > len(old.vocab.subwords.units)
    known, grown = old.vectors("in"), start.vectors("in")
    np.testing.assert_array_equal([grown[word] for word in known.words], known.matrix)
    for tying in "untied", "tied", "linear":
        (model := again()).settings["tying"] = tying  # as from the command line
        refused(lambda: model.trainer(second, init_from=tmp_path / "first.npz"), f"`tying={tying}` does not", "omit it")


def test_a_continued_run_predicts_better_and_resumes(saved, tmp_path):
    old, path = saved(epochs=6)
    inside = [[word for word in line if word not in ADDED] for line in SECOND]
    new = again(epochs=6).fit(inside, init_from=path)
    assert set(new.model.vocab.words) == set(old.model.vocab.words)
    assert new.perplexity(inside) < 0.9 * old.perplexity(inside)
    with pytest.raises(tt.TiedtoolsError, match="add new words: `grow`$"):
        again().fit([["other", "words"]] * 20, init_from=path)
    refused(lambda: tt.LanguageModel("rnnlm", hidden=5).fit(SECOND, init_from=path))
    options = dict(init_from=saved("untied")[1], freeze="embeddings")
    again(epochs=3).fit(SECOND, save_model=tmp_path / "whole.npz", no_manifest=True, **options)
    files = dict(checkpoint=tmp_path / "c", save_model=tmp_path / "part.npz", no_manifest=True)
    again(epochs=3).fit(SECOND, on_epoch=lambda figures: False, **files, **options)
    again(epochs=3).fit(SECOND, resume=True, **files, **options)
    assert (tmp_path / "part.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    refused(lambda: again(epochs=3).fit(SECOND, resume=True, **files, init_from=options["init_from"]))


@pytest.mark.parametrize("command", ["lm", "lstm"])
def test_the_command_takes_the_settings_of_the_model(saved, tmp_path, run, command):
    regex_or_skip()
    saved("tied", optimizer="adam", lr=0.02, dropout_kind="gal", drop_word=0.2, tokenize="lower")
    (text := tmp_path / "text").write_text("".join(" ".join(line) + "\n" for line in SECOND))
    args = [command, text, "--init-from", tmp_path / "first.npz", "--threads", 1, "--output", tmp_path / "v"]
    saving = "--save-model", tmp_path / "second.npz"
    assert run(*args, "--grow", "--drop-state", 0.1, "--epochs", 1, *saving).exit_code == 0
    model = tt.load(tmp_path / "second.npz")
    config = model.model.config
    assert (config.size, config.tying, config.optimizer, config.batch) == (8, "tied", "adam", 4)
    assert (config.drop_word, config.drop_state, model.settings["lr"]) == (0.2, 0.1, 0.02)
    assert ADDED < set(model.model.vocab.words) and model.settings["tokenize"] == "lower"
    wrong = {"--size 9": "; use --size 8", "--layer-widths 8": "--layer-widths 8 does not apply"}
    for option, message in (wrong | {"--transform-bias 1": "omit it"} if command == "lm" else wrong).items():
        run.fails(2, message, *args, *option.split())


@pytest.mark.parametrize("settings, options", [
    (dict(size=9, hidden=9), {}), (dict(cell="gru"), {}), (dict(layers=2), {}), (dict(tying="untied"), {}),
    (dict(subwords="chars"), {}), (dict(subwords="morphs", segmentation="file"), {}),
    ({}, dict(freeze="embeddings", grow=True)), ({}, dict(freeze="in")), ({}, dict(init_from=None, grow=True)),
    ({}, dict(init_from="none.npz")), ({}, dict(init_from="checkpoint")), ({}, dict(init_from="w2v.npz")),
    ({}, dict(init_from="vectors")), ({}, dict(read_vocab="vocabulary")),
], ids=str)  # fmt: skip
def test_what_cannot_be_continued_is_refused(saved, tmp_path, settings, options):
    saved()
    files = dict(checkpoint=tmp_path / "checkpoint", save_vocab=tmp_path / "vocabulary", output=tmp_path / "vectors")
    if options.get("init_from") or "read_vocab" in options:
        tt.LanguageModel("lm", **SMALL).fit(FIRST, **files)
        tt.Word2Vec(size=8, min_count=1, epochs=1, threads=1).fit(FIRST, save_model=tmp_path / "w2v.npz")
    options = {"init_from": "first.npz", **options}
    options |= {name: str(tmp_path / options[name]) for name in ("init_from", "read_vocab") if options.get(name)}
    refused(lambda: again(**settings).fit(SECOND, **options))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.mark.parametrize("name, dtype", [
    ("untied", "float32"), ("tied", "float64"), ("linear with bias", "float32"), ("tied, projection", "float64"),
    ("gal", "float32"), ("sampled, tied", "float32"),
])  # fmt: skip
def test_loading_restores_the_saved_model(name, dtype, path):
    m = model(dtype=dtype, **CONFIGS[name])
    train(m)
    save(m, path)
    assert type(load_language_model(path)) is LstmLM
    loaded = LstmLM.load(path, m.config.threads)
    assert loaded.config == m.config and loaded.vocab.words == VOCAB.words
    assert loaded.vocab.counts.tolist() == VOCAB.counts.tolist()
    assert loaded.params.values.tobytes() == m.params.values.tobytes()
    ids, targets, state = window(m)
    np.testing.assert_array_equal(loaded.score(ids, targets, state)[0], m.score(ids, targets, state)[0])
    m.train_step(ids, targets, state, 7), loaded.train_step(ids, targets, state, 7)
    np.testing.assert_array_equal(loaded.params.grads, m.params.grads)


def test_loading_uses_the_thread_count_of_this_machine(path):
    """Many more threads than cores would spend most of the time waiting for each other."""
    m = model(threads=available_cores() + 1)
    save(m, path)
    for loaded in LstmLM.load(path), load_language_model(path):
        assert loaded.config.threads == loaded.params.team.threads == available_cores()
    loaded = LstmLM.load(path, threads=2)
    assert loaded.config.threads == loaded.params.team.threads == 2
    np.testing.assert_allclose(loaded.score(*window(m))[0], m.score(*window(m))[0], rtol=1e-12)


DAMAGES = {
    **MODEL_DAMAGES,
    "array missing": lambda header, words, arrays: arrays.pop("lstm1.W_h"),
    "different dimension": lambda header, words, arrays: header["config"].update(size=12),
    "option of the wrong type": lambda header, words, arrays: header["config"].update(layers="two"),
    "boolean for a number": lambda header, words, arrays: header["config"].update(layers=True),
    "option that is nan": lambda header, words, arrays: header["config"].update(tau=float("nan")),
    "duplicate word": lambda header, words, arrays: words.__setitem__(3, words[4]),
    "no </s>": lambda header, words, arrays: words.__setitem__(0, "x"),
    "negative count": lambda header, words, arrays: arrays["counts"].__setitem__(3, -1),
    "fractional counts": lambda header, words, arrays: arrays.update(counts=arrays["counts"] / 2),
    "not finite": lambda header, words, arrays: arrays["emb_in"].__setitem__((3, 1), np.nan),
    "integer weights": lambda header, words, arrays: arrays.update({"emb_in": arrays["emb_in"].astype(int)}),
    "options not a mapping": lambda header, words, arrays: header.update(config=[]),
    "different kind": lambda header, words, arrays: header.update(kind="word2vec"),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_errors_name_the_corrupt_file(change, path):
    save(model(), path)
    rewrite(path, change)
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*(corrupt|of kind)"):
        LstmLM.load(path)
