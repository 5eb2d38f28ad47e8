"""Test that counting with several threads gives what one thread gives."""

import numpy as np
import pytest
from refusals import refused

from tiedtools.text import counting, sources
from tiedtools.text.counting import count
from tiedtools.text.encoding import encode
from tiedtools.text.vocab import Vocab


@pytest.mark.parametrize(
    "vocab", [None, Vocab(["</s>", "w7", "w1", "zebra"], np.array([3, 2, 1, 1]))], ids=["own", "given"]
)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_result_does_not_depend_on_the_number_of_threads(tmp_path, monkeypatch, threads, vocab):
    """Equal counts are ordered by first occurrence in the text, whichever thread reads it."""
    monkeypatch.setattr(sources, "BLOCK", 50)
    monkeypatch.setattr(counting, "MOST_TABLES", 7)
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{n}" for n in rng.zipf(1.3, 8) % 5000) for _ in range(400)]
    path, second = tmp_path / "text", tmp_path / "second"
    path.write_text("\n".join(lines))
    second.write_text("w1 </s> w7\n" * 3)
    one, many = (encode([str(path), str(second)], 2, vocab=vocab, threads=n) for n in (1, threads))
    assert one.vocab.words == many.vocab.words and one.vocab.counts.tolist() == many.vocab.counts.tolist()
    assert one.ids.tolist() == many.ids.tolist() and one.tokens_read == many.tokens_read
    one, many = (count([str(path)], unk="<unk>", threads=n)[0] for n in (1, threads))
    assert one.words == many.words and one.state.tolist()[:2] == many.state.tolist()[:2]
    assert one.counts[: len(one)].tolist() == many.counts[: len(many)].tolist()


def test_errors_in_a_text_counted_by_several_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 20)
    path = tmp_path / "text"
    path.write_bytes(b"some words\n" * 30 + b"caf\xe9\n" + b"more\n" * 30 + b"\xff\n")
    for threads in (1, 4):
        refused(lambda: encode([str(path)], threads=threads), "text:31: invalid UTF-8 byte 0xe9")
