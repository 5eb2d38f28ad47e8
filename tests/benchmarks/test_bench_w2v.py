"""Test the benchmark `w2v`: the table, the counts for the limit, other programs, and the history."""

import json
import os
import re
import select

import numpy as np
import pytest
from benchmarks import processes, w2vlimits
from common import ROOT
from w2vcase import TYINGS

from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.workspaces import layout
from tiedtools.text.encoding import encode
from tiedtools.text.vocab import Vocab

SMALL = ["--words", 2000, "-size", 8, "-runs", 1, "-min-count", 1]


def test_json_and_whole_runs(bench, quick, text):
    result = bench("w2v", text, *SMALL, "-threads", "2,", "-runs", 3, "-variants", "sg-tied", "--json")
    answer = json.loads(result.stdout)
    (row,) = answer["rows"]
    assert answer["words"] == 3000 and answer["vocabulary"] == 51 and 0 < answer["kept"] <= 1
    assert row["name"] == "tiedtools sg-tied" and row["threads"] == 2
    assert row["slowest"] <= row["words_per_s"] <= row["fastest"]
    assert row["share"] == pytest.approx(row["words_per_s"] / row["limit"])
    slow = [row["flops"] / answer["gflops"]["2"], row["bytes"] / answer["gbytes"]["2"]["1"]]
    assert row["limit"] == pytest.approx(1e9 / answer["kept"] / max(slow))
    pytest.importorskip("gensim")
    result = bench("w2v", text, *SMALL, "--whole", "-threads", "1,", "-variants", "cbow", "--against", "gensim")
    assert result.exit_code == 0 and "GFLOP" not in result.stdout
    columns, ours, theirs = result.stdout.splitlines()[3:]
    assert columns.split() == ["threads", "words/s", "slowest", "fastest", "seconds", "MB"]
    assert ours.startswith("tiedtools cbow ") and theirs.startswith("gensim cbow ")
    assert all(20 < int(row.split()[-1]) < 2000 for row in (ours, theirs))


@pytest.mark.parametrize(
    "last, status, told", [("50.00", 0, ""), ("0.00", 0, "no progress"), ("50.00", 1, "no progress")]
)
def test_word2vec_c_is_timed_by_its_progress(bench, quick, text, tmp_path, last, status, told):
    program = tmp_path / "word2vec"
    tell = "printf '\\rAlpha: 0.02  Progress: %s%%%%  Words/thread/sec: 9k  ' "
    program.write_text(f"#!/bin/sh\n{tell} 0.00; sleep .25; {tell} {last}; exit {status}\n")
    program.chmod(0o755)
    args = ["-threads", "1,", "-variants", "cbow", "--json", "--against", f"word2vec.c={program}"]
    result = bench("w2v", text, *SMALL, *args)
    if told:
        assert result.exit_code == 1 and told in result.stderr.splitlines()[-1]
    else:
        assert 0 < json.loads(result.stdout)["rows"][1]["words_per_s"] <= 6000


def test_needs_by_hand(monkeypatch):
    monkeypatch.setattr(w2vlimits, "layout", lambda config: (1, 32, 16))
    monkeypatch.setattr(w2vlimits, "PROJ_EVERY", (8, 4))
    config = lambda **options: Config(**dict(size=10, negative=5, precision="float32") | options)
    # 16 negatives, 3 context words; 3 products of size 10 with each; 2 rows and half a negative, read and written.
    assert w2vlimits.needs(config(architecture="skipgram"), 3) == (2 * 3 * 10 * 19, 2 * 40 * 2.5)
    # 16 negatives and the target; the mean of 3 and its gradient.
    assert w2vlimits.needs(config(), 3) == (2 * (3 * 10 * 17 + 2 * 10 * 3), 2 * 40 * 2.5)
    # One matrix; L of tied+L forward and backward, and its gradient in every fourth batch (skip-gram: every eighth).
    assert w2vlimits.needs(config(tying="signs"), 3) == (2 * (3 * 10 * 17 + 60), 2 * 40 * 1.5)
    monkeypatch.setattr(w2vlimits, "FAST_DOTS", False)  # then only L's are in bfloat16, if there is an L
    assert w2vlimits.needs(config(precision="bfloat16"), 3)[0] == 3 * 10 * 17 + 2 * 10 * 3
    for precision, part in ("float32", 1), ("bfloat16", 0.5):
        linear = config(tying="linear", precision=precision)
        assert w2vlimits.needs(linear, 3) == (2 * (3 * 10 * 17 + 60 + 225 * part), 2 * 40 * 1.5)
        linear = config(tying="linear", architecture="skipgram", precision=precision)
        assert w2vlimits.needs(linear, 3) == (2 * (3 * 10 * 19 + 212.5 * part), 2 * 40 * 1.5)
    # Three targets with 5 separate negatives each.
    assert w2vlimits.needs(config(architecture="skipgram", exact=True), 3) == (2 * 3 * 10 * 18, 2 * 40 * (2 + 15))
    assert w2vlimits.needs(config(exact=True, tying="tied"), 3) == (2 * (3 * 10 * 6 + 60), 2 * 40 * (1 + 5))
    assert w2vlimits.needs(config(exact=True, tying="signs"), 3) == (2 * (180 + 60), 2 * 40 * (1 + 5))
    assert w2vlimits.needs(config(exact=True, tying="linear"), 3) == (2 * (180 + 60 + 300), 2 * 40 * (4 + 5))


def test_documented_needs(monkeypatch):
    monkeypatch.setattr(w2vlimits, "FAST_DOTS", False)
    page = (ROOT / "docs" / "internals.md").read_text()
    rows = re.findall(r"^\| (CBOW|skip-gram) (untied|tied|tied, fixed signs|tied\+L) \| (\d+, .*) \|$", page, re.M)
    assert len(rows) == 8
    for kind, tying, told in rows:
        options = dict(TYINGS[{"tied+L": "linear", "tied, fixed signs": "signs"}.get(tying, tying)], size=300)
        options["architecture"] = "cbow" if kind == "CBOW" else "skipgram"
        config = Config(precision="float32", **options)
        exact, half = Config(exact=True, **options), Config(precision="bfloat16", **options)
        (flops, moved), (flops_exact, moved_exact) = (w2vlimits.needs(c, 5) for c in (config, exact))
        both = f"; {w2vlimits.needs(half, 5)[0] / 1e3:.0f}" if tying == "tied+L" else ""
        _, run, each = layout(config)
        of_tiles = f"{run}, {each} | {flops / 1e3:.0f}{both} | {moved / 1e3:.1f}"
        assert told == f"{of_tiles} | {flops_exact / 1e3:.0f} | {moved_exact / 1e3:.1f}"


def test_kept_fraction_and_mean_context(tmp_path):
    vocab = Vocab(["</s>", "a", "b"], np.array([0, 900, 100]))
    assert w2vlimits.kept_fraction(vocab, 0) == 1
    # a: sqrt(.01 / .9) + .01 / .9, b: sqrt(.01 / .1) + .01 / .1
    assert w2vlimits.kept_fraction(vocab, 0.01) == pytest.approx(0.9 * 0.116520 + 0.1 * 0.416228, rel=1e-4)
    (path := tmp_path / "text").write_text("a b c\n" * 100)
    text = encode([str(path)])
    # Radius 1: 1, 2, 1 words; radius 2: 2, 2, 2.
    assert w2vlimits.mean_context(text, Config(window=2, sample=0)) == pytest.approx((4 / 3 + 2) / 2)


def test_stopping_a_process_stops_its_children():
    reader, writer = os.pipe()
    with pytest.raises(KeyboardInterrupt):
        with processes.running(["sh", "-c", "sleep 60 & echo; wait"], pass_fds=(writer,)) as process:
            os.close(writer)
            process.stdout.readline()
            raise KeyboardInterrupt
    assert select.select([reader], [], [], 30)[0] and os.read(reader, 1) == b""  # the other end is closed
    os.close(reader)
