"""Test buffers, parameters, and threads of a network."""

import itertools
import os
import threading
import time

import numpy as np
import pytest
from common import refused

from tiedtools.kernels.base.barrier import SLEEPERS, partition, sync
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.launch import RESTLESS
from tiedtools.kernels.base.product import part
from tiedtools.network.params import DOTS, Buffers, Params
from tiedtools.network.threads import FEW, Team


@pytest.fixture(params=["float32", "float64"])
def params(request):
    """Params with tied emb_in and emb_out, a matrix, and a bias."""
    params = Params(Team(1), request.param)
    params.tie("emb_out", "emb_in")
    params.add("emb_in", (6, 5), by_rows=True)
    params.add("W", (5, 3))
    params.add("emb_out", (6, 5))
    params.add("b", (6,))
    params.build()
    return params


def by_rows():
    """Return Params with two tables with sparse gradients, one of them tied, before and after a matrix."""
    params = Params(Team(1))
    params.tie("both", "rows")
    params.add("table", (7, 3), by_rows=True)
    params.add("W", (4, 4))
    params.add("rows", (9, 20), by_rows=True)
    params.add("both", (9, 20), by_rows=True)
    params.add("b", (9,), by_rows=True)
    params.build()
    return params


@pytest.mark.parametrize("first, second", [((6, 5), (5, 6)), ((6, 5), (6, 4)), ((6,), (6, 1))])
def test_tied_arrays_must_have_the_same_shape(first, second):
    params = Params(Team(1))
    params.tie("out", "in")
    params.add("in", first)
    with pytest.raises(ValueError, match="^out .* cannot be in"):
        params.add("out", second)


def test_arrays_are_disjoint_aligned_views_shared_by_tied_names(params):
    assert params.values.dtype == params["W"].dtype == params.dtype
    for k, (name, array) in enumerate(params.owners(), 1):
        assert not array.any(), "arrays overlap or are not zero-initialized"
        array[:] = k
        assert np.shares_memory(array, params.values)
        grad, _ = params.gradient(name)
        assert grad.shape == params.padded(name).shape
    assert np.count_nonzero(params.values) == params.count
    assert params.values.base.size >= params.values.size + DOTS * params.padded("W").shape[1], "read by row_dots"
    assert [np.unique(array).tolist() for _, array in params.owners()] == [[1], [2], [3]]
    for name in "emb_in", "W":
        padded = params.padded(name)
        assert all(row.ctypes.data % 64 == 0 for row in padded) and (padded.strides[0] // 64) % 2
    params["emb_in"][2, 3] = 7
    assert params["emb_out"][2, 3] == 7 and params["emb_out"].shape == (6, 5)
    assert {name for name, _ in params.owners()} == {"emb_in", "W", "b"}
    assert params.count == 30 + 15 + 6


def test_gradients_accumulate_by_rows_or_as_a_whole(params):
    for _ in range(2):
        params.begin_step()
        grad, accumulate = params.gradient("emb_out")
        assert not accumulate
        again, accumulate = params.gradient("emb_in")
        assert accumulate and np.shares_memory(grad, again)
        assert params.gradient("W")[1] is False and params.gradient("W")[1] is True
    # Embeddings tied to a full softmax have a dense gradient, whichever layer writes it first.
    rows = np.array([1, 4])
    params.begin_step()
    params.gradient("emb_out")[0][:] = 2
    params.row_gradient("emb_in", rows)[rows] += 1
    assert params.row_gradient("emb_in", rows)[:, 0].tolist() == [2, 3, 2, 2, 3, 2]
    params.begin_step()
    params.row_gradient("emb_in", rows)[rows] += 1
    grad, accumulate = params.gradient("emb_out")
    assert accumulate and grad[:, 0].tolist() == [0, 1, 0, 0, 1, 0]
    assert [len(part) for part in params.segments()] == [0, 0] and params.dense == params.values.size


def segments(params):
    """Return how often each element of the flat array is covered by gradients."""
    flags = np.zeros(params.values.size, int)
    flags[: params.dense] = 1
    for start, size in zip(*params.segments()):
        flags[start : start + size] += 1
    return flags


def test_sparse_rows_become_segments_and_are_cleared():
    params = by_rows()
    params.begin_step()
    for name, rows in ("table", [5, 0, 5]), ("rows", [3, 8]), ("both", [8, 2, 8]), ("b", [4]):
        rows = np.array(rows, np.int32)
        np.add.at(params.row_gradient(name, rows)[..., : params[name].shape[-1]], rows, 1)
    params.gradient("W")[0][:] = 1
    touched = {"table": [0, 5], "rows": [2, 3, 8]}
    flags = segments(params)
    assert set(flags) == {0, 1}, "segments must not overlap"
    for name, rows in touched.items():
        has = params.cut(flags, name)
        assert np.flatnonzero(has.all(1)).tolist() == np.flatnonzero(has.any(1)).tolist() == rows
        assert np.flatnonzero(params.cut(params.grads, name).any(1)).tolist() == rows
    assert params.cut(flags, "W").all() and np.flatnonzero(params.cut(flags, "b")).tolist() == [4]
    assert params.cut(params.grads, "rows")[:, 0].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 3], "both roles"

    params.begin_step()
    assert not params.grads[params.dense :].any() and not segments(params)[params.dense :].any()
    params.row_gradient("table", np.array([1], np.int32))[1] += 1
    assert np.flatnonzero(params.cut(segments(params), "table").any(1)).tolist() == [1]


def test_buffers():
    buffers = Buffers(np.float32)
    shapes = [(99, 15), (4, 40), (20, 40), (3, 70), (10, 5), (2, 3, 17), (12, 17), (10, 40)]
    for shape in shapes:
        array = buffers("x", *shape)
        assert array.shape[:-1] == shape[:-1] and array.shape[-1] >= shape[-1]
        assert not array[..., shape[-1] :].any(), shape
        array[..., : shape[-1]] = 1
    buffers = Buffers(np.float32)
    first = buffers("x", 10, 20)
    assert buffers("x", 10, 20) is first and np.shares_memory(buffers("x", 4, 7), first)
    assert not np.shares_memory(buffers("y", 10, 20), first)


@pytest.fixture(params=[1, 2, 3, 5])
def team(request):
    return Team(request.param)


@jit
def mark(worker, calls):
    """Count the calls by thread and number of threads."""
    calls[worker[0], worker[1]] += 1


def counts(threads, calls):
    expected = np.zeros((6, 6), np.int64)
    expected[:threads, threads] = calls
    return expected


def test_threads_run_once_meet_at_barriers_and_raise(team):
    calls = np.zeros((6, 6), np.int64)
    for again in range(20):
        team(mark, calls)
        assert (calls == counts(team.threads, again + 1)).all(), "all threads have finished"
    out, totals = np.ones((300, team.threads), np.int64), np.zeros(23, np.int64)
    team(sums, out, totals)
    for before, after in itertools.pairwise(out):
        assert (after == before.sum() % 1009 + np.arange(team.threads)).all()
    assert (totals == 1).all()
    calls = np.zeros((6, 6), np.int64)
    for again in range(3):
        with pytest.raises(ValueError, match="of a kernel"):
            team(fail, calls)
        assert (calls == counts(team.threads, 2 * again + 1)).all()
        team(mark, calls)
        assert (calls == counts(team.threads, 2 * again + 2)).all()


@pytest.mark.parametrize("numbers", [0, FEW - 1, FEW])
def test_small_arrays_are_processed_by_one_thread(team, numbers):
    calls = np.zeros((6, 6), np.int64)
    team.over(numbers, mark, calls)
    assert (calls == counts(team.threads if numbers == FEW else 1, 1)).all()


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


def test_parts_are_complete_and_do_not_overlap():
    for count, n, grain in itertools.product([1, 2, 3, 7], [0, 1, 4, 5, 100, 103], [1, 4, 96]):
        parts = [partition((k, count, np.zeros(16, np.int64)), n, grain) for k in range(count)]
        assert parts[0][0] == 0 and parts[-1][1] == n
        for (begin, end), (then, _) in itertools.pairwise(parts):
            assert begin <= end == then and (end % grain == 0 or end == n)
        grains = [-(-(end - begin) // grain) for begin, end in parts]
        assert max(grains) - min(grains) <= 1
    for count, (M, N) in itertools.product([1, 2, 3, 5, 12, 16], [(1, 64), (5, 800), (20, 64), (700, 208), (208, 816)]):
        C, gate = np.zeros((M, N)), np.zeros(16, np.int64)
        for k in range(count):
            begin, end, first, last = part((k, count, gate), C)
            C[begin:end, first:last] += 1
        assert (C == 1).all(), (count, M, N)


def test_failure_to_start_a_thread(monkeypatch):
    before, start, starts = set(threading.enumerate()), threading.Thread.start, itertools.count(1)

    def limited(thread):
        if next(starts) == 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    refused(lambda: Team(5)(mark, np.zeros((6, 6), np.int64)), "could start only 3 of 5 threads; lower `threads`")
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
    assert (totals == 2).all()


@jit
def fail(worker, calls):
    calls[worker[0], worker[1]] += 1
    raise ValueError("of a kernel")


def test_threads_are_woken_and_end_with_the_team():
    """Threads without a job sleep after some milliseconds, and without a core for each of them at once."""
    team = Team(3)
    for restless in (0, 1):
        team(mark, np.zeros((6, 6), np.int64))
        team.worker[2][RESTLESS], calls = restless, np.zeros((6, 6), np.int64)
        for _ in range(20_000):
            if team.worker[2][SLEEPERS] < 2:
                time.sleep(0.001)
        team(mark, calls)
        assert (calls == counts(3, 1)).all()
    before = set(threading.enumerate())
    team = Team(4)
    team(mark, np.zeros((6, 6), np.int64))
    threads = set(threading.enumerate()) - before
    assert len(threads) == 3
    del team
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
