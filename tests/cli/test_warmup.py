"""Test `tiedtools warmup`."""

import subprocess
import sys


def warmup(*commands):
    done = subprocess.run([sys.executable, "-m", "tiedtools", "warmup", *commands], capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


def test_nothing_is_compiled_after_warmup(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, lines = warmup("w2v --tie-linear", "rnnlm -direct 1")
    assert status == 0 and any(line.startswith("w2v: compiling kernel ") for line in lines)
    assert [line.rsplit(" after", 1)[0] for line in lines if "compiling" not in line] == [
        "w2v --tie-linear: ready",
        "rnnlm -direct 1: ready",
    ]
    before = set(tmp_path.rglob("*.nbc"))
    (tmp_path / "text").write_text("a b c\n" * 50)
    for line in ("w2v --tie-linear -cbow 0", "w2v --tie-linear", "rnnlm -direct 1 -max-iter 2"):
        command = [sys.executable, "-m", "tiedtools", *line.split(), "text"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "compil" not in done.stderr
    assert set(tmp_path.rglob("*.nbc")) == before and before


def test_errors():
    assert warmup("lstm --nonsense") == (
        1,
        ["tiedtools: lstm: No such option '--nonsense'. (see tiedtools lstm --help)"],
    )
    status, (line,) = warmup("nn")
    assert status == 2 and "'nn' is not one of the commands w2v, lm, lstm, rnnlm, nmt" in line
