"""Test deterministic, shared-negative, and exact word2vec training with all kinds of options and texts."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from w2vcase import TYINGS, encoded, topic_text

from tiedtools.models.word2vec import workspaces
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

RNG = np.random.default_rng(0)
WORDS = [f"w{k}" for k in range(1000)]
TEXT = "".join(" ".join(RNG.choice(WORDS, RNG.integers(1, 30))) + "\n" for _ in range(3000))  # several pieces
TIES = {"untied": [], "tied": ["--tie"], "signs": ["--tie-signs"], "linear": ["--tie-linear"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text(TEXT)
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


@pytest.mark.parametrize(
    "tying, size",
    [("untied", 1), ("untied", 17), ("tied", 15), ("signs", 16), ("signs", 100), ("linear", 1), ("linear", 17)],
)
@pytest.mark.parametrize("exact", [False, True])
def test_row_padding_stays_zero(size, tying, exact):
    model = trained([[1, 2, 3, 4], [5, 6, 7, 8]] * 3000, size=size, **TYINGS[tying], exact=exact, lr=0.01)
    assert model.emb_in.shape[1] == size and np.isfinite(model.emb_in).all()
    for padded, used in zip(model.padded, (model.emb_in, model.emb_out, model.proj)):
        assert np.count_nonzero(padded) == np.count_nonzero(used) > 0 or not used.size


@pytest.mark.parametrize("how", [[], ["--exact"], ["--deterministic"], ["-hs", 1]], ids=str)
@pytest.mark.parametrize("text", ["a b\n", "a b", "a b a b c\nd\n"])
def test_more_threads_than_text(run, tmp_path, text, how):
    path = tmp_path / "text"
    path.write_text(text)
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
    text = tmp_path / "text"
    text.write_text("to be or not to be\n" * 20)
    given = ["-size", 4, "-iter", 1, "-threads", 2, *TIES["linear"], "--precision", "bfloat16", *options, text]
    told = run("w2v", *given).stderr
    assert "as with --exact" in told and "model: CBOW, tied+L, " in told
    deterministic = run("w2v", "--deterministic", *given).stderr
    assert "as with --exact" not in deterministic and "model: CBOW, tied+L in bfloat16, " in deterministic
    assert "as with --exact" not in run("w2v", "--exact", *given).stderr
