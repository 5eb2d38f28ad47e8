"""Test TIEDTOOLS_CPU, which makes results identical on all x86-64 CPUs with AVX2."""

import os
import platform
import subprocess
import sys

import pytest

PROBE = """
import os
from tiedtools.kernels.base import tiles
from numpy._core._multiarray_umath import __cpu_features__ as numpy_features
from numba import config
print(tiles.VECTOR, tiles.COLS, os.environ.get("NUMBA_CPU_NAME"), os.environ.get("OPENBLAS_CORETYPE"), int(config.OPT))
print(any(on for name, on in numpy_features.items() if name in ("AVX512_SKX", "AVX512_ICL", "AVX512_SPR", "X86_V4")))
"""
LIBRARIES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"


def probe(**settings):
    environment = {name: value for name, value in os.environ.items() if name not in LIBRARIES}
    result = subprocess.run([sys.executable, "-c", PROBE], env=environment | settings, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64 CPU")
def test_haswell():
    assert probe(TIEDTOOLS_CPU="haswell") == ["32 2 haswell Haswell 2", "False"]


def test_user_settings_are_left_alone():
    assert probe(TIEDTOOLS_CPU="", OPENBLAS_CORETYPE="Zen", NUMBA_OPT="1")[0].split()[2:] == ["None", "Zen", "1"]


def test_imports_leave_the_environment_unchanged():
    code = """
import os
before = dict(os.environ)
import tiedtools.cli, numpy, numba, tiedtools.vectors.vectors, tiedtools.text.vocab
assert dict(os.environ) == before
import tiedtools.kernels.base.tiles
assert dict(os.environ) == before, "too late"
"""
    environment = {name: value for name, value in os.environ.items() if name not in LIBRARIES}
    subprocess.run([sys.executable, "-c", code], env=environment | {"TIEDTOOLS_CPU": ""}, check=True)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64 CPU")
def test_choosing_a_cpu_after_numpy_is_imported_is_an_error():
    environment = {name: value for name, value in os.environ.items() if name not in LIBRARIES}
    code = "import numpy, tiedtools.kernels"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment | {"TIEDTOOLS_CPU": "haswell"}, capture_output=True, text=True)
    assert "TiedtoolsError: TIEDTOOLS_CPU=haswell: already imported: numpy; call" in result.stderr


def test_without_compilation_each_command_says_so_in_one_line():
    for command in "w2v", "lstm", "rnnlm":
        line = [sys.executable, "-m", "tiedtools", command]
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
        result = subprocess.run(line, env=environment, input="a b c\n" * 9, capture_output=True, text=True)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, command
        assert result.stderr.startswith("tiedtools: NUMBA_DISABLE_JIT: "), command


def test_an_unknown_cpu_is_an_error(run, monkeypatch):
    monkeypatch.setenv("TIEDTOOLS_CPU", "pdp11")
    assert run("vocab", "text").stderr == (
        "tiedtools: TIEDTOOLS_CPU=pdp11: unknown; unset it, or set haswell for identical results on all x86-64 CPUs\n"
    )
