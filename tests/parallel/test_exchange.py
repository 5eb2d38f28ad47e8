"""Test exchanges between ranks, a run on threads as ranks, and the watcher."""

import itertools
import math
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from rankscase import ThreadRanks
from w2vcase import topic_text

from tiedtools.base import interrupts
from tiedtools.kernels.word2vec import exchange as kernels
from tiedtools.models.word2vec import exchange as exchanges
from tiedtools.models.word2vec import ranksrun
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.exchange import Exchange
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.ranksrun import Interval, RanksRun
from tiedtools.models.word2vec.tables import subsampling_thresholds
from tiedtools.text.vocab import Vocab

ROWS, WIDTH = 50, 16


def part(q, n):
    """Share of the sum of n changes that replaces them: (1 - q^n) / (n (1 - q)), and 1 in the limit of q = 1."""
    return sum(q**k for k in range(int(n))) / max(n, 1)


def test_combined_changes_agree_with_the_formula():
    base = np.random.default_rng(1).normal(size=(4, WIDTH)).astype(np.float32)
    matrix = base.copy()
    matrix[1, 3] += 2
    own, ranks = np.full((4, WIDTH), 9, np.float32), np.full(4, 9, np.float32)
    kernels.take_changes(own, ranks, matrix, base)
    np.testing.assert_array_equal(own, matrix - base)
    assert ranks.tolist() == [0, 1, 0, 0]
    rng = np.random.default_rng(0)
    matrix, base, own, total = (rng.normal(size=(ROWS, WIDTH)).astype(np.float32) for _ in range(4))
    ranks = rng.integers(0, 5, ROWS).astype(np.float32)
    occurrences = rng.exponential(1, ROWS)
    occurrences[:3] = 0, 1e-12, 1e9
    changes = np.array([part(np.exp(-c), n) for c, n in zip(occurrences, ranks)])[:, None] * total.astype(np.float64)
    changes[ranks == 0] = total[ranks == 0]  # zeros in a real sum
    wanted = base + changes, matrix + changes - own
    kernels.combine(matrix, base, own, total, ranks, occurrences)
    np.testing.assert_allclose(base, wanted[0], atol=1e-5)
    np.testing.assert_allclose(matrix, wanted[1], atol=1e-5)
    matrix, own = base + total / 3, total / 3  # the changes of this rank, and no others since
    kernels.take_changes(own, ranks, matrix, base)
    kernels.combine(matrix, base, own, total, ranks, occurrences)
    kernels.take_changes(own, ranks, matrix, base)
    assert not ranks.any()


def test_bfloat16_rounds_and_adds():
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=40).astype(np.float32) for _ in range(2))
    packed = [np.zeros(20, np.uint32) for _ in range(2)]
    sent = [a.copy(), b.copy()]
    for to, floats in zip(packed, sent):
        kernels.narrow(to, floats)
    np.testing.assert_allclose(sent[0], a, rtol=2**-8)
    kernels.add_narrow(*packed)
    total = np.zeros(40, np.float32)
    kernels.widen(total, packed[0])
    np.testing.assert_allclose(total, sent[0] + sent[1], rtol=2**-8, atol=1e-6)


def model(**options):
    counts = np.array([60, *np.linspace(50, 5, ROWS - 1).astype(int)])
    return Word2Vec(Vocab(["</s>", *map(str, range(ROWS - 1))], counts), Config(size=WIDTH, **options))


def exchanged(size, change, everything=True, half=False, stretch=1, **options):
    """Return the models of `size` ranks after change(rank, model) and an exchange, and their Exchanges."""
    models = [model(**options) for _ in range(size)]
    found = {}

    def work(ranks):
        mine = models[ranks.rank]
        exchange = Exchange(mine, subsampling_thresholds(mine.vocab.counts, 0), ranks, half=half)
        change(ranks.rank, mine)
        exchange.start(ranks.rank == 1, 1000, 0.25 * ranks.rank, stretch, everything)
        while exchange.busy:
            exchange.poll()
        found[ranks.rank] = exchange

    threads = [threading.Thread(target=work, args=[ranks]) for ranks in ThreadRanks.team(size)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return models, [found[rank] for rank in range(size)]


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("options", [
    {}, dict(hs=True), dict(tying="tied"), dict(tying="linear"), dict(hs=True, negative=0),
], ids=['untied', 'hs', 'tied', 'linear', 'hs-alone'])  # fmt: skip
def test_all_parameters_become_equal_and_one_ranks_change_is_kept(options, half, monkeypatch):
    monkeypatch.setattr(exchanges, "BLOCK", 16)
    start = model(**options).arrays

    def change(rank, mine):
        for array in mine.arrays.values():
            array[rank::5] += rank + 1

    models, found = exchanged(3, change, half=half, **options)
    for exchange in found:
        exchange.restore()
        assert exchange.flags == 1 and exchange.sent == found[0].sent
        np.testing.assert_array_equal(exchange.losses, [0, 0.25, 0.5])
    for name, was in start.items():
        for other in models[1:]:
            np.testing.assert_array_equal(models[0].arrays[name], other.arrays[name])
        for rank in range(3):
            np.testing.assert_allclose(models[0].arrays[name][rank::5], was[rank::5] + rank + 1, atol=0.02)
        np.testing.assert_array_equal(models[0].arrays[name][3::5], was[3::5])


def test_changes_of_rare_rows_are_added_and_those_of_frequent_ones_averaged(monkeypatch):
    monkeypatch.setattr(exchanges, "SATURATION", {(True, False): np.array([1e-9] * 20 + [1e9] * (ROWS - 20))})

    def change(rank, mine):
        mine.emb_in[:] += 1

    start = model().emb_in.copy()
    models, found = exchanged(2, change)
    found[0].restore()
    np.testing.assert_allclose(models[0].emb_in[:20], start[:20] + 1, atol=1e-5)
    np.testing.assert_allclose(models[0].emb_in[20:], start[20:] + 2, atol=1e-5)
    models, found = exchanged(2, change, stretch=1e20)
    found[0].restore()
    np.testing.assert_allclose(models[0].emb_in, start + 2, atol=1e-5)


def test_training_goes_on_during_an_exchange():
    """Changes made between start and end of an exchange are kept, and exchanged the next time."""
    ranks = ThreadRanks.team(1)[0]
    mine = model()
    start = mine.emb_in.copy()
    exchange = Exchange(mine, subsampling_thresholds(mine.vocab.counts, 0), ranks, delay=0.05)
    mine.emb_in[3] += 1
    exchange.start(False, 100)
    assert not exchange.poll() and exchange.busy  # the delay
    mine.emb_in[3] += 1
    while exchange.busy:
        exchange.poll()
    np.testing.assert_allclose(mine.emb_in[3], start[3] + 2, atol=1e-6)
    np.testing.assert_allclose(exchange.matrices[0].base[3, :WIDTH], start[3] + 1, atol=1e-6)


def test_frequent_rows_are_exchanged_more_often(monkeypatch):
    monkeypatch.setattr(exchanges, "FREQUENT", 10)
    mine = model()
    exchange = Exchange(mine, subsampling_thresholds(mine.vocab.counts, 0), ThreadRanks.team(1)[0])
    ends = []
    for now in range(1, 9):
        exchange.start(False, now)
        while exchange.busy:
            exchange.poll()
        ends.append(int((exchange.matrices[0].since == now).sum()))
    assert ends == [10, 20, 10, 40, 10, 20, 10, 50]


VOCAB, TEXT = topic_text(600)
VALID = topic_text(200, seed=1)[1]


def test_what_a_rank_trains_on_while_it_pauses_does_not_count_as_exchanged(monkeypatch):
    """The number of exchanges must be the same on all ranks: it decides whether the epoch is over."""
    monkeypatch.setattr("tiedtools.models.word2vec.run.CHUNK", 300)
    run = RanksRun(Word2Vec(VOCAB, Config(size=4)), TEXT, ThreadRanks.team(1)[0], words=TEXT.size // 4)
    run.exchange.flags = 1  # a rank has asked to pause
    run.next = len(run.cuts) // 4 + 1
    run.tick()
    assert run.pausing and run.exchanged == pytest.approx(1 / 4, abs=1e-3)
    run.next = len(run.cuts) - 1
    run.tick()
    assert run.pausing and run.exchanged == pytest.approx(1 / 4, abs=1e-3)


def test_intervals_lengthen_while_exchanges_cost_a_tenth_of_the_time_and_no_further():
    """Each exchange costs 3,000 words' time; 10% is reached at 30,000 words, within the bounds."""
    for total, longest, expected in (75e6, math.inf, 30_000), (75e6, 20_000, 20_000), (300e6, 10_000, 20_000):
        interval = Interval(9, total, True)
        assert interval.words == 150_000 * math.sqrt(total / 75e6)
        interval.words = interval.shortest = 4000
        interval.longest = longest * math.sqrt(total / 75e6)
        for _ in range(1000):
            interval.adapt(3000 / interval.words)
        assert expected <= interval.words <= min(2 * expected, interval.longest)  # 5 to 10% of the time
        for _ in range(1000):
            interval.adapt(0)
        assert interval.words == 4000
    assert Interval(2, 75e6, True).longest >= Interval(2, 75e6, True).shortest
    fixed = Interval(9, 75e6, True, 5000)
    fixed.adapt(1)
    assert fixed.words == 5000


def test_averaging_is_weaker_in_intervals_longer_than_those_the_saturation_was_chosen_with():
    cases = (2, 1.2e6, 1), (4, 4e5, 1), (8, 3e5, 1.75), (16, 8e4, 1), (16, 3e5, 1.75)
    for (ranks, words, stretch), stable in itertools.product(cases, (True, False)):
        interval = Interval(ranks, 75e6, stable)
        interval.words = words
        assert interval.stretch == pytest.approx(stretch if stable else 1)


def test_all_ranks_lengthen_the_interval_alike_by_the_loss_of_the_rank_that_lost_least(monkeypatch):
    monkeypatch.setattr("tiedtools.models.word2vec.run.CHUNK", 50)
    monkeypatch.setattr(ranksrun, "SHORTEST", 300)
    monkeypatch.setattr(ranksrun, "MEMORY", 1)
    started = {0: [], 1: []}

    class Losing(RanksRun):
        def lost_share(self):
            started[self.ranks.rank].append((self.exchanged, self.interval.words))
            return [0.9, 0.5 if self.epoch == 0 else 0.01][self.ranks.rank]

    def work(ranks):
        run = Losing(Word2Vec(VOCAB, Config(size=4, epochs=2)), TEXT, ranks)
        run.progress.begin(2 * run.words, 0, [])
        with run.clock():
            run.train()

    threads = [threading.Thread(target=work, args=[ranks], daemon=True) for ranks in ThreadRanks.team(2)]
    [thread.start() for thread in threads]
    [thread.join(20) for thread in threads]
    assert started[0] == started[1]
    words = [interval for _, interval in started[0]]
    first, last = words[: len(words) // 3], words[-len(words) // 3 :]
    assert first == sorted(first) and first[0] == 300 < first[-1] and last == sorted(last, reverse=True)


def test_a_signal_while_one_computes_the_validation_loss_stops_all_at_their_next_meeting(no_signals):
    """Rank 0 alone computes the loss; the others wait for it."""
    stopped = []

    class Signaled(RanksRun):
        def epoch_figures(self):
            interrupts.handle(signal.SIGINT, None)
            return super().epoch_figures()

    def work(ranks):
        model = Word2Vec(VOCAB, Config(size=4, epochs=3))
        run = Signaled(model, TEXT, ranks, valid=VALID if ranks.rank == 0 else None)
        run.progress.begin(3 * run.words, 0, [])
        try:
            with run.clock(), interrupts.deferred():
                run.train()
        except KeyboardInterrupt:
            stopped.append(len(run.history))

    threads = [threading.Thread(target=work, args=[ranks], daemon=True) for ranks in ThreadRanks.team(2)]
    [thread.start() for thread in threads]
    [thread.join(20) for thread in threads]
    assert stopped == [2, 2]


# The process loses its own stderr, as if the launcher no longer forwarded it.
CODE = """import os
from tiedtools.parallel.watcher import launcher_stderr
found = launcher_stderr()
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
os.write(found, b"a line")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("name, told", [("mpiexec", "a line"), ("other", "")])
def test_the_stderr_of_the_launcher_is_found(name, told, tmp_path):
    launcher = shutil.copy("/bin/sh", tmp_path / name)
    run_and_wait = '"$0" -c "$1"; exit $?'
    result = subprocess.run([launcher, "-c", run_and_wait, sys.executable, CODE], stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (0, told)
