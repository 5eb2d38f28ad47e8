"""Test the files that runs leave: symlinks, reserved names, manifests, and signals before and after training."""

import json
import os
import signal

import pytest
import toylm

from tiedtools.base import interrupts
from tiedtools.cli.report import Report
from tiedtools.files.output import Outputs
from tiedtools.models.lm.trainer import LstmTrainer
from tiedtools.runs import files
from tiedtools.runs.files import Ending
from tiedtools.training import scoring

TEXT = "".join(f"the {a} sat on the {b}\n" for a in ("cat", "dog", "owl") for b in ("mat", "box", "log")) * 40
W2V = "w2v text -threads 1 -size 6 -min-count 1 -output v"
LSTM = "lstm text --threads 1 --batch 4 --steps 5 --test text --epochs 1 -output v"
RNNLM = "rnnlm text -hidden 7 -class 3 -min-improvement 0 -rnnlm v -max-iter"


@pytest.fixture
def train(run, tmp_path, monkeypatch, no_signals):
    """A function that runs a command in a folder with a text."""
    (tmp_path / "text").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LstmTrainer, "Model", toylm.ToyLM)

    def train(command, *more):
        interrupts.received.clear()
        return run(*command.split(), *more)

    return train


@pytest.fixture
def interrupted(monkeypatch):
    """Send Ctrl-C after the first epoch of each w2v run."""
    before = Report.epoch

    def told(self, **figures):
        before(self, **figures)
        interrupts.handle(signal.SIGINT, None)

    monkeypatch.setattr(Report, "epoch", told)


def recorded(path):
    return json.loads(path.read_text())


def test_the_manifest_of_a_symlink_is_next_to_its_target(train, tmp_path, interrupted, monkeypatch):
    """The second of two interrupted runs must not take the output of the first for that of a finished run."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "v").symlink_to("elsewhere/v")
    with monkeypatch.context() as patch:
        patch.setattr(Report, "epoch", lambda *_, **__: None)
        assert train(W2V).exit_code == 0
    finished = (elsewhere / "v").read_bytes()
    for seed in "23":
        assert train(W2V, "-seed", seed).exit_code == 130
        assert (elsewhere / "v.finished").read_bytes() == finished != (tmp_path / "v").read_bytes()
    names = ["v", "v.finished", "v.finished.run.json", "v.run.json"]
    assert sorted(os.listdir(elsewhere)) == names and sorted(os.listdir(tmp_path)) == ["elsewhere", "text", "v"]
    assert [recorded(elsewhere / name)["stopped"] for name in names[2:]] == [None, "interrupted"]


@pytest.mark.parametrize(
    "vectors", [["one/v", "one/v", "one/v"], ["v", "w", "x"]], ids=["in another folder", "named after other vectors"]
)
def test_the_manifest_of_a_model_is_found(train, tmp_path, interrupted, monkeypatch, vectors):
    """An interrupted run must not take the model of another one for that of a finished run."""
    (tmp_path / "one").mkdir()
    command, model = W2V.replace("-output v", "--save-model m"), tmp_path / "m"
    with monkeypatch.context() as patch:
        patch.setattr(Report, "epoch", lambda *_, **__: None)
        assert train(f"{command} -output {vectors[0]}").exit_code == 0
    finished = model.read_bytes()
    for seed, name in zip("234", vectors):
        assert train(f"{command} -seed {seed} -output {name}").exit_code == 130
        assert (tmp_path / "m.finished").read_bytes() == finished != model.read_bytes()


@pytest.mark.parametrize("command", [W2V, LSTM, f"{RNNLM} 2"])
def test_backup_names_are_checked_before_training(train, tmp_path, command):
    (tmp_path / "v.finished").mkdir()
    result = train(command)
    assert result.exit_code == 1 and "v.finished: is a directory" in result.stderr
    (tmp_path / "v.finished").rmdir()
    for option in "--save-model", "--checkpoint", "--log-json", "--save-vocab", "--manifest":
        result = train(command, option, "v.diverged")
        assert result.exit_code == 2 and "v.diverged: is reserved for the backup of v" in result.stderr
    (tmp_path / "v.finished").write_text(TEXT)
    assert train(command, "v.finished").exit_code == 2 and (tmp_path / "v.finished").read_text() == TEXT
    assert not (tmp_path / "v").exists()


def test_a_failed_backup_of_the_log_does_not_fail_the_run(train, tmp_path):
    assert train(W2V, "--log-json", "log").exit_code == 0
    ending = Ending()
    (tmp_path / "log.finished").mkdir()  # the backup cannot be written
    ending.keep_log("log")
    ending.settle([])
    assert not ending.kept and (tmp_path / "log.finished").is_dir()


def test_a_failed_run_writes_no_manifest(train, tmp_path):
    (tmp_path / "text").write_text("a\nb\n" * 9)
    result = train(W2V, "--manifest", "m", "--save-vocab", "vocabulary")
    assert result.exit_code == 1 and "no word has a neighbor to predict it from" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["text", "vocabulary"]


@pytest.mark.parametrize("command", [W2V, f"{RNNLM} 3"])
def test_a_run_without_a_manifest_removes_the_old_one(train, tmp_path, command):
    """The old manifest is that of an earlier run or of an epoch."""
    assert train(command).exit_code == 0 and (tmp_path / "v.run.json").exists()
    if "rnnlm" in command:
        (tmp_path / "v").unlink()
    assert train(command, "--no-manifest", "-seed", "2").exit_code == 0
    assert not (tmp_path / "v.run.json").exists()


def test_a_finished_model_is_kept_if_the_next_one_cannot_be_written(train, tmp_path, monkeypatch):
    from tiedtools.models.rnnlm.program import write

    assert train(f"{RNNLM} 1").exit_code == 0
    finished, written = (tmp_path / "v").read_bytes(), []

    def failing(*arguments):
        written.append(write(*arguments))
        if len(written) >= 3:  # the last one, also in another folder
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tiedtools.models.rnnlm.program.write", failing)
    assert train(f"{RNNLM} 4").exit_code == 1
    assert (tmp_path / "v.finished").read_bytes() == finished
    assert recorded(tmp_path / "v.run.json")["stopped"] == "interrupted"


@pytest.mark.parametrize("existed", [False, True])
def test_a_diverged_run_does_not_remove_an_unfinished_output(tmp_path, existed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target, part = tmp_path / "v", tmp_path / "part"
    if existed:
        target.write_text("old")
        about = {
            "stopped": "interrupted",
            "outputs": [{"option": "rnnlm", "sha256": files.digests.of_file("v")["sha256"]}],
        }
        monkeypatch.setattr(files.manifest, "loads", lambda *_: about)
        (tmp_path / "v.run.json").write_text("")
    part.write_text("new")
    ending = Ending()
    ending.put_early(str(part), str(target))
    ending.stopped = files.Diverged("")
    ending.settle([])
    assert target.exists() == existed and not ending.kept


def test_an_output_counts_as_written_if_a_signal_arrives_meanwhile(tmp_path, no_signals):
    """Only outputs that count as written get a manifest."""
    with pytest.raises(KeyboardInterrupt), Outputs({"a": str(tmp_path / "a")}, Ending().put) as outputs:
        outputs.write("a", lambda file: interrupts.handle(signal.SIGINT, None))
        assert outputs.done == {"a": str(tmp_path / "a")}


def test_outputs_of_a_diverged_run_are_reported_with_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ending = Ending()
    ending.stopped = files.Diverged("training diverged")
    with Outputs({"a": "a"}, ending.put) as outputs:
        outputs.write("a", lambda file: file.write(b"a"))
    assert str(ending.told(ending.stopped, "", outputs.done.values())) == "training diverged; wrote a.diverged"


@pytest.mark.parametrize("when", ["write", "test"])
def test_a_signal_after_training_reports_what_was_written(train, tmp_path, monkeypatch, when):
    if when == "write":
        write = LstmTrainer.write
        monkeypatch.setattr(
            LstmTrainer, "write", lambda *of: write(*of) or interrupts.handle(signal.SIGTERM, None)
        )  # fmt: skip
    else:
        evaluate = scoring.evaluate

        def stopped(model, ids, batch, *rest, **options):
            return evaluate(model, ids, batch, *rest) if batch > 1 else interrupts.handle(signal.SIGTERM, None)

        monkeypatch.setattr(scoring, "evaluate", stopped)
    result = train(LSTM)
    assert result.exit_code == 143 and "test ppl" not in result.stderr
    assert result.stderr.endswith("tiedtools: interrupted after training; wrote v\n")
    manifest = recorded(tmp_path / "v.run.json")
    assert manifest["stopped"] is None and manifest["epochs"] == 1 and manifest["outputs"]


def test_a_signal_before_training(train, tmp_path, monkeypatch):
    (tmp_path / "v").write_text("old")
    monkeypatch.setattr(LstmTrainer, "read", lambda self: interrupts.handle(signal.SIGINT, None))
    result = train(LSTM)
    assert result.exit_code == 130 and (tmp_path / "v").read_text() == "old"
    assert result.stderr.endswith("tiedtools: interrupted before training; wrote nothing\n")
