"""Test run manifests and `tiedtools rerun`."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from common import refused

from tiedtools.base.version import __version__
from tiedtools.files import digests
from tiedtools.files import manifest as manifests
from tiedtools.files.manifest import FORM

LINES = "".join(f"the {a} sat on the {b}\n" for a in ("cat", "dog", "owl") for b in ("mat", "box", "log")) * 20
COMMANDS = {
    "w2v": "w2v --tie -size 6 -iter 2 -threads 1 -debug 0 -output v --save-model m.npz -save-vocab w c.txt",
    "deterministic": "w2v -size 6 -iter 2 -threads 2 --deterministic -debug 0 -output v --log-json l -- c.txt",
    "lstm": "lstm --emb 5 --epochs 2 -batch 3 -steps 4 -threads 1 -debug 0 -output v --checkpoint k -test c.txt c.txt",
    "rnnlm": "rnnlm -hidden 4 -max-iter 2 -debug 0 -rnnlm v -train c.txt",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.txt").write_text(LINES)
    return tmp_path


def succeed(run, line, **options):
    result = run(*shlex.split(line), **options)
    assert result.exit_code == 0, result.stderr
    return result


def read(path):
    return json.loads(path.read_text())


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_contents_of_manifests(run, here):
    succeed(run, COMMANDS["w2v"])
    manifest = read(here / "v.run.json")
    assert (manifest["tiedtools"], manifest["directory"]) == (__version__, str(here))
    assert shlex.split(manifest["command"]) == ["tiedtools", *manifest["argv"]]
    assert manifest["argv"] == shlex.split(COMMANDS["w2v"])
    assert (manifest["seed"], manifest["threads"], manifest["epochs"], manifest["stopped"]) == (1, 1, 2, None)
    assert manifest["loss"] > 0 and manifest["seconds"] > 0 and manifest["memory"]["peak_mb"] > 50
    assert manifest["words"] == 10 and manifest["tokens"] == {"train": 1260, "in_vocabulary": 1260}
    text = dict(path="c.txt", bytes=len(LINES), sha256=hashlib.sha256(LINES.encode()).hexdigest())
    assert manifest["inputs"] == [text]
    outputs = {output["option"]: output for output in manifest["outputs"]}
    assert list(outputs) == ["save-vocab", "save-model", "output"]
    for output in outputs.values():
        path = here / output["path"]
        assert (output["bytes"], output["sha256"]) == (path.stat().st_size, sha256(path))
    options = manifest["options"]
    assert (options["size"], options["window"], options["lr"], options["texts"]) == (6, 5, None, ["c.txt"])
    settings = manifest["settings"]
    assert (settings["lr"], settings["write"]) == (0.05, "in") and "size" not in settings
    assert {"python", "numpy", "numba", "platform", "processor"} <= set(manifest["environment"])
    assert sorted(os.listdir(here)) == ["c.txt", "m.npz", "v", "v.run.json", "w"]
    succeed(run, COMMANDS["lstm"])
    manifest = read(here / "v.run.json")
    assert manifest["epochs"] == 2 and min(manifest[f"{text}_ppl"] for text in ("train", "valid", "test")) > 1
    assert [text["path"] for text in manifest["inputs"]] == ["c.txt", "c.txt"]
    assert manifest["settings"]["hidden"] == 5 and manifest["tokens"]["test"] == 1260


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_a_rerun_gives_the_same_bytes_and_changes_no_files(run, here, line):
    succeed(run, line)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    result = succeed(run, "rerun v.run.json")
    assert "same bytes: " in result.output and "different bytes" not in result.output and "recorded" in result.output
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    assert (here / "v.rerun" / "v").read_bytes() == before["v"]
    (here / "v.rerun" / "v").rename(here / "v.rerun" / "w")  # its manifest remains
    run.fails(1, "already exists; choose another --folder", "rerun", "v.run.json")
    succeed(run, f"rerun {here}/v.rerun/v.run.json --folder third")  # a rerun's manifest can be rerun, too
    assert (here / "third" / "v").read_bytes() == before["v"]


def test_reruns_of_runs_slices_and_continued_training(run, here):
    succeed(run, "w2v -size 6 -iter 2 --runs 3 -threads 2 -debug 0 -output r c.txt")
    assert "same bytes: " in succeed(run, "rerun r.run.json").output
    (here / "d.txt").write_text(LINES.replace("owl", "cow"))
    for runs in 1, 2:
        succeed(run, f"w2v --slices c.txt d.txt -size 6 -threads 1 -debug 0 --runs {runs} -output s")
    succeed(run, "w2v d.txt --init-from s/compass.npz -threads 1 -debug 0 -output v")
    result = succeed(run, "rerun s/d.runs.run.json")
    assert result.output.count("same bytes: ") == 3 and "different" not in result.output
    for name in "compass.npz", "c.runs", "d.runs":
        assert (here / "s.rerun" / name).read_bytes() == (here / "s" / name).read_bytes()
    assert "same bytes: " in succeed(run, "rerun v.run.json").output
    (here / "s" / "compass.npz").write_bytes(b"")
    run.fails(1, "continued from s/compass.npz, which has changed", "rerun", "v.run.json", "--folder", "x")
    (here / "s" / "compass.npz").unlink()
    run.fails(1, "continued from s/compass.npz, which is missing; restore", "rerun", "v.run.json", "--folder", "x")


def test_a_rerun_from_another_folder(run, here, monkeypatch):
    succeed(run, COMMANDS["w2v"])
    (here / "v").write_text("precious")
    (here / "other" / "v").mkdir(parents=True)
    monkeypatch.chdir(here / "other")
    run("rerun", "../v.run.json")
    assert (here / "v").read_text() == "precious" and (here / "v.rerun" / "v").exists()


def test_directory(run, here, monkeypatch):
    succeed(run, COMMANDS["w2v"])
    (here / "elsewhere").mkdir()
    (here / "c.txt").rename(here / "elsewhere" / "c.txt")
    assert "c.txt: cannot be read" in run("rerun", "v.run.json").stderr
    succeed(run, "rerun v.run.json --directory elsewhere")
    assert (here / "v.rerun" / "v").exists() and os.getcwd() == str(here)


@pytest.mark.parametrize("log", ["", " --log-json l"])
def test_a_changed_text_is_rejected(run, here, log):
    succeed(run, COMMANDS["w2v"] + log)
    (here / "c.txt").write_text(LINES.replace("owl", "cow"))
    run.fails(1, "tiedtools: c.txt: not the text of the recorded run (SHA", "rerun", "v.run.json")
    assert not (here / "v.rerun").exists()


def test_a_rerun_has_the_precision_of_the_run(run, here):
    succeed(run, COMMANDS["lstm"])
    manifest = read(here / "v.run.json")
    used = manifest["settings"].pop("precision")
    assert manifest["options"].pop("precision") is None and used in ("float32", "bfloat16")
    other = "float32" if used == "bfloat16" else "bfloat16"  # a run that was resumed, or begun on another machine
    for where in "options", "settings":
        manifest[where]["precision"] = other
        (here / "v.run.json").write_text(json.dumps(manifest))
        run("rerun", "v.run.json", "--folder", where)
        assert read(here / where / "v.run.json")["options"]["precision"] == other
        del manifest[where]["precision"]


def test_standard_input_must_be_given_again(run, here):
    succeed(run, "w2v -size 4 -threads 1 -debug 0 -output v", input=LINES.encode())
    succeed(run, "rerun v.run.json", input=LINES.encode())
    run.fails(1, "standard input: not the text of", "rerun", "v.run.json", "--folder", "x", input=LINES[:-5].encode())


def test_different_bytes_of_a_nondeterministic_run_are_no_error(run, here):
    succeed(run, COMMANDS["w2v"].replace("-threads 1", "-threads 2"))
    manifest = read(here / "v.run.json")
    for output in manifest["outputs"]:
        output["sha256"] = "0" * 64
    (here / "v.run.json").write_text(json.dumps(manifest))
    result = succeed(run, "rerun v.run.json")
    assert "different bytes" in result.output and "runs with 2 threads are not reproducible" in result.stderr


@pytest.mark.parametrize("command", [COMMANDS["w2v"], COMMANDS["lstm"].replace("-threads 1", "-threads 2")])
def test_different_bytes_of_a_deterministic_run_are_an_error(run, here, command):
    succeed(run, command)
    manifest = read(here / "v.run.json")
    manifest["outputs"][-1]["sha256"] = "0" * 64
    manifest["tiedtools"], manifest["environment"]["numpy"] = "0.0.1", "1.0"
    (here / "v.run.json").write_text(json.dumps(manifest))
    result = run("rerun", "v.run.json")
    assert result.exit_code == 1 and f"tiedtools was 0.0.1, is {__version__}: results may differ" in result.stderr
    assert "the outputs differ from the recorded ones: " in result.stderr and "numpy was 1.0, is " in result.stderr


def test_manifests_that_cannot_be_rerun(run, here):
    (here / "list").write_text("[]")
    (here / "half").write_text('{"tiedtools": "1"}')
    for path, reason in ("list", "no JSON"), ("half", "no argv"), ("c.txt", "no JSON"), ("gone", "No such file"):
        result = run("rerun", path)
        assert result.exit_code == 1 and result.stderr.count("\n") == 1 and f"{path}: " in result.stderr
        assert reason in result.stderr
    succeed(run, COMMANDS["rnnlm"])
    argv = [*(manifest := read(here / "v.run.json"))["argv"], "--log-json", "c.txt"]
    (here / "w.run.json").write_text(json.dumps(manifest | {"argv": argv}))
    run.fails(1, "--log-json c.txt is in `argv`, but not in `options`", "rerun", "w.run.json")
    succeed(run, COMMANDS["rnnlm"].replace("-max-iter 2", "-max-iter 3"))
    run.fails(1, "the run continued from v, which has changed;", "rerun", "v.run.json")
    manifest = read(here / "v.run.json") | {"argv": ["vocab"]}
    (here / "v.run.json").write_text(json.dumps(manifest))
    assert "not the manifest of a tiedtools lm, lstm, nmt, rnnlm, w2v run" in run("rerun", "v.run.json").stderr


@pytest.mark.parametrize(
    "name, value",
    [("stopped", 5), ("argv", ["w2v", 2]), ("options", {"output": [1]}), ("options", {"checkpoint": 5})]
    + [("outputs", [1]), ("outputs", [{}]), ("inputs", [1]), ("environment", 5), ("origin", 5), ("origin", {})]
    + [("options", {"precision": 1}), ("settings", []), ("settings", {"precision": 1})]
    + [("loss", "low"), ("threads", "all"), ("directory", None)],
)
def test_a_corrupt_manifest_is_a_one_line_error(here, name, value):
    manifest = {**dict.fromkeys(FORM), "tiedtools": "0", "argv": [], "directory": "/", "threads": 1}
    manifest |= {"inputs": [], "outputs": [], "options": {}, "settings": {}, "environment": {}}
    assert manifests.loads(json.dumps(manifest), "m") == manifest
    refused(lambda: manifests.loads(json.dumps({**manifest, name: value}), "m"), "m: not a run manifest, or corrupt")


def test_which_outputs_have_manifests(run, here):
    succeed(run, "w2v -size 4 -debug 0 c.txt")
    succeed(run, "w2v -size 4 -debug 0 -output /dev/null --no-manifest --save-model m.npz c.txt")
    assert sorted(os.listdir(here)) == ["c.txt", "m.npz"]
    succeed(run, "w2v -size 4 -threads 1 -debug 0 --manifest told c.txt")
    assert read(here / "told")["outputs"] == [{"option": "output", "path": "-"}]
    result = succeed(run, "rerun told")
    assert result.stdout.startswith("10 4\n") and "recorded" in result.stderr and "recorded" not in result.stdout
    for options in ["--manifest", "x", "--no-manifest"], ["--manifest", "-"]:
        assert run("w2v", *options, "c.txt").exit_code == 2
    assert "used as both input and output" in run("w2v", "-output", "y", "--manifest", "y.run.json", "c.txt").stderr
    (here / "z.run.json").write_text(LINES)
    run.fails(2, "used as both input and output", "w2v", "-output", "z", "z.run.json")
    assert (here / "z.run.json").read_text() == LINES


@pytest.mark.parametrize("line, beside, options", [
    ("w2v --save-model m c.txt -output v", "v", ["save-model", "output"]),
    ("w2v --save-model m c.txt -output -", "m", ["save-model", "output"]),
    ("rnnlm -hidden 4 -max-iter 2 -rnnlm m -train c.txt", "m", ["rnnlm"]),
    ("rnnlm -hidden 4 -max-iter 2 -rnnlm m -train c.txt -output v", "v", ["output", "rnnlm"]),
    ("rnnlm -hidden 4 -max-iter 2 -rnnlm r -train c.txt --save-model m", "m", ["save-model", "rnnlm"]),
])  # fmt: skip
def test_a_run_has_one_manifest_next_to_its_vectors_or_model(run, here, line, beside, options):
    for name in re.findall(r"(?:--save-model|-rnnlm) (\w)", line):
        (here / f"{name}.run.json").write_text("that of an earlier run")
    succeed(run, f"{line} -debug 0")
    assert [path.name for path in here.glob("*.run.json")] == [f"{beside}.run.json"]
    assert [output["option"] for output in read(here / f"{beside}.run.json")["outputs"]] == options
    succeed(run, f"rerun {beside}.run.json")


def test_a_failed_run_leaves_the_old_vectors_and_manifest(run, here):
    succeed(run, COMMANDS["w2v"])
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    assert run(*shlex.split(COMMANDS["w2v"]), "-min-count", 10**6).exit_code == 1
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_manifests_of_interrupted_runs_and_of_odd_names(run, here):
    code = f"""
import signal, threading
from tiedtools.base import interrupts
from tiedtools.cli.report import Report
from tiedtools.cli import cli
interrupts.install()
Report.epoch = lambda self, **_: signal.raise_signal(signal.SIGINT)
cli({shlex.split(COMMANDS["w2v"].replace("-iter 2", "-iter 9999"))!r}, prog_name="tiedtools")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 130, result.stderr
    assert read(here / "v.run.json")["stopped"] == "interrupted"
    name = os.fsdecode(b"v\xe9\xc3\xa9")
    succeed(run, shlex.join(["w2v", "-size", "4", "-threads", "1", "-debug", "0", "-output", name, "c.txt"]))
    data = (here / f"{name}.run.json").read_bytes()
    assert b"\xe9" not in data.replace("é".encode(), b"") and json.loads(data.decode())["outputs"][0]["path"] == name
    succeed(run, shlex.join(["rerun", f"{name}.run.json", "--folder", "f"]))


@pytest.mark.parametrize("n", [0, 1, digests.BLOCK, 3 * digests.BLOCK + 5])
def test_digests(tmp_path, n):
    data, path = bytes(range(256)) * (n // 256 + 1), tmp_path / "f"
    path.write_bytes(data[:n])
    assert digests.of_file(path) == dict(bytes=n, sha256=hashlib.sha256(data[:n]).hexdigest())
    with open(path, "rb") as file, digests.Recorder() as seen, digests.watched("f", file) as source:
        assert b"".join(iter(lambda: source.read(10**5), b"")) == data[:n]
    assert seen.found == [dict(path="f", **digests.of_file(path))] and digests.recorder.get() is None
