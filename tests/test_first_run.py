"""Test that a first run, which compiles kernels, and later runs, which load them, write the same bytes."""

import os
import platform
import random
import subprocess
import sys

import pytest

TRAIN = "-size 20 --epochs 1 -threads 1 --seed 1"
COMMANDS = {
    "w2v": f"w2v {TRAIN} -min-count 1 --tie-linear",
    "rnnlm": "rnnlm -hidden 20 -class 5 -bptt 3 -bptt-block 5 -max-iter 1 -threads 1 --doc-dim 5",
    "lstm": f"lstm {TRAIN} -hidden 24 --batch 5 --steps 7 --tie-linear",
    "nmt": f"nmt {TRAIN} --hidden 24 --source text --target",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_first_and_later_runs_write_the_same_bytes(name, tmp_path):
    rng = random.Random(1)
    lines = (" ".join(f"w{int(rng.paretovariate(0.7)) % 50}" for _ in range(8)) for _ in range(60))
    (tmp_path / "text").write_text("\n".join(lines))
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)
    if platform.machine() in ("x86_64", "AMD64"):  # kernels for this CPU differed when they were compiled twice
        env |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}

    def run(precision):
        options = [] if name == "rnnlm" else ["--precision", precision]
        command = [sys.executable, "-m", "tiedtools", *COMMANDS[name].split(), "text", *options]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True, text=True)
        return done.stdout, "compil" in done.stderr

    precisions = ["float32"] if name == "rnnlm" else ["float32", "bfloat16"]
    first = [run(precision) for precision in precisions]
    assert first[0][1] and len(first[0][0]) > 1000
    assert [run(precision) for precision in precisions] == [(vectors, False) for vectors, _ in first]
