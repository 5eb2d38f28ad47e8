"""Fixtures shared by the tests of the benchmarks."""

import pytest
from benchmarks import machine, zipf
from benchmarks.commands import cli


@pytest.fixture
def bench(run):
    """Run a benchmark's command line in this process, as `run` does: `bench("w2v", "--size", 10)`."""
    return lambda *args: run(*args, command=cli, name="benchmarks")


@pytest.fixture
def quick(monkeypatch):
    """Make measurements of the machine's peak rates brief, at the cost of accuracy."""
    monkeypatch.setattr(machine, "SECONDS", 1e-4)
    monkeypatch.setattr(machine, "SIDE", 16)


@pytest.fixture
def text(tmp_path):
    """Path of a synthetic text of 3,000 words."""
    path = tmp_path / "text"
    with open(path, "wb") as file:
        zipf.write(file, 3000, types=50)
    return str(path)
