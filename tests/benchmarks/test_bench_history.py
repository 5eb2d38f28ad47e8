"""Test the history of speeds and the comparison of two versions."""

import json

from benchmarks import history


def test_versions_are_recorded_and_compared(bench, tmp_path, monkeypatch):
    assert "tiedtools cbow, 2 threads" in history.read()["0.1.0"]["rates"]
    monkeypatch.setattr(history, "FILE", tmp_path / "history.json")
    history.FILE.write_text("[]")
    for version, rate in ("1", 4), ("2", 99), ("2", 8):
        row = dict(name="tiedtools 6/6", threads=1, tokens_per_s=rate)
        (tmp_path / "result").write_text(json.dumps({"processor": "EPYC", "precision": "float32", "rows": [row]}))
        assert bench("history", "--add", version, tmp_path / "result").exit_code == 0
    assert bench("history", "1", "2").stdout.splitlines()[1].split()[-5:] == ["1", "thread", "4", "8", "2.00"]
    assert bench("history", "1", "3").exit_code == 1
