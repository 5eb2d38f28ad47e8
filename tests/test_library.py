"""Test the library without the command line: its outputs, logs, and errors."""

import json
import subprocess
import sys

import pytest

from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import Files
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.trainer import Word2VecTrainer

TRAIN = """
import sys
from tiedtools.models.word2vec.model import Config, Word2Vec
from tiedtools.text.encoding import encode
text = encode([sys.argv[1]], 1)
model = Word2Vec(text.vocab, Config(size=4, epochs=2))
model.train(text)
model.vectors().write(sys.argv[2])
assert not {"click", "tqdm"} & set(sys.modules)
"""
LANGUAGE_MODEL = """
import sys
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.text.lmtext import LmText
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training
text = LmText.read([sys.argv[1]], valid_share=0.2)
model = LstmLM(text.vocab, LstmConfig(size=4, batch=2, steps=3))
history = Fit(model, text.train, text.valid, Training(epochs=2)).go()
assert [epoch["epoch"] for epoch in history] == [1, 2]
with open(sys.argv[2], "wb") as file:
    model.save(file)
assert not {"click", "tqdm"} & set(sys.modules)
"""


@pytest.mark.parametrize("code", [TRAIN, LANGUAGE_MODEL], ids=["word2vec", "lstm"])
def test_training_prints_nothing(tmp_path, code):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("the cat sat on the mat\nthe dog sat on a mat\n" * 30)
    result = subprocess.run([sys.executable, "-c", code, text, out], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert out.stat().st_size > 0


def test_errors_name_fields(tmp_path):
    code = "from tiedtools.models.lm.config import LstmConfig; LstmConfig(size=4, hidden=5, tying='tied')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "make `size` and `hidden` equal, or use `tying='linear'`" in result.stderr


def test_a_trainer_writes_the_outputs_of_its_command(tmp_path, run, monkeypatch):
    """The outputs are vectors, model, log, checkpoint, and manifest."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("the cat sat on the mat\nthe dog sat on a mat\n" * 30)
    names = {name: f"ours.{name}" for name in ("output", "save_model", "checkpoint", "log_json", "manifest")}
    model = Word2VecTrainer(Config(size=4, epochs=2, threads=1), ["text"], Files(**names), min_count=1).train()
    assert len(model.vocab) == 8 and model.emb_in.shape == (8, 4)
    given = [part for name in names for part in (f"--{name.replace('_', '-')}", f"theirs.{name}")]
    assert run("w2v", "-size", 4, "-epochs", 2, "-min-count", 1, "-threads", 1, *given, "text").exit_code == 0
    for name in "output", "save_model":
        assert (tmp_path / f"ours.{name}").read_bytes() == (tmp_path / f"theirs.{name}").read_bytes()
    ours, theirs = (json.loads((tmp_path / f"{whose}.manifest").read_text()) for whose in ("ours", "theirs"))
    assert ours.keys() == theirs.keys() and ours["argv"] == [] and ours["settings"]["size"] == 4
    assert [output["sha256"] for output in ours["outputs"]] == [output["sha256"] for output in theirs["outputs"]]
    logs = [(tmp_path / f"{whose}.log_json").read_text().splitlines() for whose in ("ours", "theirs")]
    assert [json.loads(line).keys() for line in logs[0]] == [json.loads(line).keys() for line in logs[1]]
    assert (tmp_path / "ours.checkpoint").exists()


def test_a_trainer_rejects_what_its_command_rejects(tmp_path):
    (tmp_path / "text").write_text("a b\n")
    for files, problem in [
        (Files(resume=True), "`resume` needs `checkpoint`"),
        (Files(output=str(tmp_path / "text")), "used as both input and output"),
        (Files(output="v.npz"), "would be read as .npz"),
        (Files(log_json="-"), "`log_json` cannot be standard output or empty"),
    ]:
        with pytest.raises(Contradiction, match=problem):
            Word2VecTrainer(Config(), [str(tmp_path / "text")], files).train()
    with pytest.raises(Contradiction, match="`write=concat`"):
        Word2VecTrainer(Config(tying="tied"), files=Files(write="concat"))
