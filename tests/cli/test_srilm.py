"""Test that `ppl` counts as SRILM does: its scripts that read the output compute the same perplexities."""

import json
import math
import re

import pytest
from fakelm import WORDS, FakeLM

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
    with open("model", "wb") as file:
        FakeLM(words, never=never).save(file)
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


def test_json_has_the_same_counts(run, case):
    model, oovs, zeroprobs, as_unk = case
    for k in 0, 1:
        found = json.loads(run("ppl", model, f"text{k}", "--json").stdout)
        assert [found[name] for name in ("oovs", "zeroprobs", "as_unk")] == [oovs[k], zeroprobs[k], as_unk[k]]
        n = found["words"] + found["sentences"] - oovs[k] - zeroprobs[k]
        assert math.log10(found["ppl"]) == pytest.approx(-found["logprob"] / n)
