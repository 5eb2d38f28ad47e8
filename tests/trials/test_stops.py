"""Run a few crash trials, and test that they detect failures. bin/stoptest runs all trials."""

import pytest
import stops

FEW = ["Ctrl-C", "SIGKILL", "output folder removed"]


def test_a_few_trials(capsys):
    trials = [part for kind in FEW for part in ("--trial", str(list(stops.KINDS).index(kind)))]
    assert stops.main(["--seed", "3", *trials]) == 0, capsys.readouterr().err
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == FEW
    assert all(line.endswith(" 0 failed") for line in lines)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["vectors", "model", "rnnlm"])
def test_an_incomplete_file_is_detected(folder, name):
    (folder / name).write_bytes(stops.OLD)
    stops.whole(folder, {name: b"new"}, killed=False)
    (folder / name).write_bytes(b"3 2\na 1 2\nb 1")
    with pytest.raises(Exception, match=name):
        stops.whole(folder, {name: b"new"}, killed=False)


def test_a_partial_file_is_detected(folder):
    (folder / ".tiedtools-x.part").touch()
    stops.whole(folder, {}, killed=True)
    with pytest.raises(AssertionError, match="is left"):
        stops.whole(folder, {}, killed=False)


def test_an_incomplete_checkpoint_is_detected(folder):
    (folder.parent / "run").mkdir()
    (folder.parent / "run/checkpoint").write_bytes(b"PK")
    with pytest.raises(Exception, match="corrupt"):
        stops.whole(folder, {}, killed=True)


@pytest.mark.parametrize(
    "told, status", [("Traceback ...\ntiedtools: oh", 1), ("Exception ignored in ...", 0), ("epoch 1", 1)]
)
def test_a_crash_is_detected(told, status):
    stops.no_crash("epoch 1\ntiedtools: interrupted\n", 130)
    with pytest.raises(AssertionError):
        stops.no_crash(told, status)


def test_a_failure_names_its_trial(monkeypatch, capsys, tmp_path):
    def fails(self, number):
        raise AssertionError("wrong")

    monkeypatch.setattr(stops.Trials, "run", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # failed trials are kept there
    assert stops.main(["--trial", "1", "--seed", "7"]) == 1
    told = capsys.readouterr()
    assert "trial 1, w2v, SIGTERM: AssertionError: wrong\n  again: bin/stoptest --seed 7 --trial 1; " in told.err
    assert told.out.endswith("1 failed\n")


def test_the_loss_of_a_finished_output_is_detected():
    old, new, part = stops.OLD, b"new", b"part"
    for before, after in [
        ({"model": old}, {"model": old}),
        ({"model": old}, {"model": part, "model.finished": old}),
        ({"model": part, "model.finished": old}, {"model.finished": old}),
        ({"model": old}, {"model": new}),  # finished, and another output failed
        ({"model": part}, {}),
    ]:
        stops.kept(before, after, {"model": new})
    for after in {}, {"model": part}, {"model": part, "model.finished": part}:
        with pytest.raises(AssertionError, match="model is lost"):
            stops.kept({"model": old}, after, {"model": new})
