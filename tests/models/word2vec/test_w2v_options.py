"""Test options of word2vec, and its threads."""

import itertools
import math
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
from common import refused
from w2vcase import TYINGS, encoded, topic_text

from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import Files
from tiedtools.kernels.base import tiles
from tiedtools.models.word2vec import config, workspaces
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.ranksrun import lr_factor
from tiedtools.models.word2vec.run import Run
from tiedtools.models.word2vec.tables import noise_table
from tiedtools.models.word2vec.trainer import Word2VecTrainer
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

VOCAB, TEXT = topic_text(100)
COUNTS = np.array([400, 900, 500, 300, 200, 100, 50, 20, 5, 5, 1], np.int64)

# Defaults


@pytest.mark.parametrize("tying", TYINGS)
def test_defaults_with_and_without_fit_pmi(tying):
    choices = ("cbow", "skipgram"), (None, False, True), (False, True), (1, 5, 8)
    for architecture, fit_pmi, cbow_sum, negative in itertools.product(*choices):
        pmi = {None: tying == "signs"}.get(fit_pmi, fit_pmi)
        rates = {"cbow": {False: 0.05, True: 0.05 if cbow_sum else 0.2}, "skipgram": {False: 0.025, True: 0.035}}
        c = Config(tying=tying, architecture=architecture, fit_pmi=fit_pmi, cbow_sum=cbow_sum, negative=negative)
        assert c.fit_pmi is pmi and c.lr == rates[architecture][pmi]
        assert c.shift == pytest.approx(-math.log(negative) if pmi else 0)
        assert c.cbow_grad == ("exact" if pmi else "ctool") and c.skip_input == (tying != "untied")


@pytest.mark.parametrize("given", [dict(shift=0.0), dict(shift=-1.5), dict(cbow_grad="ctool"), dict(lr=0.01)], ids=str)
def test_explicit_settings_override_parts_of_fit_pmi(given):
    for model in dict(tying="signs"), dict(fit_pmi=True), dict(tying="tied", fit_pmi=True):
        found = Config(**model, **given)
        expected = dict(shift=-math.log(5), cbow_grad="exact", lr=0.2) | given
        assert {name: getattr(found, name) for name in expected} == expected and found.fit_pmi


def test_rules_and_batches_of_the_kernels():
    assert Config(hs=True, negative=0, fit_pmi=True).shift == 0 and config.ROWS == tiles.ROWS
    for options, expected in (
        ({}, (3, 3, True, False)), (dict(cbow_grad="exact"), (3, 3, True, True)),
        (dict(cbow_sum=True), (3, 3, False, False)), (dict(cbow_sum=True, cbow_grad="exact"), (3, 3, False, False)),
        (dict(fixed_window=True), (3, 1, True, False)),
    ):  # fmt: skip
        rules = workspaces.rules(Config(window=3, **options))
        assert (rules.window, rules.radii, rules.mean, rules.divide) == expected
    shapes = {name: workspaces.layout(Config(**options)) for name, options in TYINGS.items()}
    assert shapes["tied"] == (1, 8, 64) and shapes["signs"] == (1, 32, 32)
    for options, name in (
        (dict(fit_pmi=True), "signs"), (dict(shift=-1.0), "signs"), (dict(shift=1.0), "tied"),
        (dict(fit_pmi=True, shift=0.0), "tied"),
    ):  # fmt: skip
        assert workspaces.layout(Config(tying="tied", **options)) == shapes[name]
    for lr, each in (0.05, 16), (0.1, 32):
        assert workspaces.layout(Config(architecture="skipgram", lr=lr)) == (1, 32, each)
    for name in "untied", "linear":
        assert workspaces.layout(Config(tying=name, fit_pmi=True)) == shapes[name]


@pytest.mark.parametrize(
    "lr, options", [(0.1, dict(lr=0.1)), (0.05, {}), (0.025, dict(architecture="skipgram")), (0.2, dict(tying="signs"))]
)
def test_min_alpha_is_at_most_the_learning_rate(lr, options):
    assert Config(min_alpha=lr, **options).min_alpha == lr
    refused(lambda: Config(min_alpha=lr + 0.001, **options), f"`min_alpha={lr + 0.001}` is above", kind=Contradiction)


@pytest.mark.parametrize("architecture, targets", [("cbow", (1, 1)), ("skipgram", (6, 10))])
def test_batches_depend_on_the_targets_of_a_window(architecture, targets):
    """A random window has 2 (1 + ... + 5) / 5 words on average."""
    push = [
        workspaces.push(Config(lr=0.1, architecture=architecture, fixed_window=fixed), 0.01, 8)
        for fixed in (False, True)
    ]
    assert push == pytest.approx([8 * 0.01 * 5 * n * 0.1 for n in targets])


# The noise distribution


@pytest.mark.parametrize("exponent", [0.25, 1.0])
def test_runs_draw_from_the_noise_distribution(exponent):
    run = Run(Word2Vec(VOCAB, Config(size=5, ns_exponent=exponent)), TEXT)
    np.testing.assert_array_equal(run.noise, noise_table(VOCAB.counts, exponent))
    assert (run.noise != noise_table(VOCAB.counts, 0.75)).any()


def test_a_frequent_negative_is_not_shared():
    """With a high exponent, one word is nearly every negative."""
    counts = np.concatenate([[0, 1000], np.full(1000, 10)])
    for n in (0.5, 5.0):
        config = Config(architecture="skipgram", ns_exponent=n)
        assert workspaces.own_negatives(types.SimpleNamespace(occurrences=counts, config=config)) == (n > 1)


def test_learning_rates():
    total = 2 * TEXT.size
    rates = lambda **options: [
        Run(Word2Vec(VOCAB, Config(size=5, lr=0.1, epochs=2, **options)), TEXT).lr(done)
        for done in (0, (total + 1) / 4, (total + 1) / 2, total + 1)
    ]
    assert rates(min_alpha=0.02) == pytest.approx([0.1, 0.08, 0.06, 0.02], rel=1e-12)
    assert rates(min_alpha=0.0) == pytest.approx([0.1, 0.075, 0.05, 0], rel=1e-12)
    assert rates() == pytest.approx([0.1, 0.075, 0.05, 1e-5], rel=1e-12)
    square_root = (
        {}, dict(tying="tied"), dict(tying="signs", fit_pmi=False), dict(fit_pmi=True, architecture="skipgram"),
    )  # fmt: skip
    sixth_root = dict(tying="signs"), dict(tying="linear"), dict(fit_pmi=True)
    for power, settings in (1 / 2, square_root), (1 / 6, sixth_root):  # of several ranks
        assert [lr_factor(4, Config(**options)) for options in settings] == [pytest.approx(4**power)] * len(settings)


# Vectors and names


NAMES = [
    (dict(precision="float32"), "CBOW, untied"),
    (dict(precision="float32", fit_pmi=True), "CBOW, untied, fit to PMI"),
    (dict(tying="tied", architecture="skipgram", precision="bfloat16"), "skip-gram, tied in bfloat16"),
    (dict(tying="tied", architecture="skipgram", precision="float32", fit_pmi=True), "skip-gram, tied, fit to PMI"),
    (dict(tying="signs", precision="float32"), "CBOW, tied, fixed signs, fit to PMI"),
    (dict(tying="signs", precision="float32", fit_pmi=False), "CBOW, tied, fixed signs"),
    (dict(tying="linear", precision="float32"), "CBOW, tied+L"),
    (dict(tying="linear", precision="bfloat16"), "CBOW, tied+L in bfloat16"),
    (dict(tying="linear", precision="bfloat16", fit_pmi=True, lr=0.01), "CBOW, tied+L in bfloat16, fit to PMI"),
]


def test_names_in_the_log():
    for options, expected in NAMES:
        config = Config(size=4, **options)
        assert Word2VecTrainer(config, ["none"], Files()).named(Word2Vec(VOCAB, config)) == expected


RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(1, 30, 3000)  # several pieces
LINES = "".join(" ".join(f"w{k}" for k in RNG.integers(1000, size=n)) + "\n" for n in LENGTHS)
TIES = {"untied": [], "tied": ["--tie"], "signs": ["--tie-signs"], "linear": ["--tie-linear"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text(LINES)
    return path


def vectors(run, *args):
    result = run("w2v", "-size", 6, "-iter", 1, "-debug", 0, *args)
    assert result.exit_code == 0 and b"nan" not in result.stdout_bytes, result.stderr
    return result.stdout_bytes


@pytest.mark.parametrize("tie, cbow, threads", [
    ([], 0, 1), ([], 1, 3), (["--tie"], 0, 2), (["--tie"], 1, 5),
    (["--tie-signs"], 0, 3), (["--tie-signs"], 1, 2), (["--tie-linear"], 0, 5), (["--tie-linear"], 1, 2),
])  # fmt: skip
def test_deterministic_is_bitwise_reproducible(run, corpus, tie, cbow, threads):
    args = *tie, "-cbow", cbow, "-threads", threads, corpus
    first = vectors(run, "--deterministic", *args)
    assert first == vectors(run, "--deterministic", *args) != vectors(run, "--deterministic", "--seed", 2, *args)


@pytest.mark.parametrize("batches", [3, 4])
def test_bfloat16_l_is_merged_over_all_threads_after_each_round(batches, monkeypatch):
    text, moved = topic_text(4000), {}
    options = dict(TYINGS["linear"], sample=0, lr=0.025, lr_linear=0.1, threads=4, deterministic=True, epochs=1)
    monkeypatch.setattr(workspaces, "ROUND", batches * 4 * 64)
    for precision in "float32", "bfloat16":
        model = Word2Vec(text[0], Config(size=16, precision=precision, **options))
        model.train(text[1], Progress())
        moved[precision] = model.proj - np.eye(16)
    wide, half = moved.values()
    assert 0 < np.linalg.norm(half - wide) < 2**-6 * np.linalg.norm(wide)


@pytest.mark.parametrize("tie", TIES.values(), ids=TIES)
def test_one_thread_is_always_deterministic(run, corpus, tie):
    args = *tie, "-threads", 1, corpus
    assert vectors(run, "--deterministic", *args) == vectors(run, *args) != vectors(run, "--exact", *args)


def test_one_thread_trains_wide_windows_exactly(run, corpus):
    args = "-window", 65, "-threads", 1, corpus
    assert vectors(run, "--deterministic", *args) == vectors(run, *args) == vectors(run, "--exact", *args)


@pytest.mark.parametrize("how", [["--exact"], ["-hs", 1]])
def test_deterministic_threads_require_shared_negatives(run, corpus, how):
    result = run("w2v", "--deterministic", *how, "-threads", 2, corpus)
    assert result.exit_code == 2 and result.stdout_bytes == b""
    assert result.stderr.count("\n") == 1 and "-threads 1" in result.stderr
    assert vectors(run, "--deterministic", *how, "-threads", 1, corpus)


@pytest.mark.parametrize("how", [[], ["--exact"], ["--deterministic"]], ids=str)
@pytest.mark.parametrize("k, options", [*enumerate("negative 1,negative 2,negative 20,window 1,window 40".split(","))])
def test_extreme_option_values(run, corpus, how, k, options):
    threads = 1 if how == ["--exact"] else 2
    for cbow in 0, 1:
        tie = [*TIES.values()][(k + cbow) % 4]
        vectors(run, *tie, *how, *f"-{options}".split(), "-cbow", cbow, "-threads", threads, corpus)


@pytest.mark.parametrize("tying, size", [
    ("untied", 1), ("untied", 17), ("tied", 15), ("signs", 16), ("signs", 100), ("linear", 1), ("linear", 17),
])  # fmt: skip
@pytest.mark.parametrize("exact", [False, True])
def test_row_padding_stays_zero(size, tying, exact):
    model = trained([[1, 2, 3, 4], [5, 6, 7, 8]] * 3000, size=size, **TYINGS[tying], exact=exact, lr=0.01)
    assert model.emb_in.shape[1] == size and np.isfinite(model.emb_in).all()
    for padded, used in zip(model.padded, (model.emb_in, model.emb_out, model.proj)):
        assert np.count_nonzero(padded) == np.count_nonzero(used) > 0 or not used.size


@pytest.mark.parametrize("how", [[], ["--exact"], ["--deterministic"], ["-hs", 1]], ids=str)
@pytest.mark.parametrize("text", ["a b\n", "a b", "a b a b c\nd\n"])
def test_more_threads_than_text(run, tmp_path, text, how):
    (path := tmp_path / "text").write_text(text)
    threads = 8 if how in ([], ["--deterministic"]) else 1
    out = vectors(run, *how, "-sample", 0, "-min-count", 1, "-threads", threads, path)
    assert out.split()[0] == b"%d" % (1 + len(set(text.split())))


def trained(sentences, **options):
    ids = np.concatenate([[*s, 0] for s in sentences]).astype(np.int32)
    counts = np.bincount(ids)
    vocab = Vocab([f"w{k}" for k in range(len(counts))], counts)
    model = Word2Vec(vocab, Config(**dict(size=50, epochs=1) | options))
    model.train(encoded(ids, vocab), Progress())
    return model


def filled(rng):
    """Return lines of which every other one repeats a single word."""
    return [np.full(50, 1) if k % 2 else rng.integers(2, 1000, 50) for k in range(4000)]


def table(rng):
    """Return lines in which every other word is the same, as in `| a | b | c |`."""
    return [np.where(np.arange(11) % 2, rng.integers(2, 1000, 11), 1) for _ in range(18_000)]


@pytest.mark.parametrize("lines, sample, threads", [(filled, 0, 1), (filled, 1e-3, 2), (table, 0, 2), (table, 1e-3, 1)])
@pytest.mark.parametrize("architecture", ["cbow", "skipgram"])
@pytest.mark.parametrize("tying", TYINGS)
def test_a_very_frequent_word_does_not_cause_divergence(tying, architecture, lines, sample, threads):
    model = trained(
        lines(np.random.default_rng(0)), **TYINGS[tying], architecture=architecture, sample=sample, threads=threads
    )
    assert np.abs(model.emb_in).max() < 20


def few(rng):
    """Return lines of fifty equally frequent words."""
    return rng.integers(1, 51, (4000, 10))


@pytest.mark.parametrize("lines", [table, few])
@pytest.mark.parametrize("architecture", ["cbow", "skipgram"])
@pytest.mark.parametrize("tying", TYINGS)
def test_many_deterministic_threads_do_not_diverge(tying, architecture, lines):
    options = dict(TYINGS[tying], architecture=architecture, sample=0, threads=5, deterministic=True, epochs=3)
    model = trained(lines(np.random.default_rng(0)), **options)
    assert 0.1 < np.abs(model.emb_in).max() < 10  # at most 0.05 initially


@pytest.mark.parametrize("tie", TIES.values(), ids=TIES)
def test_deterministic_threads_stop_on_interrupt(corpus, tmp_path, tie):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tiedtools", "w2v", "--deterministic", *tie, "-threads", "3", "-iter", "10000"]
    with subprocess.Popen([*command, "-output", out, corpus], stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("epoch 2"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT and "interrupted" in errors and "Traceback" not in errors
    assert np.isfinite(Vectors.read(str(out)).matrix).all()


@pytest.mark.parametrize("options", [[], ["-negative", 1, "-window", 65]], ids=["few words", "wide windows"])
def test_implicit_exact_training_is_reported(run, tmp_path, options):
    (text := tmp_path / "text").write_text("to be or not to be\n" * 20)
    given = ["-size", 4, "-iter", 1, "-threads", 2, *TIES["linear"], "--precision", "bfloat16", *options, text]
    told = run("w2v", *given).stderr
    assert "as with --exact" in told and "model: CBOW, tied+L, " in told
    deterministic = run("w2v", "--deterministic", *given).stderr
    assert "as with --exact" not in deterministic and "model: CBOW, tied+L in bfloat16, " in deterministic
    assert "as with --exact" not in run("w2v", "--exact", *given).stderr
