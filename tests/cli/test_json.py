"""Test outputs: `--json`, progress reports, files that are compressed, full, or the terminal."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from common import ROOT, content, save
from fakelm import WORDS, FakeLM
from listening import Terminal
from rnnlmcase import DOC
from rnnlmcase import model as rnnlm

from tiedtools.base.messages import perplexity
from tiedtools.cli import report
from tiedtools.cli.report import LmReport, Report, clock
from tiedtools.vectors.vectors import Vectors

FORMATS = ROOT / "docs/formats.md"
COMMANDS = {
    "nn": "nn v a nowhere --json", "analogy": "analogy v a b c --json", "check": "check v --json",
    "pca": "pca v zeros --json", "compare": "compare v zeros --set pairs --json --words 3",
    "eval-sim": "eval-sim v zeros --set pairs --json", "eval-analogy": "eval-analogy v zeros --set questions --json",
    "data list": "data list --json", "vocab": "vocab text --json --min-count 1",
    "docvec": "docvec documents text --json --unit doc", "similar": "similar documents text --json --line 1 --query x",
    "ppl": "ppl model text --json -debug 0", "predict": "predict model text --json",
    "generate": "generate model --lines 1 --json", "nbest": "nbest model text --ids --json",
}  # fmt: skip
AS = {"analogy": "nn", "compare": "eval-sim"}  # commands that also use the names of another one
FREE = {"neighbors a", "analogies a b c", "set_paths pairs"}  # names from user input


def names(value, above=""):
    """Yield the names in an object and in the objects nested in it; `above` is the parent's name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if f"{above} {name}" not in FREE:
                yield name
            yield from names(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner, above)


@pytest.mark.skipif(not FORMATS.exists(), reason="needs a checkout")
@pytest.mark.parametrize("command, line", COMMANDS.items())
def test_names_are_documented(run, tmp_path, monkeypatch, command, line):
    monkeypatch.chdir(tmp_path)
    Path("v").write_text("5 2\na 1 0\nb 0 1\nc 1 1\nd 1 -1\nb 2 2\n")
    Path("zeros").write_text("4 2\na 0 0\nb 0 0\nc 0 0\nd 0 0\n")
    Path("pairs").write_text("a b 1\na c 2\nb d 3\na d 4\n")
    Path("questions").write_text(": s\na b c d\n")
    Path("text").write_text("w1 cat the\n")
    for path, model in ("documents", rnnlm(**DOC)), ("model", FakeLM()):
        save(model, path)
    (told,) = run(*line.split()).stdout.splitlines()
    found = json.loads(told, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    section, _, printed = FORMATS.read_text().partition("\n## JSON\n")[2].partition("\n## What the language models")
    rows = dict(re.findall(r"^\| `([\w -]+)`.*? \|(.*)$", section, re.MULTILINE))
    rows |= dict.fromkeys(["ppl", "predict", "generate", "nbest"], printed)
    documented = rows[command] + rows.get(AS.get(command), "")
    if command == "data list":
        found = list(found.values())
    if command == "check":
        found["files"][0]["problems"] = list(found["files"][0]["problems"].values())
        assert found["files"][0]["problems"]
    assert sorted(set(names(found)) - set(re.findall(r'(?<=[`"])[^`"]+(?=[`"])', documented))) == []


def objects(result):
    """Return the objects that a command printed, one per line; NaN and infinities are errors."""
    assert result.exit_code == 0, result.stderr
    refuse = lambda name: pytest.fail(f"{name} is not JSON")
    return [json.loads(line, parse_constant=refuse) for line in result.stdout.splitlines()]


def test_nbest_vocab_and_docvec(run, tmp_path):
    text = "u1 the caf\u00e9\nu2 cat\nu2\n".encode()
    path = save(FakeLM(never=[WORDS.index("cat")]), tmp_path / "lm")
    found = objects(run("nbest", path, "--json", "--ids", input=text))
    assert [(line["line"], line["id"], line["text"]) for line in found] == [
        (1, "u1", "the caf\u00e9"), (2, "u2", "cat"), (3, "u2", "")
    ]  # fmt: skip
    plain = run("nbest", path, "--ids", input=text).stdout.splitlines()
    assert plain[1] == "-inf" and found[1]["logprob"] is None
    assert [f"{found[k]['logprob']:.6f}" for k in (0, 2)] == [plain[0], plain[2]]
    for options in [], ["--batch", 1]:
        found = objects(run("nbest", path, "--json", *options, input=b"the\n\non mat"))
        assert [(line["line"], line["text"]) for line in found] == [(1, "the"), (2, ""), (3, "on mat")]
        assert found[0].keys() == {"line", "text", "logprob"}
    path = tmp_path / "out"
    result = run("vocab", "--json", "-min-count", 2, input="b \u00e9 \u00e9\nb b\n c\n".encode())
    expected = {"tokens": 9, "words": 4, "kept": 3, "kept_tokens": 8, "vocab": [["</s>", 3], ["b", 3], ["\u00e9", 2]]}
    assert objects(result) == [expected] and result.stderr == "9 tokens, 4 words, 3 kept with 8 tokens\n"
    assert run("vocab", "--json", "-output", path, "-min-count", 9, input=b"b\n").stdout == ""
    assert json.loads(path.read_text())["vocab"] == [["</s>", 1]]
    path, text = save(rnnlm(**DOC), tmp_path / "model"), b"w1 w2\nw3\n\nw4 w4"
    for options, lines in ([], ["w1 w2", "w3", "", "w4 w4"]), (["--unit", "doc"], ["w1 w2", "w4 w4"]):
        found = objects(run("docvec", path, "--json", *options, input=text))
        assert [(line["line"], line["text"]) for line in found] == list(enumerate(lines, 1))
        run("docvec", path, "-binary", 1, "-output", tmp_path / "out", *options, input=text)
        matrix = Vectors.read(tmp_path / "out").matrix
        assert np.array_equal(np.float32([line["vector"] for line in found]), matrix)
    run.fails(2, "--json writes text: omit --binary 1", "docvec", path, "--json", "-binary", 1, input=text)
    assert "5 words outside the vocabulary" in run("docvec", path, "--json", input=b"a b c d e\n").stderr


@pytest.fixture
def stderr(monkeypatch):
    def stderr(stream):
        monkeypatch.setattr("sys.stderr", stream)
        report.show_messages()
        return stream

    return stderr


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(stderr, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    stream = stderr(Terminal())
    reporter = Report()
    reporter.begin(1000)
    reporter.bar.mininterval = 0
    reporter.update(250, 1.23456, 0.025)
    reporter.epoch(epoch=1, loss=1.5, seconds=7)
    reporter.close()
    text = stream.getvalue()
    assert "25.0%" in text and "words/s, loss 1.2346, lr 0.02500, ETA" in text
    assert "epoch 1: loss 1.5000" in text
    stream = stderr(io.StringIO())
    reporter = Report()
    reporter.begin(1000, 900)
    reporter.restart()  # another epoch
    reporter.update(100, 2, 0.02)
    assert stream.getvalue() == ""
    reporter.line_due -= report.FIRST_LINE
    reporter.update(500, 1.5, 0.01)
    assert stream.getvalue().startswith(" 50.0%") and "ETA" in stream.getvalue()
    reporter.line_due -= report.FIRST_LINE
    reporter.update(600, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 1
    reporter.line_due -= report.LINE_EVERY
    reporter.update(700, 1.5, 0.01)
    assert stream.getvalue().count("\n") == 2
    stream = stderr(io.StringIO())
    reporter = LmReport(1)
    reporter.begin(10)
    infinite = perplexity(1e4)
    reporter.epoch(epoch=1, lr=20.0, train_ppl=123.456, valid_ppl=infinite, words_per_s=5.0, seconds=1)
    assert "train ppl 123.46, valid ppl infinite, 5 words/s" in stream.getvalue()
    assert [clock(s) for s in (0, 61.9, 3600, 90061)] == ["0:00:00", "0:01:01", "1:00:00", "25:01:01"]


@pytest.mark.parametrize("verbosity, lines", [(0, 0), (1, 1), (2, 2)])
def test_verbosity(stderr, monkeypatch, verbosity, lines):
    monkeypatch.setattr(report, "LINE_EVERY", 0)
    stream = stderr(io.StringIO())
    reporter = Report(verbosity)
    reporter.begin(10)
    reporter.update(5, 1, 1)
    reporter.epoch(epoch=1, loss=1, seconds=7)
    assert stream.getvalue().count("\n") == lines


@pytest.mark.parametrize("command, fate", [("lstm", "left out"), ("rnnlm", "not predicted")])
def test_the_log_says_whether_perplexity_counts_unknown_words(run, tmp_path, command, fate):
    (tmp_path / "train").write_text("a b\n" * 20 + "a x y\n")
    (tmp_path / "valid").write_text("a c\nb b\n")
    line = command, "--hidden", 4, "--epochs", 1, "-train", tmp_path / "train", "-valid", tmp_path / "valid"
    with_unk, without = (run(*line, *more).stderr for more in (["--max-vocab", 4], []))
    counts = "vocabulary of 4 words; perplexity counts `<unk>`, 16.7% of valid, as a word\n"
    assert counts in with_unk and fate not in with_unk
    assert f"1 word outside the vocabulary, which has no <unk>, is {fate}\n" in without and "`<unk>`" not in without


LINES = "the cat sat on the mat\n" * 40


@pytest.mark.parametrize("extension", ["gz", "bz2", "xz", "zst"])
def test_compression_follows_from_the_file_name(run, corpus, tmp_path, extension):
    train = "w2v -threads 1 -iter 1 -size 3"
    for command in f"{train} -output", f"{train} -save-vocab", "vocab -output":
        plain, packed = tmp_path / "plain", tmp_path / f"packed.{extension}"
        for path in plain, packed:
            assert run(*command.split(), path, corpus).exit_code == 0
        assert content(str(packed)) == plain.read_bytes() != packed.read_bytes()


@pytest.mark.parametrize("flag", ["--save-model", "--checkpoint", "--log-json", "--manifest"])
def test_uncompressed_outputs_reject_names_of_compressed_files(run, corpus, tmp_path, flag):
    run.fails(2, "v.gz: this output is never compressed", "w2v", flag, tmp_path / "v.gz", corpus)
    run.fails(1, "is a directory; name a file to write", "w2v", flag, tmp_path, corpus)
    assert os.listdir(tmp_path) == [corpus.name]


@pytest.mark.parametrize("flag, reader", [
    ("-output", "tokenize"), ("--save-model", "predict m"), ("-save-vocab", "nn v <"), ("--log-json", "analogy v <"),
    ("--checkpoint", "rnnlm -rnnlm m -test"),
])  # fmt: skip
def test_the_text_is_never_overwritten(run, corpus, flag, reader):
    run.fails(2, "used as both input and output", "w2v", flag, corpus, corpus)
    assert run("vocab", "-output", corpus, corpus).exit_code == 2 and corpus.read_text() == LINES
    shell = f"{sys.executable} -m tiedtools {reader} {corpus} >>{corpus}"
    assert subprocess.run(["sh", "-c", shell]).returncode == 2 and corpus.read_text() == LINES


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", "/proc/{}/fd"])
def test_a_file_opened_by_the_shell(run, corpus, tmp_path, folder):
    """With `-output /dev/fd/3 3>vectors`, no manifest can be written next to the output."""
    train = ["w2v", "-threads", 1, "-iter", 1, "-size", 3, corpus]
    with open(tmp_path / "vectors", "w") as opened:
        print("earlier", file=opened, flush=True)
        path = f"{folder.format(os.getpid())}/{opened.fileno()}"
        result = run(*train, "-output", path, "--manifest", tmp_path / "manifest")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "vectors").read_text() == f"earlier\n{run(*train).stdout}"
    assert sorted(os.listdir(tmp_path)) == ["corpus.txt", "manifest", "vectors"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_failed_output_does_not_affect_the_others(run, corpus, tmp_path):
    kept, vocab = tmp_path / "kept", tmp_path / "vocab"
    result = run("w2v", "-size", 4, "-output", kept, "-save-vocab", vocab, "--save-model", "/dev/full", corpus)
    assert result.exit_code == 1 and "/dev/full: cannot be written: No space left" in result.stderr
    assert kept.read_text().startswith("6 4\n") and vocab.read_text().startswith("</s> 40")
    result = run("w2v", "-size", 4, "--log-json", "/dev/full", "-output", kept, corpus)
    assert result.exit_code == 0 and "log can no longer be written" in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command, unbuffered", [
    ("--version", ""), ("w2v -h", ""), ("check v", "1"), ("nn v the", ""), ("vocab c", "1"), ("pca v", ""),
    ("data list", ""), ("lstm --list-presets", "1"), ("w2v -size 9 -debug 0 c", ""), ("w2v -size 9 -debug 0 c", "1"),
])  # fmt: skip
def test_every_command_reports_a_full_standard_output(tmp_path, command, unbuffered):
    """With PYTHONUNBUFFERED, Python itself would drop the rest of a partial write."""
    (tmp_path / "c").write_text(LINES)
    (tmp_path / "v").write_text("3 2\nthe 1 2\ncat 2 1\nsat 1 1\n")
    with open("/dev/full", "wb") as full:
        streams = dict(stdout=full, stderr=subprocess.PIPE)
        streams["env"] = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "tiedtools", *command.split()]
        result = subprocess.run(command, cwd=tmp_path, text=True, **streams)
    problem = "cannot be written: No space left on device; free some space, or write elsewhere"
    saved = "".join(f"; saved in {path}" for path in tmp_path.glob("vectors-*/vectors"))
    assert result.stderr.endswith(f"tiedtools: standard output: {problem}{saved}\n") and bool(saved) == ("9" in command)
    assert result.returncode == 1 and "Exception" not in result.stderr


SAMPLE = "the cat sat on the mat\n" * 200
W2V = "w2v -size 4 -sample 0 -threads 1 -debug 0"
LSTM = "lstm --size 4 --hidden 4 --epochs 1 --threads 1 -debug 0"
RNNLM = "rnnlm --doc-dim 4 -hidden 4 -max-iter 1 -debug 0"


@pytest.fixture
def shown(tmp_path):
    """A function that runs a command line on a terminal; returns (stdout, stderr)."""
    (tmp_path / "corpus.v1.txt").write_text(SAMPLE)

    def shown(line, input=None):
        ours, theirs = pytest.importorskip("pty", reason="needs pseudo-terminals").openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "tiedtools", *line.split()],
            cwd=tmp_path, stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            process.stdin.write(input or "")
            process.stdin.close()
            printed = b""
            try:
                while part := os.read(ours, 1 << 16):
                    printed += part
            except OSError:  # end of file, on Linux
                pass
            errors = process.stderr.read()
        os.close(ours)
        assert process.returncode == 0, errors
        return printed.decode(), errors

    return shown


@pytest.mark.parametrize("line, name", [
    (f"{W2V} corpus.v1.txt", "corpus.v1.vectors.txt"), (f"{W2V} -binary 1", "stdin.vectors.bin"),
    (f"{LSTM} corpus.v1.txt", "corpus.v1.lstm.npz"), (f"{RNNLM} -train corpus.v1.txt", "corpus.v1.rnnlm.npz"),
])  # fmt: skip
def test_outputs_without_a_name_get_one(shown, tmp_path, line, name):
    kind, option = ("vectors", "output") if "vectors" in name else ("model", "save-model")
    names = [name, name.replace("v1.", "v1-2.").replace("stdin.", "stdin-2.")]
    for written in names:
        printed, errors = shown(line, SAMPLE)
        assert printed == "" and errors == f"the {kind} will be in {written}; --{option} FILE chooses another name\n"
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.v1.txt", *names, *(f"{n}.run.json" for n in names)}
    if "stdin" not in name:
        assert shown(f"rerun {name}.run.json")[0].startswith("same bytes: ")


@pytest.mark.parametrize("line", [W2V, LSTM, RNNLM])
def test_vectors_are_printed_only_if_requested(shown, line):
    assert shown(f"{line} corpus.v1.txt --save-model m") == ("", "")
    assert shown(f"{line} corpus.v1.txt --save-model m -output -")[0].startswith("6 4\r\n")


@pytest.mark.parametrize("more, told", [("", True), ("--save-model m", False)])
def test_a_message_says_that_no_model_is_kept(run, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(SAMPLE)
    done = run(*f"{LSTM} -debug 1 text {more}".split())
    assert done.stdout_bytes.startswith(b"6 4\n")
    assert ("the model will not be saved; --save-model FILE saves it" in done.stderr) == told
