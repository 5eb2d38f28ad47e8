"""Test the translation model: against NumPy and finite differences, saved, and loaded; and its training."""

import dataclasses
import io
import json
import pickle
import signal
from pathlib import Path

import nmtreference
import numpy as np
import pytest
from common import refused
from nmtcase import LENGTHS, V_SOURCE, V, batch, every_size, every_tying, gradient, model, pairs, values
from slopes import slope

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import Files
from tiedtools.files import modelfile
from tiedtools.files.modelfile import load_model
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.translation import trainer
from tiedtools.models.translation.config import PRESETS, TranslationConfig, configure
from tiedtools.models.translation.model import Translator
from tiedtools.models.translation.trainer import TranslationTrainer, evaluate
from tiedtools.network.threads import idle
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab


def reference(m, lengths=LENGTHS):
    """Return the log probabilities [T, B] of a batch, 0 in the padding, and the weights of attention by sentence."""
    p, found = values(m), np.zeros(batch(m, lengths).targets.shape)
    attended = []
    for column, source, target in zip(found.T, *pairs(m, lengths)):
        column[: len(target)], weights = nmtreference.sentence(p, source, target)
        attended.append(weights)
    return found, attended


@pytest.mark.parametrize("threads, dtype, limit", [(1, "float64", 1e-12), (3, "float64", 1e-12), (2, "float32", 2e-5)])
@every_size
@every_tying
def test_scores(tie, sizes, threads, dtype, limit):
    m = model(tie, threads=threads, dtype=dtype, **sizes)
    given = batch(m)
    expected, _ = reference(m)
    np.testing.assert_allclose(m.score(given.ids, given.targets), expected, rtol=limit, atol=limit)
    nats, n, _ = m.train_step(given.ids, given.targets, (), 0)
    assert nats == pytest.approx(-expected.sum(), rel=limit) and n == sum(target for _, target in LENGTHS)


@every_tying
def test_predictions(tie):
    """Step by step, with rows of the memory in another order and repeated, as a beam has them."""
    m = model(tie, threads=2)
    given, (expected, attended) = batch(m), reference(m)
    rows = np.array([4, 0, 0, 3, 1, 2, 4])
    memory = m.encode(given.ids)
    assert memory.select(rows).C is memory.C
    memory = memory.select(rows[::-1]).select(np.arange(len(rows))[::-1])
    state, previous = m.start(memory), np.full(len(rows), -1, np.int32)
    for t, words in enumerate(given.targets[:, rows]):
        found, ids, state_after, weights = m.best(previous, state, memory, len(m.vocab.words))
        logp = np.take_along_axis(found, np.argsort(ids, 1), 1)
        np.testing.assert_allclose(np.exp(logp).sum(1), 1, rtol=1e-12)
        given_next, state, _ = m.score_next(words, previous, state, memory)
        assert (state[0] == state_after[0]).all()
        picked = np.where(words >= 0, logp[np.arange(len(rows)), words], 0)
        np.testing.assert_allclose(given_next, picked, atol=1e-12)
        for k, (row, word) in enumerate(zip(rows, words)):
            if word >= 0:
                assert logp[k, word] == pytest.approx(expected[t, row], rel=1e-12)
                words_of_source = LENGTHS[row][0]
                np.testing.assert_allclose(weights[k, :words_of_source], attended[row][t], rtol=1e-11)
                assert not weights[k, words_of_source:].any()
        previous = np.maximum(words, 0)


@pytest.mark.parametrize("rates", [{}, dict(drop_emb=0.2, drop_annotation=0.4, drop_out=0.3)], ids=["", "dropout"])
@pytest.mark.parametrize("threads", [1, 3])
@every_size
@every_tying
def test_gradients(tie, sizes, threads, rates):
    """Along random directions in each parameter; the objective is the mean over sentences."""
    m = model(tie, threads=threads, **sizes, **rates)
    grads, _ = gradient(m)
    rng, given = np.random.default_rng(7), batch(m)

    def objective():
        m.params.changed()
        if rates:  # with the masks of `gradient`
            return m.train_step(given.ids, given.targets, (), 7)[0] / len(LENGTHS)
        return -m.score(given.ids, given.targets).sum() / len(LENGTHS)

    assert grads.keys() == dict(m.params.owners()).keys()
    for name, array in m.params.owners():
        for _ in range(2):
            direction, numeric = slope(array, rng, objective)
            scale = np.linalg.norm(grads[name])
            assert scale > 1e-4, name
            assert (grads[name] * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-8 + 1e-7 * scale), name


def close(ours, theirs, limit):
    for name, expected in theirs.items():
        assert np.linalg.norm(ours[name] - expected) <= limit * np.linalg.norm(expected), name


@pytest.mark.parametrize("threads", [1, 2])
@every_size
def test_gradients_in_less_precision(sizes, threads):
    wide = model("decoder", **sizes)
    expected, nats = gradient(wide)
    for precision, limit in ("float32", 1e-5), ("bfloat16", 2**-5):
        narrow = model("decoder", values(wide), dtype="float32", precision=precision, threads=threads, **sizes)
        found, loss = gradient(narrow)
        assert loss == pytest.approx(nats, rel=limit)
        close(found, expected, limit)
    assert any((found[name] != expected[name].astype(np.float32)).any() for name in found)


def test_padding_does_not_matter():
    """More padding changes the order of sums, and no score; what was in the arrays before changes no bit."""
    m = model(threads=2, hidden=17)
    expected, nats = gradient(m)
    other = gradient(m, lengths=((9, 8),) * 4, seed=9)[0]
    assert any((other[name] != expected[name]).any() for name in other)
    found, loss = gradient(m, more=3)
    assert loss == pytest.approx(nats, rel=1e-14)
    close(found, expected, 1e-14)
    given, more = batch(m), batch(m, more=2)
    np.testing.assert_array_equal(m.score(given.ids, given.targets), m.score(more.ids, more.targets)[:-2])
    again, loss = gradient(m)
    assert loss == nats
    for name, array in again.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


Counted = idle(Translator)


@pytest.mark.parametrize("tie, millions", [("none", 167.9), ("decoder", 121.9), ("all", 79.4)])
def test_parameters_of_press_and_wolf(tie, millions):
    """Their English-French models: 168M, 122M, and 80M in table 8."""
    source, target = (Vocab.made_up(V) for V in (87_000, 92_000))
    if tie == "all":
        source = target = Vocab.made_up(94_000)
    with imagining():
        m = Counted(source, target, TranslationConfig(size=500, hidden=1000, tie=tie))
    assert m.n_params == pytest.approx(millions * 1e6, abs=0.05e6)


@every_tying
def test_numbers_of_parameters_and_threads(tie):
    m, n = 5, 3
    words = {"none": V_SOURCE + 2 * V, "decoder": V_SOURCE + V, "all": V}[tie] * m + V
    gru = lambda inputs: 3 * n * (inputs + n + 1)
    encoder, decoder = 2 * gru(m), gru(m) + gru(2 * n) + (2 * n + 1) * n
    attention = (2 * n) ** 2 + 2 * n + n * 2 * n + 2 * n
    readout = m * (n + m + 2 * n + 1)
    assert model(tie).n_params == words + encoder + decoder + attention + readout
    expected, nats = gradient(model(tie, threads=1))
    for threads in 2, 3, 7:
        found, loss = gradient(model(tie, threads=threads))
        assert loss == pytest.approx(nats, rel=1e-13)
        close(found, expected, 1e-13)


def test_vectors_by_tying():
    start = model(size=16, init=None).params
    assert [np.std(start[name]) for name in ("emb_source", "emb_in", "emb_out")] == pytest.approx([0.25] * 3, rel=0.1)
    m = model("all")
    m.params["emb_source"][7, 2] = 5
    assert m.params["emb_in"][7, 2] == m.params["emb_out"][7, 2] == 5
    m = model("decoder")
    m.params["emb_in"][7, 2] = 5
    assert m.params["emb_out"][7, 2] == 5 != m.params["emb_source"][7, 2]
    m = model()
    assert m.vectors("source").words == m.source_vocab.words and m.vectors("in").words == m.target_vocab.words
    np.testing.assert_array_equal(m.vectors("source").matrix, m.params["emb_source"].astype(np.float32))
    both = m.params["emb_in"].astype(np.float32), m.params["emb_out"].astype(np.float32)
    np.testing.assert_allclose(m.vectors("sum").matrix, both[0] + both[1], atol=1e-6)
    with pytest.raises(Contradiction, match="one vocabulary"):
        Translator(Vocab.made_up(9), Vocab.made_up(9), TranslationConfig(tie="all"))


def same(m, other):
    assert other.codes == m.codes and other.source_vocab.words == m.source_vocab.words
    assert (other.source_vocab is other.target_vocab) == (m.source_vocab is m.target_vocab)
    given, theirs = values(m), values(other)
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, given[name])
    for which in "source", "in", "out", "sum", "concat":
        np.testing.assert_array_equal(other.vectors(which).matrix, m.vectors(which).matrix)
    ids, targets, _ = batch(m)
    np.testing.assert_allclose(other.score(ids, targets), m.score(ids, targets), rtol=1e-12)


@every_tying
def test_saved_and_pickled(tie, tmp_path):
    m = model(tie)
    m.codes = "#version: 0.2\nt h\nth e</w>\n"
    file = io.BytesIO()
    m.save(file)
    (path := tmp_path / "model.npz").write_bytes(file.getvalue())
    same(m, load_model(str(path), 2))
    same(m, pickle.loads(pickle.dumps(m)))


def test_damaged_files(tmp_path):
    m, path, file = model(), tmp_path / "model.npz", io.BytesIO()
    m.save(file)
    path.write_bytes(file.getvalue()[:-400])
    refused(lambda: load_model(str(path)), "corrupt")
    m.source_vocab.words[3], file = "w4", io.BytesIO()
    m.save(file)
    path.write_bytes(file.getvalue())
    refused(lambda: load_model(str(path)), "comes twice")


def test_memory_grows_with_what_is_trained():
    vocabs = Vocab.made_up(2000), Vocab.made_up(3000)
    need = lambda **settings: Translator.memory(vocabs, TranslationConfig(**settings))
    embeddings = 4 * 128 * (2000 + 2 * 3000)
    base = need(optimizer="sgd")
    assert base > 3 * embeddings and need(optimizer="adam") > base + 2 * embeddings
    assert need(batch=64, optimizer="sgd") > base + 10**6 and need(max_length=200, optimizer="sgd") > base + 10**6
    assert need(tie="decoder", optimizer="sgd") < base - 3 * 4 * 128 * 3000 * 0.9


pytestmark = pytest.mark.usefixtures("no_signals")
SMALL = dict(size=12, hidden=14, batch=5, threads=1, epochs=3, dropout=0.1, lr=0.01)


@pytest.fixture
def texts(tmp_path):
    """Write a bitext whose target is the source in reverse order with other words; returns paths as strings."""
    rng, paths = np.random.default_rng(1), {}
    for name, lines in ("train", 60), ("valid", 20):
        sources = [rng.integers(0, 7, rng.integers(1, 6)) for _ in range(lines)]
        for side, shown in ("source", lambda ids: ids), ("target", lambda ids: ids[::-1]):
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(" ".join(f"{side[0]}{k}" for k in shown(ids)) + "\n" for ids in sources))
            paths[f"{name}_{side}"] = [str(path)]
    return paths


def made(texts, files=(), valid=True, **settings):
    config, schedule, reading = configure(**{**SMALL, **settings})
    if valid:
        reading |= {f"valid_{side}": texts[f"valid_{side}"] for side in ("source", "target")}
    sides = [texts["train_source"], texts["train_target"]]
    return TranslationTrainer(config, schedule, sides, Files(no_manifest=True, **dict(files)), **reading)


def bleus(monkeypatch, *values, during=lambda poll: None):
    """Replace BLEU by these values, one for each epoch; `during` is called while it is computed."""
    given = iter(values)
    monkeypatch.setattr(trainer, "text_bleu", lambda *args: (during(args[-1]), next(given))[1])
    monkeypatch.setattr(trainer.bleu, "bleu", lambda *args: None)


def history(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("tie", ["none", "all"])
def test_learns(texts, tmp_path, tie, monkeypatch):
    log, saved = tmp_path / "log", tmp_path / "model.npz"
    bleus(monkeypatch, *range(25))
    made(texts, dict(log_json=str(log), save_model=str(saved)), tie=tie, epochs=25, max_length=10**5).train()
    *epochs, end = history(log)
    assert [epoch["valid_bleu"] for epoch in epochs] == [*range(25)] and end["best_epoch"] == 25
    assert epochs[0]["valid_ppl"] > 6 and epochs[-1]["valid_ppl"] < 0.6 * epochs[0]["valid_ppl"]
    model = load_model(str(saved), 1)
    assert (model.source_vocab is model.target_vocab) == (tie == "all")
    assert len(model.target_vocab) == (16 if tie == "all" else 9)


def test_best_epoch_has_the_highest_bleu(texts, tmp_path, monkeypatch):
    log, saved = tmp_path / "log", tmp_path / "model.npz"
    bleus(monkeypatch, 10.0, 30.0, 20.0)
    trained = made(texts, dict(log_json=str(log), save_model=str(saved)))
    trained.train()
    assert history(log)[-1]["best_epoch"] == 2 and trained.record.figures["valid_bleu"] == 30.0
    rates = [epoch["lr"] for epoch in history(log)[:-1]]
    assert rates == [0.01] * 3, "the loss fell, so that the schedule kept the rate"
    bleus(monkeypatch, 0.0, 0.0, 0.0)
    made(texts, dict(log_json=str(tmp_path / "equal"))).train()
    assert history(tmp_path / "equal")[-1]["best_epoch"] == 3
    bleus(monkeypatch)
    made(texts, dict(log_json=str(tmp_path / "plain")), bleu=False).train()
    *epochs, end = history(tmp_path / "plain")
    losses = [epoch["valid_ppl"] for epoch in epochs]
    assert "valid_bleu" not in epochs[0] and end["best_epoch"] == 1 + int(np.argmin(losses))


def test_validation_covers_each_word_once(texts):
    made_up = made(texts)
    text, _ = made_up.read()
    model, pair = made_up.make(text), text.valid
    for size in 1, 3, 50:
        logs = evaluate(model, pair, size)
        assert len(logs) == len(pair.target)
        assert logs.sum() == pytest.approx(evaluate(model, pair, 7).sum(), rel=1e-4)


class Stop(Progress):
    """A listener that receives SIGTERM after some updates."""

    def __init__(self, after):
        self.left = after

    def update(self, *figures):
        self.left -= 1
        if not self.left:
            interrupts.handle(signal.SIGTERM, None)


@pytest.mark.parametrize("optimizer", ["adam", "adadelta"])
def test_resumed_run_is_identical(texts, tmp_path, monkeypatch, optimizer):
    whole, parts, checkpoint = tmp_path / "whole.npz", tmp_path / "parts.npz", str(tmp_path / "checkpoint")
    bleus(monkeypatch, 3, 1, 2)
    made(texts, dict(save_model=str(whole)), optimizer=optimizer, keep="last").train()
    files = dict(save_model=str(parts), checkpoint=checkpoint, resume=True)
    bleus(monkeypatch, 3, 1, 2)
    with pytest.raises(KeyboardInterrupt):
        made(texts, files, optimizer=optimizer, keep="last").train(Stop(17))
    interrupts.received.clear()

    def stop(poll):  # while BLEU of the first epoch is computed
        interrupts.handle(signal.SIGTERM, None)
        poll()

    bleus(monkeypatch, during=stop)
    with pytest.raises(KeyboardInterrupt):
        made(texts, files, optimizer=optimizer, keep="last").train()
    progress = modelfile.load(checkpoint)[0]["config"]["progress"]
    assert (progress["epoch"], progress["steps"]) == (1, 12)
    interrupts.received.clear()
    bleus(monkeypatch, 1, 2)
    resumed = made(texts, files, optimizer=optimizer, keep="last")
    resumed.train()
    assert whole.read_bytes() == parts.read_bytes()
    same = lambda **settings: made(texts, files, optimizer=optimizer, keep="last", **settings).train()
    refused(lambda: same(hidden=15), "was created with `hidden=14`")
    refused(lambda: same(bleu=False), "was created with `bleu=True`")
    for name in "train_source", "valid_source":
        source = Path(texts[name][0])
        source.write_text(source.read_text().replace("s3", "t3"))  # the same IDs
    refused(lambda: same(), "different source vocabulary")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_listed_with_all_settings(name):
    values = PRESETS[name][1]
    assert configure(preset=name) == configure(**values) and configure(preset=name)[0].batch == values["batch"]


def test_settings_and_bad_input(texts, tmp_path):
    rate = lambda **settings: configure(**settings)[1].lr
    assert rate() == 0.001 and rate(optimizer="adadelta") == rate(optimizer="sgd") == 1.0
    assert rate(preset="press-wolf-nmt", optimizer="adam") == 0.001 and rate(preset="press-wolf-nmt", lr=0.5) == 0.5
    assert configure()[1].schedule == "plateau" and configure(optimizer="nt-asgd")[1].schedule == "constant"
    assert configure()[0].drop_out == 0.3 and configure(preset="press-wolf-nmt")[0].drop_out == 0
    config, _, reading = configure(dropout=0.3, drop_out=0.2, bpe=100, preset="multi30k")
    assert (config.drop_emb, config.drop_annotation, config.drop_out, reading) == (0.3, 0.3, 0.2, {"bpe": 100})
    with pytest.raises(Contradiction, match="requires `dtype='float32'`"):
        dataclasses.replace(config, precision="bfloat16", dtype="float64")
    refused(lambda: configure(tie="some"), "tie", kind=Contradiction)
    with pytest.raises(Contradiction, match="both `valid_source` and `valid_target`"):
        TranslationTrainer(*configure(**SMALL)[:2], [["a"], ["b"]], Files(), valid_source=["a"])
    with pytest.raises(Contradiction, match="each vector twice"):
        made(texts, dict(output=str(tmp_path / "out"), write="concat"), tie="decoder")
    texts["train_target"] = texts["valid_target"]
    refused(lambda: made(texts, bleu=False).train(), "20 lines, but ", " has 60")
