"""What a training run tells."""

import io
import json

import pytest

from tiedtools.cli import report
from tiedtools.cli.report import LmReport, Report, clock
from tiedtools.figures import perplexity
from tiedtools.training.progress import EpochLog, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    def stderr(stream):
        monkeypatch.setattr("sys.stderr", stream)
        report.show_messages()
        return stream

    return stderr


def test_a_bar_on_a_terminal(stderr, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    stream = stderr(Terminal())
    told = Report()
    told.begin(1000)
    told.bar.mininterval = 0
    told.update(250, 1.23456, 0.025)
    told.epoch(epoch=1, loss=1.5, seconds=7)
    told.close()
    text = stream.getvalue()
    assert "25.0%" in text and "words/s, loss 1.2346, lr 0.02500, ETA" in text
    assert "epoch 1: loss 1.5000" in text


def test_plain_lines_elsewhere_at_once_and_then_now_and_then(stderr):
    stream = stderr(io.StringIO())
    told = Report()
    told.begin(1000)
    told.update(100, 2, 0.02)
    assert stream.getvalue() == ""
    told.line_due -= report.FIRST_LINE
    told.update(500, 1.5, 0.01)
    assert stream.getvalue().startswith(" 50.0%") and "ETA" in stream.getvalue()
    told.line_due -= report.FIRST_LINE
    told.update(600, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 1
    told.line_due -= report.LINE_EVERY
    told.update(700, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 2


@pytest.mark.parametrize("verbosity, lines", [(0, 0), (1, 1), (2, 2)])
def test_verbosity(stderr, monkeypatch, verbosity, lines):
    monkeypatch.setattr(report, "LINE_EVERY", 0)
    stream = stderr(io.StringIO())
    told = Report(verbosity)
    told.begin(10)
    told.update(5, 1, 1)
    told.epoch(epoch=1, loss=1, seconds=7)
    assert stream.getvalue().count("\n") == lines


def test_log():
    log = io.StringIO()
    told = EpochLog(log, Progress())
    told.begin(10)
    told.epoch(epoch=1, loss=0.5, seconds=7, lr=0.1)
    told.write(params=3)
    first, second = map(json.loads, log.getvalue().splitlines())
    assert first["epoch"] == 1 and first["loss"] == 0.5 and first["lr"] == 0.1 and first["seconds"] == 7
    assert second == {"params": 3}


def test_perplexities_of_a_run_that_is_lost_are_short(stderr):
    stream = stderr(io.StringIO())
    told = LmReport(1)
    told.begin(10)
    lost = perplexity(1e4)
    told.epoch(epoch=1, lr=20.0, train_ppl=123.456, valid_ppl=lost, words_per_s=5.0, seconds=1)
    assert "train ppl 123.46, valid ppl infinite, 5 words/s" in stream.getvalue()


def test_clock():
    assert [clock(s) for s in (0, 61.9, 3600, 90061)] == ["0:00:00", "0:01:01", "1:00:00", "25:01:01"]
