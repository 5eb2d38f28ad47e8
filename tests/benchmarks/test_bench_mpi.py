"""Test the benchmark `mpi`: its rows with and without MPI, the simulated network, and errors."""

import json
import os

import pytest
from benchmarks import mpi
from rankscase import needs_mpi

from tiedtools.base.errors import TiedtoolsError

SMALL = ["-words", 3000, "-size", 8, "-runs", 1, "-min-count", 1]


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)


@needs_mpi
def test_table(bench, two_cores):
    result = bench("mpi", *SMALL, "-ranks", "1,3", "-cbow", 0, "--tie-signs")
    assert result.exit_code == 0 and "run 1 of 1: 3 ranks, 1 thread: " in result.stderr
    head, kind, _, columns, *rows = result.stdout.splitlines()
    assert head.endswith(", 2 cores")
    assert kind.startswith("skip-gram, tied, fixed signs; 3,000 words, 1 epoch, vocabulary ")
    assert columns.split("  ")[-1] == "waiting" and "x process" in columns and "MB exchanged" in columns
    names = [row.split("   ")[0].split() for row in rows]
    assert names == [["without", "MPI"], ["without", "MPI"], ["1", "rank"], ["3", "ranks"]]
    assert [row[11:].split()[0] for row in rows] == ["1", "2", "1", "1"]  # threads
    assert all(row.endswith("%") for row in rows[2:])


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


@needs_mpi
def test_a_failing_run_is_an_error(bench, two_cores, text):
    result = bench("mpi", text, *SMALL, "-ranks", "2,", "-sample", "1e-30")
    assert result.exit_code == 1 and result.stderr.splitlines()[-1].startswith("Error: without MPI: ")
    contender = mpi.Contender(2, [1], ["-size=0", text], f"{text}.log")
    with pytest.raises(TiedtoolsError, match="2 ranks: tiedtools: rank [01] of 2: .*-size"):
        contender.run(1)
    assert not os.path.exists(f"{text}.log")


@pytest.mark.parametrize("missing", ["mpiexec", "mpi4py"])
def test_without_mpi(bench, missing, monkeypatch):
    monkeypatch.setattr(mpi.shutil, "which", lambda name, path: None if name == missing else name)
    monkeypatch.setattr(mpi.importlib.util, "find_spec", lambda name: None if name == missing else name)
    result = bench("mpi", *SMALL)
    assert result.exit_code == 1 and result.stderr == (
        f'Error: {missing} is not installed; run pip install "tiedtools[mpi]" mpich\n'
    )
