"""Test phrases against plain implementations of word2phrase and of gensim's counting, and against gensim itself."""

import collections
import itertools
import math

import numpy as np
import pytest
from common import refused

from tiedtools.base.errors import Contradiction
from tiedtools.text import phrasetext as module
from tiedtools.text.phrases import Phrase, Phrases

DELIMITER, OF = "_", ("of", "the")


def sentences(seed, n=300, units="a,b,c,a_b,b_c,of,the,é,x of y,c é"):
    """Draw sentences in which words and joined words, such as a_b, are the same strings in several ways."""
    rng, units = np.random.default_rng(seed), units.split(",")
    weights = rng.dirichlet(np.full(len(units), 3))
    return [" ".join(rng.choice(units, rng.integers(0, 9), p=weights)).split() for _ in range(n)]


def candidates(sentence, connectors):
    """Yield (position, end) of two words with nothing but connectors between them."""
    at = [k for k, word in enumerate(sentence) if word not in connectors]
    yield from itertools.pairwise(at)


def plain_pass(text, scoring, threshold, min_count=5, connectors=()):
    """Learn and join the phrases of sentences as word2phrase.c and gensim do; return (joined text, {words: score})."""
    counts, words = collections.Counter(), sum(map(len, text))
    across = scoring == "word2phrase"
    for sentence in [[word for line in text for word in line]] if across else text:
        counts.update(word for word in sentence if word not in connectors)
        counts.update(DELIMITER.join(sentence[i : j + 1]) for i, j in candidates(sentence, connectors))

    def score(a, *rest):
        n_a, n_b, n_ab = counts[a], counts[rest[-1]], counts[DELIMITER.join([a, *rest])]
        if min(n_a, n_b, n_ab) == 0 or scoring != "default" and n_ab < min_count:
            return -math.inf
        if scoring == "default":
            return (n_ab - min_count) / float(n_a * n_b) * len(counts)
        if scoring == "npmi":
            p_a, p_b, p_ab = n_a / words, n_b / words, n_ab / words
            return math.log(p_ab / (p_a * p_b)) / -math.log(p_ab)
        f = np.float32
        return -math.inf if min(n_a, n_b) < min_count else float(f(n_ab - min_count) / f(n_a) / f(n_b) * f(words))

    scores, joined = {}, []
    for sentence in text:
        ends = {}
        for i, j in candidates(sentence, connectors):
            if (value := score(*sentence[i : j + 1])) > threshold:
                scores[tuple(sentence[i : j + 1])] = value
                if i not in ends.values():
                    ends[i] = j
        line, k = [], 0
        while k < len(sentence):
            end = ends.get(k, k)
            line.append(DELIMITER.join(sentence[k : end + 1]))
            k = end + 1
        joined.append(line)
    return joined, scores


THRESHOLDS = {"word2phrase": (2, 1), "default": (0.05, 0), "npmi": (0.1, -0.2)}


@pytest.mark.parametrize("connectors", [(), OF], ids=["", "connectors"])
@pytest.mark.parametrize("scoring", THRESHOLDS)
@pytest.mark.parametrize("seed", range(4))
def test_two_passes_against_plain_implementation(scoring, connectors, seed):
    text = sentences(seed)
    phrases = Phrases(scoring=scoring, threshold=THRESHOLDS[scoring], connectors=connectors).fit(text)
    expected, found = text, []
    for threshold in THRESHOLDS[scoring]:
        expected, scores = plain_pass(expected, scoring, threshold, connectors=connectors)
        found.append(scores)
    assert [{p.words: p.score for p in one} for one in phrases.passes] == found
    assert list(phrases.apply(text)) == expected
    assert sum(map(len, found)) > 2  # the text has phrases


@pytest.mark.parametrize("scoring", ["default", "npmi"])
@pytest.mark.parametrize("seed", range(3))
def test_against_gensim(scoring, seed):
    models = pytest.importorskip("gensim.models.phrases", reason="needs gensim")
    text, threshold = sentences(seed), {"default": 0.05, "npmi": 0.02}[scoring]
    theirs = models.Phrases(text, min_count=5, threshold=threshold, scoring=scoring, connector_words=frozenset(OF))
    ours = Phrases(scoring=scoring, threshold=threshold, connectors=OF).fit(text)
    assert list(ours.apply(text)) == list(theirs[text])
    for words, score, count in ours.passes[0]:
        joined = DELIMITER.join(words)
        assert theirs.score_candidate(words[0], words[-1], list(words[1:-1])) == (joined, score)
        assert theirs.vocab[joined] == count
    assert {DELIMITER.join(p.words) for p in ours.passes[0]} >= theirs.find_phrases(text).keys() != set()


@pytest.mark.filterwarnings("error")
def test_list_is_saved_and_applied_to_another_text(tmp_path):
    phrases = Phrases(threshold=[2, 1], connectors="of,the", delimiter="++").fit(sentences(1))
    phrases.save(tmp_path / "list"), phrases.save(tmp_path / "list.gz")
    (tmp_path / "crlf").write_bytes((tmp_path / "list").read_bytes().replace(b"\n", b"\r\n"))
    loaded = Phrases.load(tmp_path / "list.gz")
    assert Phrases.load(tmp_path / "crlf").passes == loaded.passes
    assert loaded.passes == [sorted(one, key=lambda phrase: -phrase.score) for one in phrases.passes]
    assert loaded.delimiter == "++" and len({phrase.score for phrase in loaded.passes[0]}) > 1
    other = sentences(2, units="a,b,c é,a++b,of,unheard,the,é,x of y")
    assert list(loaded.apply(other)) == list(phrases.apply(other)) != other
    loaded.passes = [[], [Phrase(("x", "y"), 1.0, 1)]]
    loaded.save(tmp_path / "list")
    assert Phrases.load(tmp_path / "list").passes == loaded.passes
    assert list(loaded.apply([["x"], ["y", "x", "y", "y"], []])) == [["x"], ["y", "x++y", "y"], []]


@pytest.mark.parametrize("line", [
    "1\ta_b\ta b\t1.0", "1\ta_b\ta c\t1.0\t5", "1\ta\ta\t1.0\t5", "x\ta_b\ta b\t1.0\t5", "1\tab\ta b\t1.0\t5", "",
    "1\ta__b\ta  b\t1.0\t5",
])  # fmt: skip
def test_wrong_list_is_named_with_its_line(tmp_path, line):
    (path := tmp_path / "list").write_text(f"pass\tphrase\twords\tscore\tcount\n1\tx_y\tx y\t2.0\t7\n{line}\n")
    refused(lambda: Phrases.load(path), "list:3: ")
    path.write_text("a b\n")
    refused(lambda: Phrases.load(path), "list:1: ")


@pytest.mark.parametrize(
    "settings",
    [{"threshold": -1}, {"threshold": 2, "scoring": "npmi"}, {"threshold": (1, math.nan)}, {"delimiter": "a b"},
     {"delimiter": ""}, {"min_count": 0}, {"scoring": "pmi"}, {"connectors": 5}, {"scoring": ["a text"]}],
)  # fmt: skip
def test_wrong_settings(settings):
    refused(lambda: Phrases(**settings), kind=Contradiction)
    for use in lambda: next(Phrases().apply([["a"]])), lambda: Phrases().save("/dev/null"):
        refused(use, "no phrases are learned")


def test_counts_are_exact_until_memory_is_full(monkeypatch, messages):
    """The smallest table grows; with less memory, rare pairs are dropped, and a warning says so."""
    rng = np.random.default_rng(0)
    rare = rng.integers(0, 40_000, (2000, 20)).astype(str).tolist()
    text = [[*line, "new", "york"] for line in rare]
    monkeypatch.setattr(module, "SAMPLE", 1 << 14)  # an estimate of almost nothing
    exact = Phrases(threshold=10, max_memory=100).fit(text)
    assert "dropped" not in messages()
    assert exact.passes == Phrases(threshold=10).fit(text).passes and exact.passes[0][0][::2] == (("new", "york"), 2000)
    pruned = Phrases(threshold=10, max_memory=1).fit(text)
    assert messages().count("dropped") == 1
    assert pruned.passes[0][0].words == ("new", "york") and pruned.passes[0][0].occurrences > 1000


def test_command_line_of_word2phrase(run, tmp_path, monkeypatch):
    """A line of demo-phrases.sh; the output is word2phrase's, without its blank at the start of a line."""
    monkeypatch.setattr(module, "BLOCK", 7)
    text, output = tmp_path / "text", tmp_path / "text-phrase0"
    lines = sentences(3)
    text.write_text("\n".join(map(" ".join, lines)) + "\n")
    result = run("phrases", "-train", text, "-output", output, "-threshold", "2", "-debug", "2")
    assert (result.exit_code, result.stdout_bytes) == (0, b"")
    expected = "\n".join(map(" ".join, plain_pass(lines, "word2phrase", 2)[0])) + "\n"
    assert output.read_text() == expected != text.read_text()
    saved = tmp_path / "list"
    assert run("phrases", text, "-threshold", "2", "--save", saved).stdout_bytes.decode() == expected
    assert run("phrases", "--load", saved, "-", input=text.read_bytes()).stdout_bytes.decode() == expected
    assert run("phrases", "--load", saved, "-threshold", "3", text).exit_code == 2
    train = "rnnlm", text, "-test", text, "-rnnlm", tmp_path / "m", "-one-iter", "-debug", 0, "--phrases", "-"
    assert run(*train, input=saved.read_bytes()).exit_code == 0  # the list is read once
