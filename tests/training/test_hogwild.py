"""Test worker threads: job order, errors, and stopping."""

import threading
import time

import pytest
from refusals import refused

from tiedtools.training import hogwild


def test_every_job_is_done_once_in_order():
    for threads in (1, 4):
        done, lock = [], threading.Lock()

        def work(thread, job):
            with lock:
                done.append((job, thread))

        hogwild.run(work, range(100), threads, lambda: None)
        jobs = [job for job, _ in done]
        assert sorted(jobs) == list(range(100)) and {t for _, t in done} <= set(range(threads))
        assert threads > 1 or jobs == list(range(100))


def test_an_error_in_a_worker_stops_all_and_is_raised():
    stopped, done = [], []

    def work(thread, job):
        done.append(job)
        if job == 3:
            raise ValueError("job 3")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="job 3"):
        hogwild.run(work, range(10_000), 2, lambda: stopped.append(True))
    assert stopped and len(done) < 100


def test_failure_to_start_threads_is_reported(monkeypatch):
    stop, start = threading.Event(), threading.Thread.start
    starts = iter([start, start])

    def limited(thread):
        if (begin := next(starts, None)) is None:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    refused(lambda: hogwild.run(lambda thread, job: stop.wait(60), range(10), 3, stop.set), "could start only 2 of 3")
    assert stop.is_set()


def test_an_interrupt_asks_the_workers_to_stop_and_waits_for_them():
    stop, left = threading.Event(), []

    def work(thread, job):
        stop.wait(60)
        left.append(thread)

    def tick():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hogwild.run(work, range(10), 3, stop.set, tick, every=0.01)
    assert sorted(left) == [0, 1, 2]
