"""Test available cores, TIEDTOOLS_CPU, and messages."""

import json
import math
import os
import platform
import subprocess
import sys

import pytest

from tiedtools.base import processor
from tiedtools.base.messages import finite, in_digits, perplexity, to_json

PROBE = """
import os
from tiedtools.kernels.base import tiles
from numpy._core._multiarray_umath import __cpu_features__ as numpy_features
from numba import config
print(tiles.VECTOR, tiles.COLS, os.environ.get("NUMBA_CPU_NAME"), os.environ.get("OPENBLAS_CORETYPE"), int(config.OPT))
print(any(on for name, on in numpy_features.items() if name in ("AVX512_SKX", "AVX512_ICL", "AVX512_SPR", "X86_V4")))
"""
LIBRARIES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"


def python(code, **settings):
    environment = {name: value for name, value in os.environ.items() if name not in LIBRARIES}
    return subprocess.run([sys.executable, "-c", code], env=environment | settings, capture_output=True, text=True)


def probe(**settings):
    result = python(PROBE, **settings)
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
    assert python(code, TIEDTOOLS_CPU="").returncode == 0


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64 CPU")
def test_choosing_a_cpu_after_numpy_is_imported_is_an_error():
    problem = python("import numpy, tiedtools.kernels", TIEDTOOLS_CPU="haswell").stderr
    assert "TiedtoolsError: TIEDTOOLS_CPU=haswell: already imported: numpy; call" in problem


def test_without_compilation_or_threads_a_command_says_so_in_one_line():
    for command, setting in ("w2v", "DISABLE_JIT=1"), ("lstm", "DISABLE_JIT=1"), ("rnnlm", "NUM_THREADS=0"):
        name, value = f"NUMBA_{setting}".split("=")
        line = [sys.executable, "-m", "tiedtools", command]
        result = subprocess.run(line, env=os.environ | {name: value}, input="a b\n" * 9, capture_output=True, text=True)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, command
        assert result.stderr.startswith(f"tiedtools: {name}: "), command


def test_an_unknown_cpu_is_an_error(run, monkeypatch):
    monkeypatch.setenv("TIEDTOOLS_CPU", "pdp11")
    problem = "unknown; unset it, or set haswell for identical results on all x86-64 CPUs"
    assert run("vocab", "text").stderr == f"tiedtools: TIEDTOOLS_CPU=pdp11: {problem}\n"


V1 = "33 32 0:30 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = "23 1 8:1 / / rw - ext4 /dev/sda rw\n35 32 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
HYBRID = V1.format(root="/") + V2.format(root="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
ELSEWHERE = V2.format(root="/").replace("/sys/fs/cgroup", "/run/groups")
G, U = "sys/fs/cgroup", "sys/fs/cgroup/cpu,cpuacct"


def v1(folder, quota, period="100000"):
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


# Name -> /proc/self/cgroup, /proc/self/mountinfo, other files, quota.
CASES = {
    "v2": ("0::/a\n", V2.format(root="/"), {f"{G}/a/cpu.max": "150000 100000\n"}, 1.5),
    "v2, in a namespace": ("0::/\n", V2.format(root="/"), {f"{G}/cpu.max": "100000 100000\n"}, 1),
    "v2, another period": ("0::/\n", V2.format(root="/"), {f"{G}/cpu.max": "20000 80000\n"}, 0.25),
    "v2, none": ("0::/a\n", V2.format(root="/"), {f"{G}/a/cpu.max": "max 100000\n"}, math.inf),
    "v2, the parent's": (
        "0::/a/b/c\n",
        V2.format(root="/"),
        {f"{G}/a/b/c/cpu.max": "max 100000", f"{G}/a/b/cpu.max": "400000 100000", f"{G}/a/cpu.max": "300000 100000"},
        3,
    ),
    "v2, mounted from a group": (
        "0::/docker/f00/a\n", V2.format(root="/docker/f00"), {f"{G}/a/cpu.max": "200000 100000"}, 2,
    ),
    "v2, outside the mount": ("0::/other\n", V2.format(root="/docker"), {f"{G}/cpu.max": "200000 100000"}, 2),
    "v2, above the namespace": ("0::/../x\n", V2.format(root="/"), {f"{G}/cpu.max": "200000 100000"}, 2),
    "v2, mounted elsewhere": ("0::/\n", ELSEWHERE, {"run/groups/cpu.max": "200000 100000"}, 2),
    "v1": ("4:cpu,cpuacct:/a\n3:cpuset:/b\n", V1.format(root="/"), v1(f"{U}/a", 250000), 2.5),
    "v1, none": ("4:cpu,cpuacct:/\n", V1.format(root="/"), v1(U, -1), math.inf),
    "v1, the parent's": ("4:cpu,cpuacct:/a/b\n", V1.format(root="/"), v1(f"{U}/a/b", -1) | v1(U, 100000), 1),
    "v1, mounted from a group": ("4:cpu,cpuacct:/docker/f00\n", V1.format(root="/docker/f00"), v1(U, 100000), 1),
    "v1, no controller `cpu`": ("4:cpuset:/a\n", V1.format(root="/"), v1(f"{U}/a", 250000), math.inf),
    "hybrid": ("4:cpu,cpuacct:/a\n0::/a\n", HYBRID, v1(f"{U}/a", 100000), 1),
    "hybrid, both": (
        "4:cpu,cpuacct:/a\n0::/a\n", HYBRID, v1(f"{U}/a", 300000) | {f"{G}/unified/a/cpu.max": "200000 100000"}, 2,
    ),
    "colon in the path": ("0::/a:b\n", V2.format(root="/"), {f"{G}/a:b/cpu.max": "100000 100000"}, 1),
    "no files": (None, None, {}, math.inf),
    "no mount": ("0::/a\n", None, {f"{G}/a/cpu.max": "100000 100000"}, math.inf),
    "not a list of groups": ("\n0\n0:\nx::y", "\n-\n1 2 3 - cgroup2\n", {}, math.inf),
    "bytes": ("\udcff0::\udcff", V2.format(root="/"), {f"{G}/cpu.max": "\udcff"}, math.inf),
    **{
        f"v2, malformed: {text!r}": ("0::/\n", V2.format(root="/"), {f"{G}/cpu.max": text}, math.inf)
        for text in ("", "100000", "1 2 3", "x 100000", "100000 0", "0 100000", "-5 100000", "9" * 400 + " 1", "1.5 1")
    },
    "v1, no period": ("4:cpu:/\n", V1.format(root="/"), {f"{U}/cpu.cfs_quota_us": "100000"}, math.inf),
    "v1, malformed": ("4:cpu:/\n", V1.format(root="/"), v1(U, "many"), math.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cpu_quota(tmp_path, name):
    cgroup, mountinfo, files, quota = CASES[name]
    proc = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo and OTHERS + mountinfo}
    for path, text in {**proc, **files}.items():
        if text is not None:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert processor.cpu_quota(tmp_path) == quota


@pytest.mark.parametrize("affinity, quota, available", [
    (64, math.inf, 64), (64, 1, 1), (64, 0.25, 1), (64, 1.5, 2), (2, 8, 2), (5000, math.inf, 1024), (5000, 3000, 1024),
])  # fmt: skip
def test_available_cores(monkeypatch, affinity, quota, available):
    """Also the default of `threads`, and the thread count of OpenBLAS if a quota limits it and the user does not."""
    from tiedtools.models.word2vec.config import configure

    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(affinity), raising=False)
    monkeypatch.setattr(processor, "cpu_quota", lambda: quota)
    assert processor.available_cores() == configure()[0].threads == available
    environment = {}
    monkeypatch.setattr(os, "environ", environment)
    processor.limit_threads()
    assert environment == ({"OPENBLAS_NUM_THREADS": str(available)} if available < affinity else {})
    for name in processor.BLAS_THREADS:
        environment.clear()
        environment[name] = "7"
        processor.limit_threads()
        assert environment == {name: "7"}


def test_the_log_names_a_quota(monkeypatch, run):
    monkeypatch.setattr("tiedtools.runs.trainer.affine_cores", lambda: 64)
    for quota, told in (1.5, "; 1 thread (CPU quota: 1.5 cores), seed 1\n"), (math.inf, "; 1 thread, seed 1\n"):
        monkeypatch.setattr("tiedtools.runs.trainer.cpu_quota", lambda quota=quota: quota)
        result = run("w2v", "-min-count", 1, "-size", 4, "-threads", 1, "-output", os.devnull, input=b"a b c\n" * 9)
        assert told in result.stderr


def test_messages():
    assert perplexity(math.log(50)) == pytest.approx(50) and perplexity(3 * math.log(50), 3) == pytest.approx(50)
    assert perplexity(1e4) == math.inf and math.isnan(perplexity(math.nan)) and perplexity(5.0, 0) is None
    assert [in_digits(figure) for figure in (None, math.inf, 12.345, 1234567.0)] == [
        "undefined", "infinite", "12.35", "1.23e+06"
    ]  # fmt: skip
    assert in_digits(math.nan, "g") == "undefined" and in_digits(12.345, ".1f") == "12.3"
    assert in_digits(2.5, "g") == "2.5"
    assert finite(dict(a=math.inf, b=-math.inf, c=1.5, d=None, e=2)) == dict(a=None, b=None, c=1.5, d=None, e=2)
    assert json.loads(to_json({"a": [-math.inf, (math.nan, 1.0)]})) == {"a": [None, [None, 1.0]]}
