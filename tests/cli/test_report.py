"""Test the progress reports of training runs."""

import io
import json

import pytest

from tiedtools.base.messages import perplexity
from tiedtools.cli import report
from tiedtools.cli.report import LmReport, Report, clock
from tiedtools.runs.progress import EpochLog, Progress


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


def test_progress_bar_on_a_terminal(stderr, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    stream = stderr(Terminal())
    reporter = Report()
    reporter.begin(1000)
    reporter.bar.mininterval = 0
    reporter.update(250, 1.23456, 0.025)
    reporter.epoch(epoch=1, loss=1.5, seconds=7)
    reporter.close()
    text = stream.getvalue()
    assert "25.0%" in text and "words/s, loss 1.2346, lr 0.02500, ETA" in text
    assert "epoch 1: loss 1.5000" in text


def test_periodic_lines_elsewhere(stderr):
    stream = stderr(io.StringIO())
    reporter = Report()
    reporter.begin(1000)
    reporter.update(100, 2, 0.02)
    assert stream.getvalue() == ""
    reporter.line_due -= report.FIRST_LINE
    reporter.update(500, 1.5, 0.01)
    assert stream.getvalue().startswith(" 50.0%") and "ETA" in stream.getvalue()
    reporter.line_due -= report.FIRST_LINE
    reporter.update(600, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 1
    reporter.line_due -= report.LINE_EVERY
    reporter.update(700, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 2


@pytest.mark.parametrize("verbosity, lines", [(0, 0), (1, 1), (2, 2)])
def test_verbosity(stderr, monkeypatch, verbosity, lines):
    monkeypatch.setattr(report, "LINE_EVERY", 0)
    stream = stderr(io.StringIO())
    reporter = Report(verbosity)
    reporter.begin(10)
    reporter.update(5, 1, 1)
    reporter.epoch(epoch=1, loss=1, seconds=7)
    assert stream.getvalue().count("\n") == lines


def test_log():
    log = io.StringIO()
    reporter = EpochLog(log, Progress())
    reporter.begin(10)
    reporter.epoch(epoch=1, loss=0.5, seconds=7, lr=0.1)
    reporter.write(params=3)
    first, second = map(json.loads, log.getvalue().splitlines())
    assert first["epoch"] == 1 and first["loss"] == 0.5 and first["lr"] == 0.1 and first["seconds"] == 7
    assert second == {"params": 3}


def test_infinite_perplexities_are_short(stderr):
    stream = stderr(io.StringIO())
    reporter = LmReport(1)
    reporter.begin(10)
    infinite = perplexity(1e4)
    reporter.epoch(epoch=1, lr=20.0, train_ppl=123.456, valid_ppl=infinite, words_per_s=5.0, seconds=1)
    assert "train ppl 123.46, valid ppl infinite, 5 words/s" in stream.getvalue()


def test_clock():
    assert [clock(s) for s in (0, 61.9, 3600, 90061)] == ["0:00:00", "0:01:01", "1:00:00", "25:01:01"]


@pytest.mark.parametrize("command, fate", [("lstm", "left out"), ("rnnlm", "not predicted")])
def test_the_log_says_whether_perplexity_counts_unknown_words(run, tmp_path, command, fate):
    (tmp_path / "train").write_text("a b\n" * 20 + "a x y\n")
    (tmp_path / "valid").write_text("a c\nb b\n")
    line = command, "--hidden", 4, "--epochs", 1, "-train", tmp_path / "train", "-valid", tmp_path / "valid"
    with_unk, without = (run(*line, *more).stderr for more in (["--max-vocab", 4], []))
    counts = "vocabulary of 4 words; perplexity counts `<unk>`, 16.7% of valid, as a word\n"
    assert counts in with_unk and fate not in with_unk
    assert f"1 word outside the vocabulary, which has no <unk>, is {fate}\n" in without and "`<unk>`" not in without
