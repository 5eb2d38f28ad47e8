"""Test the commands `w2v` and `vocab`."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tiedtools.vectors.vectors import Vectors

LINES = (
    "".join(f"the {a} sat on the {b} \n" for a in ("cat", "dog", "caf\u00e9") for b in ("mat", "a\u00a0b", "log")) * 40
)


def test_a_text_alone_gives_vectors_or_classes_on_stdout(run, corpus):
    result = run("w2v", "--tie-signs", "-size", 300, corpus)
    assert result.exit_code == 0
    lines = result.stdout_bytes.split(b"\n")
    assert lines[0] == b"10 300" and lines[1].startswith(b"</s> ") and lines[-1] == b""
    assert all(len(line.split(b" ")) == 301 for line in lines[1:-1])
    assert "model: CBOW, tied, fixed signs" in result.stderr and "parameters" in result.stderr
    lines = run("w2v", "-size", 4, "-classes", 3, corpus).stdout_bytes.decode().splitlines()
    assert len(lines) == 10 and {line.rsplit(" ", 1)[1] for line in lines} <= {"0", "1", "2"}


def test_a_word2vec_command_line_and_its_progress(run, corpus, tmp_path, monkeypatch):
    out, saved = tmp_path / "vec.bin", tmp_path / "vocab"
    result = run(
        "w2v", *"-size 20 -window 8 -sample 1e-4 -hs 0 -negative 25 -threads 2 -iter 2 -min-count 1".split(),
        *"-alpha 0.05 -debug 0 -binary 1 -cbow 1 -classes 0".split(),
        "-train", corpus, "-output", out, "-save-vocab", saved,
    )  # fmt: skip
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, b"", "")
    vectors = Vectors.read(out)
    assert vectors.words[0] == "</s>" and "a\u00a0b" in vectors and vectors.matrix.shape == (10, 20)
    assert saved.read_text().startswith("</s> 360\nthe 720\n")
    result = run("w2v", "-read-vocab", saved, "--train", corpus, "--size", 5, "--output", out)
    assert result.exit_code == 0 and Vectors.read(out).words == vectors.words
    monkeypatch.setattr("tiedtools.cli.report.LINE_EVERY", 0)
    result = run("w2v", "-size", 4, "-iter", 2, corpus)
    assert "words/s" in result.stderr and "loss" in result.stderr and "ETA" in result.stderr
    assert "\r" not in result.stderr and "words/s" not in result.stdout
    assert run("w2v", "-size", 4, "-debug", 0, corpus).stderr == ""


@pytest.mark.parametrize("options", [
    ["-cbow", 0], ["--tie"], ["-cbow", 0, "--tie"], ["--tie-signs"], ["-cbow", 0, "--tie-signs", "--negated", 0.2],
    ["-cbow", 0, "--tie-linear", "--init-linear", "orthogonal"],
    ["--tie-linear", "--init-linear", "uniform", "--lr-linear", 0.001], ["--shift", -1], ["--fit-pmi"],
    ["--ns-exponent", 1], ["--cbow-sum"], ["--min-alpha", 0.01], ["--min-lr", 0.02], ["--fixed-window"],
    ["-hs", 1, "-negative", 0], ["-hs", 1, "-cbow", 0], ["--cbow-grad", "exact", "-alpha", 0.1],
    ["--skip-input", "--init-range", 0.1], ["--allow-input", "--tie"], ["-sample", 0, "-window", 1, "-negative", 1],
    ["--seed", 7],
], ids=lambda o: ' '.join(map(str, o)))  # fmt: skip
def test_options_change_the_result_reproducibly(run, corpus, options):
    args = ["w2v", "-threads", 1, "-size", 6, "-iter", 2, corpus]
    first, second, plain = run(*args, *options), run(*args, *options), run(*args)
    assert first.exit_code == 0, first.stderr
    assert first.stdout_bytes == second.stdout_bytes != plain.stdout_bytes


@pytest.mark.parametrize("native", [True, False])
def test_a_cpu_without_bfloat16_is_reported(run, corpus, native, monkeypatch):
    monkeypatch.setattr("tiedtools.runs.trainer.FAST_BFLOAT16", native)
    given = ["-size", 4, "-iter", 1, "-threads", 1, "--precision", "bfloat16", corpus]
    given += ["--tie-linear"]
    told = run("w2v", *given).stderr
    assert ("no fast bfloat16 products" in told) != native and "tied+L in bfloat16, " in told
    assert "fast bfloat16" not in run("w2v", "--exact", *given).stderr


@pytest.mark.parametrize("options, which", [
    (["-cbow", 0], "in"), ([], "in"), (["-cbow", 0, "--tie-linear"], "sum"), (["--tie-linear"], "in"),
    (["-cbow", 0, "--tie-linear", "--write", "in"], "in"),
])  # fmt: skip
def test_default_of_write(run, corpus, options, which):
    given = ["-size", 4, "-threads", 1, *options]
    written = run("w2v", *given, corpus).stdout_bytes
    assert run("w2v", *given, "--write", which, corpus).stdout_bytes == written
    assert run("w2v", *given, "--write", {"in": "sum", "sum": "in"}[which], corpus).stdout_bytes != written


@pytest.mark.parametrize("tie, of_l", [("--tie-signs", 0), ("--tie-linear", 16)])
def test_save_model_and_log(run, corpus, tmp_path, tie, of_l):
    model, log, out = tmp_path / "m.npz", tmp_path / "log", tmp_path / "v"
    files = "--save-model", model, "--log-json", log, "-output", out
    result = run("w2v", tie, "-size", 4, "-iter", 3, *files, corpus)
    assert result.exit_code == 0
    np.testing.assert_allclose(Vectors.read(model).matrix, Vectors.read(out).matrix, atol=1e-6)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.get("epoch") for line in lines] == [1, 2, 3, None]
    assert all(line["loss"] > 0 and line["words_per_s"] > 0 and line["lr"] > 0 for line in lines[:3])
    assert lines[0]["lr"] == pytest.approx(2 * lines[1]["lr"], rel=0.02)
    assert lines[3]["params"] == 10 * 4 + of_l


@pytest.mark.parametrize("data, message", [
    (b"", "no words"), (b"rare words\n", "no word"), (b"a\x00b" * 99, ":1: a zero"), (b"ok\n\xff\n", ":2: invalid"),
])  # fmt: skip
def test_bad_texts_leave_no_file(run, tmp_path, data, message):
    path, out = tmp_path / "text", tmp_path / "out"
    path.write_bytes(data)
    result = run("w2v", "-output", out, path)
    assert result.exit_code == 1 and result.stderr.startswith(f"tiedtools: {path}") and message in result.stderr
    assert result.stderr.count("\n") == 1 and sorted(os.listdir(tmp_path)) == ["text"]
    run.fails(1, "nothing: cannot be read: No such file", "w2v", "-output", out, tmp_path / "nothing")
    path.write_text("one two three\n" * 9)
    late = run("w2v", "-output", out, "--valid", tmp_path / "nothing", path)
    assert late.exit_code == 1 and late.stderr.startswith(f"tiedtools: {tmp_path}/nothing: cannot be read")
    folder = run("w2v", "-output", out, tmp_path)
    assert folder.exit_code == 1 and folder.stderr.count("\n") == 1


@pytest.mark.parametrize("tie", [["--tie-signs"], ["--tie-linear", "--lr-linear", 1]], ids=["signs", "linear"])
def test_divergence_exits_with_one_line(run, corpus, tie):
    result = run.fails(1, "diverged", "w2v", *tie, "-size", 10, "-alpha", 1000, "-iter", 50, corpus)
    assert b"nan" not in result.stdout_bytes and b"inf" not in result.stdout_bytes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_its_vectors(corpus, tmp_path, number):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tiedtools", "w2v", "-size", "100", "-iter", "10000", "-output", out, corpus]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("epoch 3"):
                break
        assert not out.exists()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number and "interrupted" in errors and "Traceback" not in errors
    assert len(Vectors.read(out)) == 10 and sorted(os.listdir(tmp_path)) == ["corpus.txt", "out", "out.run.json"]


@pytest.fixture(params=["", "1"])
def environment(request):
    """With PYTHONUNBUFFERED, Python itself would drop the rest of a partial write."""
    return {**os.environ, "PYTHONUNBUFFERED": request.param}


def test_closed_output_pipe(corpus, environment):
    command = f"{sys.executable} -m tiedtools w2v -size 9999 -iter 1 {corpus}; echo status $? >&2"
    result = subprocess.run(f"({command}) | head -n 1", shell=True, capture_output=True, text=True, env=environment)
    assert result.stdout == "10 9999\n" and result.stderr.endswith(", 0:00:00\nstatus 141\n"), result.stderr


def test_vocab(run, corpus, tmp_path):
    result = run("vocab", corpus)
    lines = result.stdout_bytes.decode().split("\n")
    assert lines[:3] == ["</s> 360", "the 720", "sat 360"] and len(lines) == 11
    assert "10 kept" in result.stderr
    out = tmp_path / "v"
    assert run("vocab", "-min-count", 121, "-save-vocab", out, corpus).exit_code == 0
    assert out.read_text() == "</s> 360\nthe 720\nsat 360\non 360\n"
    assert run("vocab", "--max-vocab", 2, corpus).stdout_bytes == b"</s> 360\nthe 720\n"
    assert run("vocab", tmp_path / "missing").exit_code == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_redirected_standard_input_is_not_overwritten(corpus):
    for command in ["vocab", "-output", corpus], ["w2v", "-size", "4", "-save-vocab", corpus, "-"]:
        with open(corpus) as text:
            result = subprocess.run([sys.executable, "-m", "tiedtools", *command], stdin=text, capture_output=True)
        assert result.returncode == 2 and b"both input and output" in result.stderr and corpus.read_text() == LINES


def test_a_closed_stderr_does_not_end_the_run(corpus, tmp_path):
    out = tmp_path / "out"
    for shell in (f"-output {out} {corpus} 2>&1 | head -n 1", f"-output {out} {corpus} 2>&-"):
        subprocess.run(f"{sys.executable} -m tiedtools w2v -size 4 -iter 20 {shell}", shell=True, capture_output=True)
        assert len(Vectors.read(out)) == 10
        out.unlink()


@pytest.mark.parametrize("closed, message", [("<&-", "no words"), (">&-", "standard output is closed")])
def test_closed_streams(closed, message):
    shell = f"{sys.executable} -m tiedtools w2v {closed}"
    result = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert result.returncode == 1 and message in result.stderr and result.stderr.count("\n") == 1


def test_nothing_to_predict(run, tmp_path):
    (path := tmp_path / "text").write_text("alone\n" * 50)
    run.fails(1, "no word has a neighbor to predict it from", "w2v", "-sample", 0, "-output", tmp_path / "out", path)
    assert not (tmp_path / "out").exists()


def test_deep_huffman_trees(run, corpus, tmp_path):
    """Fibonacci counts give the deepest tree possible."""
    a, b, vocab = 1, 1, tmp_path / "vocab"
    with open(vocab, "w") as file:
        for k in range(85):
            print(["cat", "dog", "the"][k] if k < 3 else f"w{k}", a, file=file)
            a, b = b, a + b
    args = ["w2v", "-read-vocab", vocab, "-min-count", 0, "-sample", 0, "-size", 5, corpus]
    assert run(*args, "-hs", 1, "-negative", 0).exit_code == 0
    log = tmp_path / "log"
    assert run(*args, "-negative", 2000, "-iter", 1, "--log-json", log).exit_code == 0
    assert 0 < json.loads(log.read_text().splitlines()[0])["loss"] < 2000


def test_no_disk_space_for_ids_is_a_one_line_error(tmp_path):
    (text := tmp_path / "text").write_text("some words \n" * 100_000)
    code = f"""
import resource
from tiedtools.cli import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
cli(["w2v", "-output", "/dev/null", {str(text)!r}], prog_name="tiedtools")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.count("\n") == 1, result.stderr
    assert "4 bytes of disk space per word; raise the limit" in result.stderr
