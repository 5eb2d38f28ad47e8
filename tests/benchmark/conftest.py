"""Fixtures shared by the tests of the benchmarks."""

import pytest

from tiedtools.benchmark import zipf


@pytest.fixture
def text(tmp_path):
    """Path of a synthetic text of 3,000 words."""
    path = tmp_path / "text"
    with open(path, "wb") as file:
        zipf.write(file, 3000, types=50)
    return str(path)
