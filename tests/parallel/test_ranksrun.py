"""Test how ranks agree on when to pause; test_mpi.py tests whole runs."""

import signal
import threading

from rankscase import ThreadRanks
from w2vcase import topic_text

from tiedtools.base import interrupts
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.ranksrun import RanksRun

VOCAB, TEXT = topic_text(600)
VALID = topic_text(200, seed=1)[1]


def test_what_a_rank_trains_on_while_it_pauses_does_not_count_as_exchanged(monkeypatch):
    """The number of exchanges must be the same on all ranks: it decides whether the epoch is over."""
    monkeypatch.setattr("tiedtools.models.word2vec.run.CHUNK", 300)
    run = RanksRun(Word2Vec(VOCAB, Config(size=4)), TEXT, ThreadRanks.team(1)[0], words=TEXT.size // 4)
    assert run.periods == 4
    run.exchange.flags = 1  # a rank has asked to pause
    run.next = len(run.cuts) // 4 + 1
    run.tick()
    assert (run.pausing, run.number) == (True, 1)
    run.next = len(run.cuts) - 1
    run.tick()
    assert (run.pausing, run.number) == (True, 1)


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
            with run.clock():
                run.train()
        except KeyboardInterrupt:
            stopped.append(len(run.history))

    threads = [threading.Thread(target=work, args=[ranks], daemon=True) for ranks in ThreadRanks.team(2)]
    with interrupts.deferred():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        interrupts.received.clear()
    assert stopped == [2, 2]
