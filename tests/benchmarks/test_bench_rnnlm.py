"""Test the benchmark `rnnlm`: the table, the counts for the limit, and the comparison with other programs."""

import json
import math

import pytest
from benchmarks import rnnlmlimits

from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import word_classes
from tiedtools.text.lmtext import LmText


@pytest.fixture
def text(tmp_path):
    (path := tmp_path / "text").write_text("a b c a b a\n" * 40)
    return str(path)


@pytest.fixture
def rival(tmp_path):
    """A function that makes a fake program, which logs its arguments and the text's size, then prints `told`."""

    def make(told, status=0):
        program = tmp_path / "rival"
        note = f'echo "$(wc -l <text) $(wc -l <valid) $* $(echo *)" >>{tmp_path / "log"}'
        program.write_text(f"#!/bin/sh\n{note}\nprintf '{told}'\nexit {status}\n")
        program.chmod(0o755)
        return program

    return make


def test_rnnlm(bench, quick, text, rival, tmp_path):
    program = rival("Iter: 0\\rTRAIN entropy: 3.0 Words/sec: 50.5 \\rTRAIN entropy: 2.0    Words/sec: 40.5\\n")
    args = ["-class", 2, "-runs", 3, "-threads", "1,2", "-variants", "6,4-sentences,4"]
    result = bench("rnnlm", text, *args, "-bptt", 3, "--json", "--against", f"rnnlm={program}")
    rows = json.loads(result.stdout)["rows"]
    assert [(row["name"], row["threads"]) for row in rows[-2:]] == [("rnnlm 6", 1), ("rnnlm 4", 1)]
    six, four = rows[-2:]
    assert six["words_per_s"] == 40.5 and six["nats"] == pytest.approx(2 * math.log(2)) and "limit" not in six
    assert six["ratio"] == pytest.approx(rows[0]["words_per_s"] / 40.5)
    assert rows[2]["name"] == "tiedtools 4-sentences" and rows[2]["threads"] == 1
    assert four["ratio"] == pytest.approx(rows[2]["words_per_s"] / 40.5)
    logged = (tmp_path / "log").read_text().splitlines()
    options = "-alpha 0.1 -class 2 -bptt 3 -bptt-block 10 -rand-seed 1 -debug 2 -one-iter text valid"
    given = [f"40 10 -train text -valid valid -rnnlm model -hidden {n} {options}" for n in (6, 4)]
    assert logged == given * 3  # alternating, once per round for any threads; no model file at the start


@pytest.mark.parametrize("name, noise", [("faster-rnnlm", 0), ("faster-rnnlm-nce", 20)])
def test_faster_rnnlm(bench, quick, text, rival, tmp_path, name, noise):
    program = rival("Epoch 1\\rlr: 0.1  12.50 Kwords/sec  \\r lr: 0.1  0.75 Kwords/sec  entropy")
    args = ["-class", 2, "-runs", 1, "-threads", "1,2", "-variants", "6", "--json"]
    result = bench("rnnlm", text, *args, "--against", f"{name}={program}")
    *ours, one, two = json.loads(result.stdout)["rows"]
    assert [(row["name"], row["threads"], row["words_per_s"]) for row in (one, two)] == [
        (f"{name} 6", 1, 750),
        (f"{name} 6", 2, 750),
    ]
    assert two["ratio"] == pytest.approx(ours[1]["words_per_s"] / 750) and "nats" not in two
    logged = (tmp_path / "log").read_text().splitlines()
    assert [line.partition("-alpha 0.1 ")[2] for line in logged] == [
        f"-threads {t} -nce {noise} -stop 1000000000.0 -retry 0 text valid" for t in (1, 2)
    ]


def test_needs_by_hand(text):
    # 10 + 4 inputs to 6 classes and 5 words; the previous state; 12 BPTT steps per 10 words, the last with one product.
    words = 3 * 14 * 11
    bytes_moved = 2 * 4 * (14 * 5 + 10)
    config = dict(hidden=10, classes=6, doc_dim=4)
    assert rnnlmlimits.needs(RnnlmConfig(**config, bptt=3), 5) == (2 * (100 + words + 230), bytes_moved)
    assert rnnlmlimits.needs(RnnlmConfig(**config, sentences=True), 5) == (2 * (300 + words), bytes_moved)
    # Without BPTT, each word is a block.
    assert rnnlmlimits.needs(RnnlmConfig(hidden=10, classes=6), 5) == (2 * (200 + 3 * 10 * 11), 2 * 4 * 60)
    read = LmText.read([text], valid_share=0)
    made = rnnlmlimits.Machine(read, 3, [6])
    bounds = word_classes(read.vocab.counts, 3)
    expected = [row for word in read.train for k in range(3) if bounds[k] <= word < bounds[k + 1]
                for row in range(bounds[k], bounds[k + 1])]  # fmt: skip
    words = made.rows[6][1]
    assert words[: len(expected)].tolist() == expected and words.size % 16 == 0
    assert words.size - len(expected) < 16 and made.expected == pytest.approx(len(expected) / read.train.size)
