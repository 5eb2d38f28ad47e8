"""Test the benchmark `mpi`, and the predicted speed of training on many machines."""

import json

import pytest
from benchmarks import mpi
from benchmarks.mpiprediction import Setup
from rankscase import needs_mpi

SMALL = ["-words", 3000, "-size", 8, "-runs", 1, "-min-count", 1]


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)


@needs_mpi
def test_json(bench, two_cores, text):
    exchange = "--exchange-words", 1000, "--exchange-precision", "bfloat16", "--delay", 50
    result = bench("mpi", text, *SMALL, "-ranks", "2,", "-iter", 2, *exchange, "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    one, two, ranks = answer["rows"]
    assert (answer["words"], answer["iter"], answer["delay"]) == (3000, 2, 50)
    assert [row["threads"] for row in (one, two, ranks)] == [1, 2, 1] and ranks["ranks"] == 2
    assert ranks["of_process"] == pytest.approx(ranks["words_per_s"] / two["words_per_s"])
    assert ranks["exchanges"] == 2 and ranks["exchanged_mb"] > 0 and 0 <= ranks["waiting_share"] <= 1
    assert ranks["words_per_s"] < 2 * 3000 / (2 * 0.05)  # at least the exchange at the end of each epoch


def test_an_epoch_by_hand_and_long_epochs():
    """Two matrices of 3,000 rows; exchanges of 1,024, 2,048, 1,024, and 3,000 rows, and all of them at the end."""
    setup = Setup(words_per_s=50, cores=4, vocabulary=3000, size=15, epochs=1, exchange_words=1000, latency=0.5)
    setup.handled, setup.gbits = 4 * 2 * 17 * 1024, 8 * 4 * 2 * 17 * 1024 / 1e9  # both 1 s for 1,024 rows of 17 numbers
    share = 3000 / 1024
    took = [2 + 2, 4 + 2, 2 + 2, 2 * share + 2]
    assert [setup.exchange(2, rows)[0] for rows in (1024, 2048, 1024, 3000)] == pytest.approx(took)
    handling = (1 + 2 + 1 + share) / 4
    assert setup.training(2, 5000) == pytest.approx(5 * 1000 / 100 + handling + took[3])  # none takes two periods
    setup.words_per_s = 1e9  # ranks wait for all exchanges
    assert setup.training(2, 5000) == pytest.approx(sum(took) + took[3] + 1 / 4, abs=1e-4)
    setup = Setup(vocabulary=5000, epochs=1, exchange_words=1e5)
    seconds = [setup.training(8, 1e5 * periods) for periods in (17, 33, 641)]
    assert (seconds[2] - seconds[1]) / 608 == pytest.approx((seconds[1] - seconds[0]) / 16, rel=0.01)
