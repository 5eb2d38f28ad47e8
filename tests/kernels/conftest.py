"""Fixtures of the tests of kernels."""

import pytest

from tiedtools.kernels.base import cachefolder


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A folder with a cache of kernels in `cache` and a folder for temporary files, `temporary`; both are empty."""
    monkeypatch.setattr(cachefolder.numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cachefolder.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    cachefolder.folder.cache_clear()
    yield tmp_path
    cachefolder.folder.cache_clear()
