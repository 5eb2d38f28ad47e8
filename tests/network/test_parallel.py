"""Test teams of threads that run one kernel together."""

import itertools
import os
import pickle
import threading

import numpy as np
import pytest
from refusals import refused

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.jit import jit
from tiedtools.network import threads
from tiedtools.network.threads import FEW, Team


@pytest.fixture(params=[1, 2, 3, 5])
def team(request):
    return Team(request.param)


def test_each_thread_runs_the_kernel_once_with_its_index(team):
    calls = []
    for again in range(20):
        team(lambda worker, word: calls.append((worker[:2], word, threading.get_ident())), again)
        assert len(calls) == team.threads * (again + 1), "all threads have finished"
        assert {worker for worker, word, _ in calls if word == again} == {
            (k, team.threads) for k in range(team.threads)
        }
    assert len({ident for *_, ident in calls}) == team.threads
    assert threading.get_ident() in {ident for (number, _), _, ident in calls if number == 0}


@pytest.mark.parametrize("numbers", [0, FEW - 1, FEW])
def test_small_arrays_are_processed_by_one_thread(team, numbers):
    calls = []
    team.over(numbers, lambda worker, word: calls.append((worker[:2], word)), "once")
    threads = team.threads if numbers == FEW else 1
    assert sorted(calls) == [((k, threads), "once") for k in range(threads)]


@jit
def sums(worker, out, totals):
    """In each round, every thread sums what all threads wrote in the previous round."""
    for k in range(1, out.shape[0]):
        total = 0
        for t in range(out.shape[1]):
            total += out[k - 1, t]
        out[k, worker[0]] = total % 1009 + worker[0]
        sync(worker)
    begin, end = partition(worker, totals.size, 4)
    for k in range(begin, end):
        totals[k] += 1


def test_writes_before_a_barrier_are_visible_after_it(team):
    out, totals = np.ones((300, team.threads), np.int64), np.zeros(23, np.int64)
    team(sums, out, totals)
    for before, after in itertools.pairwise(out):
        assert (after == before.sum() % 1009 + np.arange(team.threads)).all()
    assert (totals == 1).all()


def test_partitions_are_complete_contiguous_and_balanced():
    for count, n, grain in itertools.product([1, 2, 3, 7], [0, 1, 4, 5, 100, 103], [1, 4, 96]):
        parts = [partition((k, count, np.zeros(16, np.int64)), n, grain) for k in range(count)]
        assert parts[0][0] == 0 and parts[-1][1] == n
        for (begin, end), (then, _) in itertools.pairwise(parts):
            assert begin <= end == then and (end % grain == 0 or end == n)
        grains = [-(-(end - begin) // grain) for begin, end in parts]
        assert max(grains) - min(grains) <= 1


def test_failure_to_start_a_thread(monkeypatch):
    before, start, starts = set(threading.enumerate()), threading.Thread.start, itertools.count(1)

    def limited(thread):
        if next(starts) == 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    refused(lambda: Team(5)(lambda worker: None), "could start only 3 of 5 threads; lower `threads`")
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_team_survives_fork():
    """Threads do not survive `fork`; the child starts its own."""
    team, totals = Team(3), np.zeros(9, np.int64)
    team(sums, np.ones((4, 3), np.int64), totals)
    child = os.fork()
    if not child:
        try:
            team(sums, np.ones((4, 3), np.int64), totals)
            os._exit(0 if (totals == 2).all() else 2)
        except BaseException:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    team(sums, np.ones((4, 3), np.int64), totals)
    assert (totals == 2).all() and pickle.loads(pickle.dumps(team)).threads == 3


def test_threads_end_with_the_team():
    before = set(threading.enumerate())
    team = Team(4)
    team(lambda worker: None)
    threads = set(threading.enumerate()) - before
    assert len(threads) == 3
    del team
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("failing", [{0}, {1}, {2}, {0, 1, 2}])
def test_exceptions_propagate_and_the_team_stays_usable(failing):
    team, calls = Team(3), []

    def fail(worker):
        if worker[0] in failing:
            raise ValueError(f"thread {worker[0]}")

    for _ in range(3):
        with pytest.raises(ValueError, match=f"thread {min(failing)}"):
            team(fail)
        calls.clear()
        team(lambda worker: calls.append(worker[0]))
        assert sorted(calls) == [0, 1, 2]


def test_interrupt_does_not_wait_for_threads_blocked_in_the_kernel(monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0.01)
    team, never = Team(2), threading.Event()

    def interrupted(worker):
        if worker[0]:
            assert never.wait(20), "the main thread must not wait for this one"
        else:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        team(interrupted)
    never.set()
    assert team.done.get(timeout=20) is None
