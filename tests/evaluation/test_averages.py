"""Test mean probabilities of words over a text, against the definition."""

import json

import numpy as np
import pytest
from fakelm import WORDS, FakeLM

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation import lexicon as lexicon_module
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.perplexity import REPEAT, mean_probabilities

LINES = [["the", "cat", "sat"], [], ["a", "dog", "on", "the", "mat"]] * 9


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text("".join(" ".join(line) + "\n" for line in LINES))
    return str(tmp_path / "text")


@pytest.mark.parametrize("words", [WORDS, [word for word in WORDS if word != "<unk>"]], ids=["unk", "closed"])
@pytest.mark.parametrize("piece", [1 << 14, 4])
def test_means_match_the_definition(monkeypatch, text, words, piece):
    monkeypatch.setattr(lexicon_module, "PIECE", piece)
    model, unk = FakeLM(words), words.index("<unk>") if "<unk>" in words else None
    tokens = [token for line in LINES for token in [*line, "</s>"]]
    ids = [k for k in (words.index(token) if token in words else unk for token in tokens) if k is not None]
    h, last, distributions = np.zeros(5), 0, []
    for word in ids:
        h, last = h / 2 + model.emb[last], word
        distributions.append(np.exp(model.distribution(h)))
    asked = ["cat", REPEAT, "</s>", "sat"]
    found = mean_probabilities(model, Lexicon(model.vocab), text, asked)
    assert list(found) == asked
    before = [0, *ids[:-1]]
    repeated = [p[word] for p, word in zip(distributions, before)], [a == b for a, b in zip(ids, before)]
    assert found.pop(REPEAT) == pytest.approx(tuple(map(np.mean, repeated)), rel=1e-10)
    for word, (mean, share) in found.items():
        assert mean == pytest.approx(np.mean(distributions, axis=0)[words.index(word)], rel=1e-10)
        assert share == pytest.approx(ids.count(words.index(word)) / len(ids))


def test_command(run, text, tmp_path):
    path = tmp_path / "lm.npz"
    with open(path, "wb") as file:
        FakeLM().save(file)
    lexicon = Lexicon(FakeLM().vocab)
    expected = mean_probabilities(FakeLM(), lexicon, text, ["<unk>", "the"])
    plain = run("ppl", path, text).stdout
    lines = [f"{word}\t{mean:.6g}\t{share:.6g}\n" for word, (mean, share) in expected.items()]
    assert run("ppl", path, text, "--average", "<unk>", "--average", "the").stdout == plain + "".join(lines)
    mean, share = mean_probabilities(FakeLM(), lexicon, text, [REPEAT])[REPEAT]
    assert run("ppl", path, text, "--repeats").stdout == plain + f"(repeated)\t{mean:.6g}\t{share:.6g}\n"
    assert 0 < mean < 1 and 0 < share < 1
    found = run("ppl", path, text, "--json", "--average", "the").stdout.splitlines()
    assert json.loads(found[1]) == dict(word="the", mean_probability=expected["the"][0], share=expected["the"][1])
    assert run("ppl", path, "--average", "the").exit_code == 2
    assert run("ppl", path, text, "--average", "the", "--independent").exit_code == 2


def test_unknown_words_are_refused(text):
    model = FakeLM()
    with pytest.raises(TiedtoolsError, match="'dog' is not in the model's vocabulary"):
        mean_probabilities(model, Lexicon(model.vocab), text, ["dog"])
