"""Test the files that runs leave: symlinks, reserved names, manifests, and signals before and after training."""

import errno
import json
import os
import signal
import tempfile
from types import SimpleNamespace

import pytest
import toylm

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.cli.report import Report
from tiedtools.models.lm.trainer import LstmTrainer
from tiedtools.runs import files as runfiles
from tiedtools.runs.files import RunFiles, is_finished
from tiedtools.runs.progress import Bar
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
    finished = (tmp_path / "log").read_bytes()
    with pytest.raises(ZeroDivisionError), RunFiles({}, log_path="log") as files:  # a run that fails
        files.begin_log()
        1 / 0
    assert (tmp_path / "log").read_bytes() == finished
    (tmp_path / "log.finished").mkdir()  # the backup cannot be written
    with RunFiles({}, log_path="log") as files:
        files.begin_log()
        files.finish(None, {})
    assert not files.backups and (tmp_path / "log.finished").is_dir()
    os.symlink("nothing", "link")
    with pytest.raises(ZeroDivisionError), RunFiles({}, log_path="link"):
        1 / 0
    assert os.path.islink("link") and not os.path.exists("link")


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
    target = tmp_path / "v"
    if existed:
        target.write_text("old")
        outputs = [{"option": "rnnlm", "sha256": runfiles.digests.of_file("v")["sha256"]}]
        about = {"stopped": "interrupted", "outputs": outputs}
        monkeypatch.setattr(runfiles.manifest, "loads", lambda *_: about)
        (tmp_path / "v.run.json").write_text("")
    with RunFiles({"model": str(target)}) as files:
        files.early("model", lambda file: file.write(b"new"))
        assert target.read_bytes() == b"new"
        files.finish(Diverged(""), {})
    assert target.exists() == existed and not files.backups


def test_an_output_counts_as_written_if_a_signal_arrives_meanwhile(tmp_path, no_signals):
    """Only outputs that count as written get a manifest."""
    with pytest.raises(KeyboardInterrupt, match="after training"), RunFiles({"a": str(tmp_path / "a")}) as files:
        files.write("a", lambda file: interrupts.handle(signal.SIGINT, None))
        assert files.done == {"a": str(tmp_path / "a")}


def test_outputs_of_a_diverged_run_are_reported_with_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RunFiles({"output": "a", "words": "b"}) as files:
        files.record.sources = SimpleNamespace(found=[])
        files.finish(Diverged("training diverged"), dict.fromkeys(files.outputs, lambda file: file.write(b"a")))
    assert str(files.explain(files.stopped, "")) == "training diverged; wrote a.diverged, b.diverged"
    with RunFiles({"save_model": "m"}) as files:
        files.record.sources, files.record.figures = SimpleNamespace(found=[]), {"threads": 1}
        files.finish(KeyboardInterrupt(), {"save_model": lambda file: file.write(b"1")})
        assert not is_finished("m")  # even if the process is killed here


@pytest.mark.parametrize("owner, name", [(Bar, "close"), (LstmTrainer, "write_vectors"), (scoring, "evaluate")])
def test_a_signal_after_training_reports_what_was_written(train, tmp_path, monkeypatch, owner, name):
    original = getattr(owner, name)

    def signalled(*args, **options):
        if name != "evaluate" or args[2] == 1:  # the test text
            interrupts.handle(signal.SIGTERM, None)
        return original(*args, **options)

    monkeypatch.setattr(owner, name, signalled)
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


# Outputs alone


@pytest.mark.parametrize("signals", [1, 3])
def test_a_signal_waits_until_files_are_written(tmp_path, no_signals, signals):
    def write(file):
        file.write(b"first")
        for _ in range(signals):
            interrupts.handle(signal.SIGTERM, None)
        file.write(b", second")

    with pytest.raises(KeyboardInterrupt), RunFiles({name: str(tmp_path / name) for name in "ab"}) as files:
        files.write("a", write)
        files.write("b", lambda file: file.write(b"too"))
    assert (tmp_path / "a").read_bytes() == b"first, second" and (tmp_path / "b").read_bytes() == b"too"


def test_repeated_signals_abort_the_writing(tmp_path, no_signals):
    def write(file):
        for _ in range(interrupts.PATIENCE + 1):
            interrupts.handle(signal.SIGTERM, None)

    with pytest.raises(KeyboardInterrupt), RunFiles({"a": str(tmp_path / "a")}) as files:
        files.write("a", write)
        pytest.fail("the writing was not aborted")
    assert os.listdir(tmp_path) == []


def test_failed_outputs_and_broken_pipes_of_interrupted_runs(messages, tmp_path):
    def gone(file):
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(KeyboardInterrupt), RunFiles({"a": "-", "b": str(tmp_path / "b")}) as files:
        files.write("a", gone)
        raise KeyboardInterrupt
    assert messages() == "" and not files.done
    # A run is interrupted, and its vectors do not fit on the disk.
    with pytest.raises(KeyboardInterrupt), RunFiles({name: str(tmp_path / name) for name in "ab"}) as files:
        files.write("a", fail)
        files.write("b", lambda file: file.write(b"whole"))
        raise KeyboardInterrupt
    assert messages() == told(tmp_path / "a")
    assert os.listdir(tmp_path) == ["b"] and list(files.done) == ["b"]


def test_all_failed_outputs_are_reported_and_a_signal_is_raised(tmp_path, messages, no_signals):
    paths = {name: str(tmp_path / name) for name in "abc"}
    with pytest.raises(TiedtoolsError, match="/a: cannot be written"), RunFiles(paths) as files:
        for name in "ab":
            files.write(name, fail)
    assert messages() == told(paths["b"])
    with pytest.raises(KeyboardInterrupt), RunFiles(paths) as files:
        files.write("a", fail)
        files.write("b", lambda file: interrupts.handle(signal.SIGTERM, None))
    assert messages() == told(paths["a"])


told = "tiedtools: {}: cannot be written: No space left; free some space, or write elsewhere\n".format


def fail(file):
    raise OSError(28, "No space left")


def test_an_output_whose_disk_is_full_is_kept_in_another_folder(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    path = tmp_path / "vectors.txt"

    def write(file):
        if not list(home.glob("*/.tiedtools*")):
            raise OSError(errno.ENOSPC, "No space left on device")
        file.write(b"all of it")

    with pytest.raises(TiedtoolsError, match="No space left on device; free some space.*; saved in ") as error:
        with RunFiles({"save_vocab": str(path)}) as files:
            files.write("save_vocab", write)
    (spare,) = home.glob("*/vectors.txt")
    assert spare.read_bytes() == b"all of it" and files.done == {"save_vocab": str(spare)} and not path.exists()
    assert str(error.value).endswith(f"; saved in {spare}") and not list(tmp_path.glob(".tiedtools*"))

    old = dict.fromkeys(("m.npy", "m.words", "m.npy.run.json"), b"old")
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TiedtoolsError, match="No such file.*; saved in "):
        with RunFiles(dict(output=str(tmp_path / "m.npy"), words=str(tmp_path / "m.words"))) as files:
            files.record.sources = SimpleNamespace(found=[])
            for partial in tmp_path.glob(".tiedtools*"):
                partial.unlink()
            files.finish(None, dict(output=lambda file: file.write(b"1"), words=lambda file: file.write(b"a")))
    assert {name: (tmp_path / name).read_bytes() for name in old} == old
    assert sorted(path.name for path in home.glob("m-*/*")) == sorted(old)

    monkeypatch.setenv("HOME", str(path))  # does not exist
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    with pytest.raises(TiedtoolsError, match="write elsewhere$"), RunFiles({"save_vocab": str(path)}) as files:
        files.write("save_vocab", fail)
    assert len(os.listdir(home)) == 2
