"""Test the commands `ppl`, `predict`, `generate`, and `nbest` with a fake language model."""

import codecs
import gzip
import io
import itertools
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from common import HELPERS, save
from fakelm import WORDS, FakeLM

from tiedtools.files import modelfile

TEXT = "the cat sat\non the dog\n"
# `tiedtools` in a separate process, which must also know the fake model.
MAIN = f"import sys; sys.path.insert(0, {str(HELPERS)!r}); import fakelm; from tiedtools.__main__ import main; main()"
TIEDTOOLS = [sys.executable, "-c", MAIN]


@pytest.fixture
def lm(tmp_path):
    return save(FakeLM(), tmp_path / "lm.npz")


@pytest.fixture
def closed(tmp_path):
    """A model without `<unk>`."""
    return save(FakeLM([word for word in WORDS if word != "<unk>"]), tmp_path / "closed.npz")


def logprobs(model, words, restart=False):
    """Return the base-10 log probabilities of words, including explicit `</s>` and `<unk>`."""
    return model.by_definition([model.vocab.words.index(word) for word in words.split(" ")], restart) / np.log(10)


def test_totals_and_progress(run, lm, text, monkeypatch):
    result = run("ppl", lm, text)
    p = logprobs(FakeLM(), "the cat sat </s> on the <unk> </s>")
    known = p[[0, 1, 2, 3, 4, 5, 7]]
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout == (
        f"file {text}: 2 sentences, 6 words, 0 OOVs\n"
        f"0 zeroprobs, logprob= {p.sum():g} ppl= {10 ** -(p.sum() / 8):g} ppl1= {10 ** -(p.sum() / 6):g}\n"
        f"scored as <unk>: 1 word outside the vocabulary; without: logprob {known.sum():g},"
        f" ppl {10 ** -(known.sum() / 7):g}, ppl1 {10 ** -(known.sum() / 5):g}\n"
    )
    monkeypatch.setattr("tiedtools.cli.report.LINE_EVERY", 0)
    result = run("ppl", lm, text)
    assert re.search(r"8 words, .* words/s, ppl \d", result.stderr)
    assert "words/s" not in result.stdout


@pytest.mark.parametrize("options", [[], ["--independent"]])
def test_words_are_printed_as_by_srilm(run, lm, text, options):
    result = run("ppl", lm, text, "-debug", 2, *options)
    p = logprobs(FakeLM(), "the cat sat </s> on the <unk> </s>", bool(options))
    shown = [f"{10**x:g} [ {x:g} ]" for x in p]
    more = "" if options else "..."
    figures = lambda p: (
        f"0 zeroprobs, logprob= {p.sum():g} ppl= {10 ** -(p.sum() / 4):g} ppl1= {10 ** -(p.sum() / 3):g}"
    )
    assert result.stdout.split("\n")[:16] == [
        "the cat sat",
        f"\tp( the | <s> ) \t= [fake] {shown[0]}",
        f"\tp( cat | the ...) \t= [fake] {shown[1]}",
        f"\tp( sat | cat ...) \t= [fake] {shown[2]}",
        f"\tp( </s> | sat ...) \t= [fake] {shown[3]}",
        "1 sentences, 3 words, 0 OOVs",
        figures(p[:4]),
        "",
        "on the dog",
        f"\tp( on | <s> {more}) \t= [fake] {shown[4]}",
        f"\tp( the | on ...) \t= [fake] {shown[5]}",
        f"\tp( <unk> | the ...) \t= [fake] {shown[6]}",
        f"\tp( </s> | <unk> ...) \t= [fake] {shown[7]}",
        "1 sentences, 3 words, 0 OOVs",
        figures(p[4:]),
        "",
    ]
    plain = run("ppl", lm, text, *options).stdout
    assert result.stdout.endswith("\n\n" + plain)
    sentences = run("ppl", lm, text, "--debug", 1, *options).stdout
    assert sentences == re.sub(r"\tp\(.*\n", "", result.stdout)


def test_json(run, lm, closed, text):
    p = logprobs(FakeLM(), "the cat sat </s> on the <unk> </s>")
    *lines, whole = [json.loads(line) for line in run("ppl", lm, text, "--json", "-debug", 2).stdout.splitlines()]
    assert [line["line"] for line in lines] == [1, 2] and lines[1]["text"] == "on the dog"
    assert [word for word, _ in lines[1]["tokens"]] == ["on", "the", "dog", "</s>"]
    assert [q for line in lines for _, q in line["tokens"]] == pytest.approx(p, rel=1e-12)
    assert whole["file"] == str(text) and whole["oovs_scored"]
    assert (whole["sentences"], whole["oovs"], whole["as_unk"]) == (2, 0, 1)
    assert whole["logprob"] == pytest.approx(p.sum()) and whole["ppl"] == pytest.approx(10 ** -(p.sum() / 8))
    assert whole["without_oovs"]["logprob"] == pytest.approx(p.sum() - p[6])
    assert run("ppl", lm, text, "--json").stdout.count("\n") == 1
    two = [json.loads(line) for line in run("ppl", closed, text, text, "--json").stdout.splitlines()]
    assert len(two) == 3 and two[2]["texts"] == 2 and two[2]["words"] == 12 and not two[2]["oovs_scored"]


@pytest.mark.parametrize("batch", [2, 3, 100])
def test_batches(run, lm, tmp_path, batch):
    (path := tmp_path / "long").write_text("the cat sat on the dog\n\ncat\n" * 20)
    figures = lambda *options: json.loads(run("ppl", lm, path, "--json", *options).stdout)
    whole, streams = figures(), figures("--batch", batch)
    assert (streams["words"], streams["as_unk"]) == (whole["words"], whole["as_unk"]) == (140, 20)
    assert streams["ppl"] != whole["ppl"] == pytest.approx(streams["ppl"], rel=0.2)
    independent, batched = figures("--independent"), figures("--independent", "--batch", batch)
    assert independent["ppl"] == pytest.approx(batched["ppl"], rel=1e-10) != whole["ppl"]
    run.fails(2, "--batch", "ppl", lm, path, "--batch", batch, "-debug", 1)


def test_predict(run, lm, closed):
    result = run("predict", lm, "--top", 3, input=b"the cat\n\nthe dog\n")
    model = FakeLM()
    for line, context in enumerate(["the cat", "", "the <unk>"], 1):
        words = [*context.split(), "?"]
        p = {word: 10 ** logprobs(model, " ".join([*words[:-1], word]))[-1] for word in WORDS}
        best = sorted(p, key=lambda word: -p[word])[:3]
        rows = [row.split("\t") for row in result.stdout.splitlines() if row.startswith(f"{line}\t")]
        assert [word for _, word, _ in rows] == best
        assert [float(q) for *_, q in rows] == pytest.approx([p[word] for word in best], rel=1e-5)
    assert "1 word outside the vocabulary was read as `<unk>`" in result.stderr
    every = run("predict", closed, "-k", 100, input=b"the dog").stdout
    assert every.count("\n") == len(WORDS) - 1 and every == run("predict", closed, "-k", 100, input=b"the").stdout
    carried = json.loads(run("predict", lm, "--carry", "--json", input=b"the cat\non\n").stdout.splitlines()[1])
    assert (carried["line"], carried["context"]) == (2, "on")
    for word, p in carried["next"]:
        assert np.log10(p) == pytest.approx(logprobs(FakeLM(), f"the cat </s> on {word}")[-1])
    fresh = run("predict", lm, "--json", input=b"the cat\non\n").stdout.splitlines()[1]
    assert json.loads(fresh)["next"] == json.loads(run("predict", lm, "--json", input=b"on\n").stdout)["next"]


@pytest.mark.parametrize("command, answer", [("predict", b"1\t"), ("nbest", b"-")])
def test_each_line_is_answered_at_once(lm, command, answer):
    options = ["--top", "1"] if command == "predict" else ["--batch", "1"]
    arguments = [*TIEDTOOLS, command, lm, *options]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        timer = signal.alarm(60)
        for _ in range(2):
            process.stdin.write(b"the cat\n")
            process.stdin.flush()
            assert process.stdout.readline()[:1] in answer + b"2"
        signal.alarm(timer)
        process.stdin.close()
        assert process.wait(60) == 0


def test_generate(run, lm, closed):
    result = run("generate", lm, "--lines", 5)
    assert result.exit_code == 0 and result.stdout.count("\n") == 5 and result.stdout.endswith("\n")
    assert set(result.stdout.split(" ")) - {"\n"} and "</s>" not in result.stdout
    words = {word for line in result.stdout.split("\n") for word in line.split(" ") if word}
    assert words <= set(WORDS)
    same, longer = (run("generate", lm, "--lines", n).stdout for n in (5, 7))
    assert same == result.stdout == longer[: len(result.stdout)]
    assert run("generate", lm, "--lines", 5, "--seed", 2).stdout != result.stdout
    assert run("generate", lm).stdout.count("\n") == 10
    assert run("generate", lm, "--temperature", 3).stdout != run("generate", lm).stdout
    split = lambda text: [word for word in re.split(r"[ \n]", text) if word]
    result = run("generate", lm, "--words", 25)
    assert len(split(result.stdout)) == 25 and result.stdout.endswith("\n") and not result.stdout.endswith("\n\n")
    assert run("generate", lm, "--words", 10**6, "--lines", 3).stdout.count("\n") == 3
    unk = run("generate", lm, "--words", 300).stdout
    assert "<unk>" in unk and "<unk>" not in run("generate", lm, "--words", 300, "--no-unk").stdout
    result = run("generate", lm, "--prompt", " the  dog\n", "--lines", 40)
    assert result.stdout.count("\n") == 40
    assert all(re.match("the dog( |$)", line) for line in result.stdout.splitlines())
    assert "read as `<unk>`" in result.stderr
    greedy = run("generate", lm, "--prompt", "the cat", "--temperature", 0, "--words", 1).stdout
    best = run("predict", lm, "--top", 1, input=b"the cat").stdout.split("\t")[1]
    assert greedy.split("\n")[0] in (f"the cat {best}", "the cat")
    assert greedy == run("generate", lm, "--prompt", "the cat", "-top-k", 1, "--words", 1).stdout
    assert "skipped" in run("generate", closed, "--prompt", "the dog").stderr


def test_nbest(run, lm, tmp_path):
    hypotheses = "the cat sat\n\nthe dog\n"
    expected = [logprobs(FakeLM(), words).sum() for words in ("the cat sat </s>", "</s>", "the <unk> </s>")]
    result = run("nbest", lm, input=hypotheses.encode())
    assert result.stdout == "".join(f"{p:.6f}\n" for p in expected)
    assert "read as `<unk>`" in result.stderr
    assert run("nbest", lm, "--batch", 1, input=hypotheses.encode()).stdout == result.stdout
    (path := tmp_path / "lists.gz").write_bytes(gzip.compress("u\xa01 the cat\nu\xa01 mat\nu2 on\nu3 on\n".encode()))
    model = FakeLM()
    first = {words: logprobs(model, f"{words} </s>").sum() for words in ("the cat", "mat")}
    best = max(first, key=first.get)
    expected = [*first.values(), *(logprobs(model, text)[-2:].sum() for text in (
        f"{best} </s> on </s>", f"{best} </s> on </s> on </s>"
    ))]  # fmt: skip
    result = run("nbest", lm, "--ids", path)
    assert result.stdout == "".join(f"{p:.6f}\n" for p in expected) and result.stderr == ""
    alone = run("nbest", lm, "--ids", "--independent", path).stdout
    assert alone == run("nbest", lm, input=b"the cat\nmat\non\non\n").stdout != result.stdout
    run.fails(1, "standard input:2: no utterance ID", "nbest", lm, "--ids", input=b"u1 the\n \n")


BAD_MODELS = {
    "missing": (None, "cannot be read: No such file"), "not a model": (b"the cat\n", "not a tiedtools model"),
    "word vectors": ("word2vec", "is a model of word vectors, not a language model"),
    "checkpoint": ("checkpoint", "with --resume --save-model FILE"), "unknown kind": ("telepathy", "kind 'telepathy'"),
}  # fmt: skip


@pytest.mark.parametrize("command", ["ppl", "predict", "generate", "nbest"])
@pytest.mark.parametrize("made, message", BAD_MODELS.values(), ids=BAD_MODELS)
def test_bad_models(run, tmp_path, command, made, message):
    path = tmp_path / "model"
    if isinstance(made, str):
        file = io.BytesIO()
        modelfile.save(file, made, {}, ["</s>"], {})
        made = file.getvalue()
    if made is not None:
        path.write_bytes(made)
    result = run(command, path, input=b"the cat\n")
    assert result.exit_code == 1 and result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"tiedtools: {path}: ") and message in result.stderr


@pytest.mark.parametrize("command", ["ppl", "predict", "nbest"])
@pytest.mark.parametrize("data, message", [
    ("a\n".encode("utf-16"), ":1: a zero byte; is this plain text? `iconv -f UTF-16"), (b"{\\rtf1\n", ": is in Rich"),
    (b"ok\n\xff\n", ":2: invalid UTF-8 byte 0xff; is this plain text? `iconv -f CP1252"),
])  # fmt: skip
def test_bad_texts(run, lm, tmp_path, command, data, message):
    (path := tmp_path / "text").write_bytes(data)
    result = run(command, lm, path)
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1
    run.fails(1, "nothing: cannot be read: No such file", command, lm, tmp_path / "nothing")
    path.write_bytes(b"caf\xff\n")
    assert run(command, lm, path, "--errors", "replace").exit_code == 0


def test_empty_texts(run, lm):
    result = run("ppl", lm, input=b"")
    assert (result.exit_code, result.stderr) == (1, "tiedtools: standard input: is empty; give a text\n")
    for command, data in itertools.product(("predict", "nbest"), (b"", codecs.BOM_UTF8)):
        result = run(command, lm, input=data)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("options", [[], ["--independent"], ["--batch", 2]])
@pytest.mark.parametrize("text", [b"\n\n", b"\n ", b"\r\n\r\n"])
def test_lines_without_words(run, lm, text, options):
    """Their line ends are predicted; a last line without a newline counts as a line."""
    result = run("ppl", lm, *options, input=text)
    assert result.exit_code == 0 and result.stderr == ""
    form = r"file -: 2 sentences, 0 words, 0 OOVs\n0 zeroprobs, logprob= -\S+ ppl= \d\S+ ppl1= undefined\n"
    assert re.fullmatch(form, result.stdout)
    found = json.loads(run("ppl", lm, *options, "--json", input=text).stdout)
    assert (found["sentences"], found["words"], found["ppl1"]) == (2, 0, None) and found["ppl"] > 1
    assert len(run("nbest", lm, input=text).stdout.splitlines()) == 2
    assert len(run("predict", lm, "-k", 1, input=text).stdout.splitlines()) == 2


ENDLESS = {
    "ppl": "yes the cat sat | {} ppl {} -debug 2", "predict": "yes the cat sat | {} predict {}",
    "generate": "{} generate {} --words 1000000000", "nbest": "yes the cat sat | {} nbest {}",
}  # fmt: skip


@pytest.mark.parametrize("command", ENDLESS.values(), ids=ENDLESS)
def test_closed_output_pipe(lm, command):
    command = command.format(f'{sys.executable} -c "{MAIN}"', lm)
    result = subprocess.run(f"{command} | head -n 2", shell=True, capture_output=True, text=True, timeout=60)
    assert result.stdout.count("\n") == 2 and result.stderr.replace("yes: standard output: Broken pipe\n", "") == ""


def test_interrupted(lm):
    with subprocess.Popen(
        [*TIEDTOOLS, "generate", lm, "--words", "1000000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors == b"tiedtools: interrupted\n"
