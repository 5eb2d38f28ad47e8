"""Test words outside the vocabulary in n-best lists: `nbest` and LanguageModel.score."""

import numpy as np
import pytest
from fakelm import WORDS, FakeLM
from refusals import refused

import tiedtools as tt
from tiedtools.base.errors import Contradiction

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
    with open(tmp_path / "model", "wb") as file:
        FakeLM(words).save(file)
    text = "".join(f"{line}\n" for line in LINES).encode()
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    result = run("nbest", tmp_path / "model", "--batch", batch, *options, input=text)
    assert result.stdout == "".join(f"{score:.6f}\n" for score in found) and told in result.stderr


def test_the_best_hypothesis_is_chosen_with_the_penalty(run, tmp_path):
    """The state after it is context of the next utterance."""
    with open(tmp_path / "model", "wb") as file:
        FakeLM(CLOSED).save(file)
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


def test_statistics_tell_of_words_that_are_not_scored(messages):
    for words, told in (WORDS, ""), (CLOSED, "5 words outside the vocabulary were skipped"):
        model = tt.LanguageModel()
        model.trained = FakeLM(words)
        found = model.statistics([line.split() for line in LINES])
        assert messages().startswith(told) and found["oovs"] == 5 * bool(told) and found["as_unk"] == 5 * (not told)
