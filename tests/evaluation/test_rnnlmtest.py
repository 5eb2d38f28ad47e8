"""Test the output of `rnnlm -test`, `-nbest`, and `-gen` against a word-by-word computation."""

import contextlib
import gzip
import io

import numpy as np
import pytest
from common import refused
from fakelm import WORDS, FakeLM

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation import rnnlmtest
from tiedtools.text.vocab import END

CLOSED = [word for word in WORDS if word != "<unk>"]
TEXT = "the cat sat\n\non the zebra mat\n" * 2
IDS = [
    0 if word == END else CLOSED.index(word) if word in CLOSED else -1
    for word in TEXT.replace("\n", f" {END} ").split()
]


class OpenLM(FakeLM):
    """Reads -1 as a zero vector; `learn` scores, then doubles the output vectors, and records its `lr`."""

    def __init__(self, words=CLOSED):
        super().__init__(words)
        self.emb = np.vstack([self.emb, np.zeros(5)])

    def steps(self, ids, state):
        h = state[0][0]
        for row in ids:
            h = h / 2 + self.emb[row]
            yield h

    def learn(self, ids, lr):
        self.lr, found = lr, self.by_definition(ids)
        self.out *= 2
        return found

    def log10s(self, h, last, ids):
        """Return the log10 probability of each word after `last`, and the state that predicted the last one."""
        found = []
        for word in ids:
            h = h / 2 + self.emb[last]
            found.append(self.distribution(h)[word] / np.log(10))
            last = word
        return np.array(found), h


@pytest.fixture
def lm_prob(tmp_path):
    """Return a file of probabilities and their values; the second and last OOV has probability 0 there, too."""
    q = np.random.default_rng(1).uniform(0.01, 0.2, len(IDS)).round(4)
    q[17] = 0
    (path := tmp_path / "probs").write_text("".join(f"{x} and more\n" for x in q))
    return str(path), q


def printed(function, *args, **options):
    out = io.StringIO()
    function(*args, out.write, **options)
    return out.getvalue()


def test_totals_every_word_and_dynamic_evaluation(text, monkeypatch, lm_prob):
    model = OpenLM()
    p, _ = model.log10s(np.zeros(5), 0, IDS)
    known = np.array(IDS) >= 0
    total = p[known].sum()
    expected = f"\ntest log probability: {total:f}\n\nPPL net: {10 ** (-total / known.sum()):f}\n"
    assert printed(rnnlmtest.test, model, text) == expected and known.sum() == 18
    assert printed(rnnlmtest.test, model, text, debug=0) == ""
    p = 10 ** model.log10s(np.zeros(5), 0, IDS)[0]
    lines = printed(rnnlmtest.test, model, text, debug=2).split("\n")
    assert lines[:2] == ["Index   P(NET)          Word", "-" * 34]
    assert lines[2:6] == [f"{k}\t{p[i]:.10f}\t{CLOSED[k]}" for i, k in enumerate(IDS[:4])]
    assert lines[9] == "-1\t0\t\tOOV" and len(lines) == 2 + 20 + 4 + 1
    before = printed(rnnlmtest.test, model, text)
    whole = printed(rnnlmtest.test, OpenLM(), text, lm_prob=lm_prob[0], debug=2)
    monkeypatch.setattr("tiedtools.evaluation.lexicon.PIECE", 3)
    assert printed(rnnlmtest.test, model, text, dynamic=0.3) == before and model.lr == 0.3
    assert printed(rnnlmtest.test, model, text) != before
    assert printed(rnnlmtest.test, OpenLM(), text, lm_prob=lm_prob[0], debug=2) == whole


def test_interpolation_with_another_model(text, lm_prob):
    path, q = lm_prob
    model, known = OpenLM(), np.array(IDS) >= 0
    p = np.where(known, 10 ** model.log10s(np.zeros(5), 0, IDS)[0], 0)
    # An OOV counts if the other model knows it; this model then has 10**-8 in its own total and 0 in the mixture.
    counted = known | (q > 0)
    assert counted.sum() == 19
    net = np.where(known, np.log10(np.where(known, p, 1)), -8)[counted].sum()
    other, mixed = np.log10(q[counted]).sum(), np.log10((0.6 * p + 0.4 * q)[counted]).sum()
    ppl = [10 ** (-total / 19) for total in (net, other, mixed)]
    expected = (
        f"\ntest log probability: {net:f}\ntest log probability given by other lm: {other:f}\n"
        f"test log probability 0.600000*rnn + 0.400000*other_lm: {mixed:f}\n\n"
        f"PPL net: {ppl[0]:f}\nPPL other: {ppl[1]:f}\nPPL combine: {ppl[2]:f}\n"
    )
    assert printed(rnnlmtest.test, model, text, lm_prob=path, weight=0.6) == expected
    lines = printed(rnnlmtest.test, model, text, lm_prob=path, weight=0.6, debug=2)
    assert lines.endswith(expected)
    lines = lines.split("\n")
    assert lines[:2] == ["Index   P(NET)          P(LM)           Word", "-" * 50]
    assert lines[2] == f"{IDS[0]}\t{p[0]:.10f}\t{q[0]:.10f}\tthe" and lines[9] == "-1\t0\t\t0\t\tOOV"


BAD = {
    "0.5\n0.1\n": ":3: the file ends too early", "": ":1: the file ends too early", "0.5\nx\n": ":2: not a probability",
    "0.5\n\n0.1\n": ":2: not a probability", "-2.5\n": ":1: not a probability", "nan\n": ":1: not a probability",
}  # fmt: skip


@pytest.mark.parametrize("content, message", BAD.items())
@pytest.mark.parametrize("function", [rnnlmtest.test, rnnlmtest.nbest])
def test_errors_name_the_line_of_an_invalid_probability(text, tmp_path, function, content, message):
    (path := tmp_path / "bad").write_text(content)
    refused(lambda: printed(function, OpenLM(), text, lm_prob=str(path)), f"{path}{message}")


@pytest.mark.parametrize("function", [rnnlmtest.test, rnnlmtest.nbest])
def test_unused_probabilities_are_reported(text, tmp_path, messages, function):
    path, told = tmp_path / "probs", []
    for n in range(1, 99):
        path.write_text("0.5\n" * n)
        with contextlib.suppress(TiedtoolsError):  # too few
            printed(function, OpenLM(), text, lm_prob=str(path))
            told.append(messages())
    warning = f"{path}: has more lines than the text has words and line ends; is it for this text?\n"
    assert told[0] == "" and set(told[1:]) == {warning}


NBEST = "1 the cat\n1 the zebra cat\n1 on\n\nb the mat mat\nb\n1 the cat\n"
HYPOTHESES = [["1", "the cat"], ["1", "the zebra cat"], ["1", "on"], ["b", "the mat mat"], ["b", ""], ["1", "the cat"]]


def rescored(model, q=None, weight=1.0):
    """Return the log10 probability of each hypothesis, and totals of this model, the other, and the mixture."""
    context, first_end, last, scores, totals = model.emb[0], None, None, [], np.zeros(3)
    q = iter(np.zeros(100) if q is None else q)
    for utterance, words in HYPOTHESES:
        if utterance != last:
            context, last = context if first_end is None else first_end, utterance
            first_end = None
        ids = [CLOSED.index(word) if word in CLOSED else -1 for word in words.split()] + [0]
        logs, end = model.log10s(context, 0, ids)
        first_end = end if first_end is None else first_end
        found = []
        for word, log in zip(ids, logs):
            other = next(q)
            with np.errstate(divide="ignore"):
                oov = np.log10(other) if other else -5
                found.append([log, np.log10(other), np.log10(weight * 10**log + (1 - weight) * other)])
            found[-1] = found[-1] if word >= 0 else [oov] * 3
        scores.append(np.sum(found, 0)[2])
        totals += np.sum(found, 0)
    return scores, totals


@pytest.fixture
def hypotheses(tmp_path):
    (path := tmp_path / "nbest.gz").write_bytes(gzip.compress(NBEST.encode()))
    return str(path)


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_nbest(hypotheses, monkeypatch, batch):
    """The context of an utterance follows the first hypothesis of the previous one, even if it is not the best."""
    monkeypatch.setattr("tiedtools.evaluation.rnnlmtest.BATCH", batch)
    scores, (net, _, _) = rescored(OpenLM())
    lines = "".join(f"{score:f}\n" for score in scores)
    ppl = 10 ** (-net / 17)
    assert printed(rnnlmtest.nbest, OpenLM(), hypotheses, debug=0) == lines
    totals = f"\ntest log probability: {net:f}\n\nPPL net: {ppl:f}\n"
    assert printed(rnnlmtest.nbest, OpenLM(), hypotheses) == lines + totals


def test_nbest_interpolated_with_another_model(hypotheses, tmp_path):
    q = np.random.default_rng(1).uniform(0.01, 0.2, 17).round(4)
    (path := tmp_path / "probs").write_text("".join(f"{x}\n" for x in q))
    scores, (net, other, both) = rescored(OpenLM(), q, 0.75)
    ppl = [10 ** (-total / 17) for total in (net, other, both)]
    assert printed(rnnlmtest.nbest, OpenLM(), hypotheses, lm_prob=str(path)) == "".join(
        f"{score:f}\n" for score in scores
    ) + (
        f"\ntest log probability: {net:f}\ntest log probability given by other lm: {other:f}\n"
        f"test log probability 0.750000*rnn + 0.250000*other_lm: {both:f}\n\n"
        f"PPL net: {ppl[0]:f}\nPPL other: {ppl[1]:f}\nPPL combine: {ppl[2]:f}\n"
    )
    (tmp_path / "empty").write_text("\n\n")
    refused(lambda: printed(rnnlmtest.nbest, OpenLM(), str(tmp_path / "empty")), "empty: no hypotheses")


def test_generate():
    words = ["</s>", "the", "cat"]
    text = printed(rnnlmtest.generate, FakeLM(words), 500, seed=3)
    same, other = (printed(rnnlmtest.generate, FakeLM(words), 500, seed=seed) for seed in (3, 4))
    assert same == text != other
    tokens = text.replace("\n", f"{END} ").split(" ")[:-1]
    assert len(tokens) == 500 and set(tokens) == set(words)
    # Over many seeds, the first word has the model's probability.
    first = [printed(rnnlmtest.generate, FakeLM(words), 1, seed=seed) for seed in range(400)]
    p = np.exp(FakeLM(words).by_definition([1])[0])
    assert abs(first.count("the ") - 400 * p) < 4 * np.sqrt(400 * p * (1 - p))
