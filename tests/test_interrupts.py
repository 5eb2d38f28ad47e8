"""Signals: the first one stops, at once or where it does no harm; many give up."""

import signal

import pytest

from tiedtools import interrupts
from tiedtools.interrupts import check, deferred, handle


@pytest.fixture(autouse=True)
def none_received(monkeypatch):
    monkeypatch.setattr(interrupts, "received", [])


def test_the_first_signal_raises_and_the_next_ones_wait():
    with pytest.raises(KeyboardInterrupt) as stop:
        handle(signal.SIGTERM, None)
    assert stop.value.args == (signal.SIGTERM,)
    handle(signal.SIGINT, None)
    handle(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        handle(signal.SIGINT, None)


def test_deferred_signals_wait_for_the_next_check():
    steps = []
    with pytest.raises(KeyboardInterrupt) as stop:
        with deferred():
            check()
            handle(signal.SIGTERM, None)
            steps.append("whole")
            check()
            steps.append("never")
    assert steps == ["whole"] and stop.value.args == (signal.SIGTERM,)


def test_deferred_signals_wait_no_longer_than_the_block():
    with pytest.raises(KeyboardInterrupt):
        with deferred():
            handle(signal.SIGINT, None)
    interrupts.received.clear()
    with pytest.raises(KeyboardInterrupt):
        handle(signal.SIGINT, None)


def test_another_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        with deferred():
            handle(signal.SIGINT, None)
            1 / 0


def test_patience_ends_in_a_deferred_block_too():
    with deferred():
        for _ in range(interrupts.PATIENCE):
            handle(signal.SIGINT, None)
        with pytest.raises(KeyboardInterrupt):
            handle(signal.SIGINT, None)
        interrupts.received.clear()
