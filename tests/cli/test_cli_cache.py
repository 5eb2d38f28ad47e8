"""Test `ppl`, `nbest`, and `predict`: the cache, unknown words, and SRILM's counts."""

import itertools
import json
import math
import re

import lmcase
import numpy as np
import pytest
import subwordcase
from common import refused, save
from fakelm import WORDS, FakeLM

import tiedtools as tt
from tiedtools.base.errors import Contradiction

COMMANDS = {"ppl": ["-debug", 2], "nbest": ["--ids"], "predict": ["-k", 3, "--carry"]}
every_command = pytest.mark.parametrize("command", COMMANDS)
TEXT = b"w1 w2 w3\nw1 w2 w3\nw1 w2\n"


@pytest.fixture
def lm(tmp_path):
    save(lmcase.model(), tmp_path / "lm.npz")
    return tmp_path / "lm.npz"


@every_command
def test_the_cache_is_reset_where_the_state_is_and_may_be_empty(run, lm, command):
    plain, none, some = (
        run(command, lm, *COMMANDS[command], *options, input=TEXT).stdout_bytes
        for options in ([], ["--cache", 0], ["--cache", 5])
    )
    assert plain == none != some and plain.count(b"\n") == some.count(b"\n")
    # Equal lines have equal figures where lines are independent, and others where the state is carried over.
    line, cache = b"w1 w2 w3 w1 w2\n", ["--cache", 100, "--cache-lambda", 0.4]
    carrying, apart = dict(ppl=([], ["--independent"]), nbest=(["--ids"], []), predict=(["--carry"], []))[command]
    debug = ["-debug", 1, "--json"] if command == "ppl" else []
    text = (lambda ids: b"a " * ids + line + b"b " * ids + line)("--ids" in carrying)
    first, second = figures(run(command, lm, *carrying, *debug, *cache, input=text).stdout, command)
    assert first != second
    first, second = figures(run(command, lm, *apart, *debug, *cache, input=line * 2).stdout, command)
    assert first == second


def figures(printed, command):
    """Return the printed figures of two lines without their numbers."""
    rows = printed.splitlines()
    if command == "predict":
        return [[row.split("\t")[1:] for row in rows[k : k + 10]] for k in (0, 10)]
    return [row.partition(", ")[2] if command == "ppl" else row for row in rows[:2]]


def test_other_vocabularies_and_averages(run, lm, tmp_path):
    """Each text starts with an empty cache, and --average counts the cache in."""
    (tmp_path / "text").write_bytes(TEXT)
    printed = lambda *line: run("ppl", lm, *line, "--average", "w1", "--repeats").stdout_bytes.decode().splitlines()
    alone = printed(tmp_path / "text", "--cache", 9)
    (tmp_path / "other").write_bytes(TEXT)
    both = printed(tmp_path / "text", tmp_path / "other", "--cache", 9)
    assert both[: len(alone)] == alone and both[len(alone) + 1 : 2 * len(alone)] == alone[1:]
    plain = printed(tmp_path / "text")
    for with_cache, without in itertools.islice(zip(alone, plain), 2, 4):
        assert float(with_cache.split("\t")[1]) != float(without.split("\t")[1])
        assert with_cache.split("\t")[2] == without.split("\t")[2]
    save(subwordcase.lettered(), tmp_path / "lm.npz")
    (tmp_path / "words").write_text("cats\ndogly\nowlcat\n")
    command = ["ppl", tmp_path / "lm.npz", "--vocabulary", tmp_path / "words"]
    plain, with_cache = (run(*command, *options, input=b"owlcat dogly owlcat\n") for options in ([], ["--cache", 9]))
    assert (plain.exit_code, with_cache.exit_code) == (0, 0) and plain.stdout != with_cache.stdout


CLOSED = [word for word in WORDS if word != "<unk>"]
LINES = ["the cat sat on the mat", "x y z", "the x cat", "x"]


def scores(words, penalty):
    """Return the log10 probabilities of LINES by definition, with `penalty` for each unknown word without `<unk>`."""
    model, found = FakeLM(words), []
    for line in LINES:
        known = [word if word in words else "<unk>" for word in [*line.split(), "</s>"]]
        ids = [words.index(word) for word in known if word in words]
        found.append(model.by_definition(ids).sum() / np.log(10) + penalty * (len(known) - len(ids)))
    return found


@pytest.mark.parametrize("words", [WORDS, CLOSED], ids=["unk", "closed"])
@pytest.mark.parametrize("given", [{}, {"oov_logprob": -7.5}, {"oov_logprob": 0}], ids=str)
@pytest.mark.parametrize("batch", [1, 64])
def test_unknown_words_have_the_probability_of_rnnlm(run, tmp_path, messages, words, given, batch):
    """A line of unknown words wins only if they are skipped."""
    penalty = given.get("oov_logprob", -5)
    model = tt.LanguageModel()
    model.trained = FakeLM(words)
    found = model.score([line.split() for line in LINES], batch=batch, **given)
    np.testing.assert_allclose(found, scores(words, penalty), rtol=1e-10)
    if words == CLOSED:
        assert (found[0] > found[1]) == (penalty != 0)
    fate = f"given probability 10^{penalty}" if penalty else "skipped"
    fate = "read as `<unk>`" if words == WORDS else f"{fate}, since the vocabulary has no `<unk>`"
    told = f"5 words outside the vocabulary were {fate}\n"
    assert messages() == told
    save(FakeLM(words), tmp_path / "model")
    text = "".join(f"{line}\n" for line in LINES).encode()
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    result = run("nbest", tmp_path / "model", "--batch", batch, *options, input=text)
    assert result.stdout == "".join(f"{score:.6f}\n" for score in found) and told in result.stderr


def test_the_best_hypothesis_is_chosen_with_the_penalty(run, tmp_path):
    """The state after it is context of the next utterance."""
    save(FakeLM(CLOSED), tmp_path / "model")
    for penalty, before in (-5, "the cat sat on the mat </s>"), (0, "</s>"):
        ids = [CLOSED.index(word) for word in f"{before} on </s>".split()]
        expected = FakeLM(CLOSED).by_definition(ids)[-2:].sum() / np.log(10)
        lines = f"1 {LINES[0]}\n1 {LINES[1]}\n2 on\n".encode()
        result = run("nbest", tmp_path / "model", "--ids", "--oov-logprob", penalty, input=lines)
        assert float(result.stdout.split()[-1]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("value", [1, -2000, "x", float("nan")])
def test_wrong_values_are_refused(run, tmp_path, value):
    assert run("nbest", tmp_path / "model", "--oov-logprob", value).exit_code == 2
    model = tt.LanguageModel()
    model.trained = FakeLM(CLOSED)
    refused(lambda: model.score([["the"]], oov_logprob=value), "oov_logprob", kind=Contradiction)


TEXTS = ["the cat sat\non the dog\n\nbird dog <unk> mat\n", "the mat\ncat\n"]
UNK, CAT = WORDS.index("<unk>"), WORDS.index("cat")
# Model -> its words, those of probability 0, and of the texts: words that SRILM calls OOVs, zeroprobs, words as <unk>.
MODELS = {
    "<unk>": (WORDS, [], [0, 0], [0, 0], [3, 0]),
    "no <unk>": ([word for word in WORDS if word != "<unk>"], [], [4, 0], [0, 0], [0, 0]),
    "<unk> of probability 0": (WORDS, [UNK], [4, 0], [0, 0], [3, 0]),
    "a word of probability 0": (WORDS, [CAT], [0, 0], [1, 1], [3, 0]),
    "both": (WORDS, [UNK, CAT], [4, 0], [1, 1], [3, 0]),
}
FIGURES = re.compile(r"(\d+) zeroprobs, logprob= (\S+) ppl= (\S+) ppl1= (\S+)")


def add_ppls(output):
    """Return (sentences, words, OOVs, zeroprobs, logprob, ppl) as SRILM's script `add-ppls` computes them."""
    lines = output.splitlines()
    counts = [0, 0, 0, 0, 0.0]
    for k, line in enumerate(lines):
        if re.search(r"^file .*: .* sentences", line):
            fields, more = line.split(), lines[k + 1].split()
            counts = [a + float(b) for a, b in zip(counts, (fields[2], fields[4], fields[6], more[0], more[3]))]
    sentences, words, oovs, zeroprobs, logprob = counts
    return *counts, 10 ** (-logprob / (words - oovs - zeroprobs + sentences))


def ppl_from_log(output):
    """Return the perplexity that SRILM's script `ppl-from-log` computes from the words of `-debug 2`."""
    words = [line.split() for line in output.splitlines() if line.startswith("\tp( ")]
    scored = [float(fields[9]) for fields in words if not fields[9].startswith("-inf")]
    return 10 ** (-sum(scored) / len(scored))


@pytest.fixture(params=MODELS)
def case(request, tmp_path, monkeypatch):
    """Path of a model, and the numbers of its OOVs, zeroprobs, and words scored as `<unk>` in each text."""
    monkeypatch.chdir(tmp_path)
    words, never, *counts = MODELS[request.param]
    save(FakeLM(words, never=never), "model")
    for k, text in enumerate(TEXTS):
        (tmp_path / f"text{k}").write_text(text)
    return "model", *counts


@pytest.mark.parametrize("options", [[], ["--independent"], ["--batch", 3]], ids=str)
@pytest.mark.parametrize("debug", [0, 1, 2])
def test_scripts_of_srilm_compute_the_perplexities(run, case, options, debug):
    model, oovs, zeroprobs, as_unk = case
    if debug and "--batch" in options:
        pytest.skip("--batch splits lines")
    for texts in ["text0"], ["text1"], ["text0", "text1"]:
        chosen = [int(name[-1]) for name in texts]
        output = run("ppl", model, *texts, "-debug", debug, *options).stdout
        *counts, logprob, ppl = add_ppls(output)
        sums = [sum(of[k] for k in chosen) for of in (oovs, zeroprobs)]
        assert counts == [*(sum([(4, 10), (2, 3)][k][i] for k in chosen) for i in (0, 1)), *sums]
        *_, last = FIGURES.findall(output)
        assert int(last[0]) == sums[1] and float(last[1]) == pytest.approx(logprob, rel=1e-4)
        assert float(last[2]) == pytest.approx(ppl, rel=1e-4)
        assert float(last[3]) == pytest.approx(10 ** (-logprob / (counts[1] - sum(sums))), rel=1e-4)
        told = re.findall(r"^scored as <unk>: (\d) words outside the vocabulary; without: ", output, re.M)
        assert [int(n) for n in told] == [as_unk[k] for k in chosen if as_unk[k]] + [as_unk[0]] * (
            len(texts) > 1 and as_unk[0] > 0
        )
        if debug == 2:
            assert ppl_from_log(output) == pytest.approx(ppl, rel=1e-4)


def test_lines_have_the_figures_of_srilm(run, case):
    """Every line's two lines of totals agree with each other, and add up to those of the text."""
    model, oovs, zeroprobs, _ = case
    output = run("ppl", model, "text0", "-debug", 1).stdout
    heads = [[*map(int, head)] for head in re.findall(r"^(\d+) sentences, (\d+) words, (\d+) OOVs$", output, re.M)]
    assert [sum(column) for column in zip(*heads)] == [4, 10, oovs[0]]
    *figures, _ = FIGURES.findall(output)
    assert sum(int(zero) for zero, *_ in figures) == zeroprobs[0]
    for (sentences, words, unscored), (zero, logprob, *ppls) in zip(heads, figures, strict=True):
        scored = words - unscored - int(zero)
        for n, ppl in zip((scored + sentences, scored), ppls):
            assert ppl == "undefined" if not n else float(ppl) == pytest.approx(10 ** (-float(logprob) / n), rel=1e-4)
    model, oovs, zeroprobs, as_unk = case
    for k in 0, 1:
        found = json.loads(run("ppl", model, f"text{k}", "--json").stdout)
        assert [found[name] for name in ("oovs", "zeroprobs", "as_unk")] == [oovs[k], zeroprobs[k], as_unk[k]]
        for of, unscored in (found, oovs[k]), (found["without_oovs"], max(oovs[k], as_unk[k])):
            n = found["words"] + found["sentences"] - unscored - zeroprobs[k]
            assert math.log10(of["ppl"]) == pytest.approx(-of["logprob"] / n)
