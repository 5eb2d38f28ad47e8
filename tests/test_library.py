"""The library without its command line: what it writes, logs, and raises."""

import subprocess
import sys

import pytest

TRAIN = """
import sys
from tiedtools.models.word2vec.model import Config, Word2Vec
from tiedtools.text.encoding import encode
text = encode([sys.argv[1]], 1)
model = Word2Vec(text.vocab, Config(size=4, iter=2))
model.train(text)
model.vectors().write(sys.argv[2])
assert not {"click", "tqdm"} & set(sys.modules)
"""
LANGUAGE_MODEL = """
import sys
from tiedtools.models.lstm.config import LstmConfig
from tiedtools.models.lstm.model import LstmLM
from tiedtools.text.lmtext import LmText
from tiedtools.training.fit import Fit, Training
text = LmText.read([sys.argv[1]], valid_share=0.2)
model = LstmLM(text.vocab, LstmConfig(emb=4, batch=2, steps=3))
history = Fit(model, text.train, text.valid, Training(epochs=2)).go()
assert [epoch["epoch"] for epoch in history] == [1, 2]
with open(sys.argv[2], "wb") as file:
    model.save(file)
assert not {"click", "tqdm"} & set(sys.modules)
"""


@pytest.mark.parametrize("code", [TRAIN, LANGUAGE_MODEL], ids=["word2vec", "lstm"])
def test_a_run_is_silent(tmp_path, code):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("the cat sat on the mat\nthe dog sat on a mat\n" * 30)
    result = subprocess.run([sys.executable, "-c", code, text, out], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert out.stat().st_size > 0


def test_errors_name_fields(tmp_path):
    code = "from tiedtools.models.lstm.config import LstmConfig; LstmConfig(emb=4, hidden=5, sharing='tied')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "make `emb` and `hidden` equal, or use `sharing='linear'`" in result.stderr
