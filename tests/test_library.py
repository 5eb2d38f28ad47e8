"""Test use as a library, the first run, and examples/python.py."""

import importlib.util
import json
import os
import platform
import random
import re
import subprocess
import sys

import pytest
from common import ROOT, refused

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


def test_a_trainer_writes_and_rejects_what_its_command_does(tmp_path, run, monkeypatch):
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
    (tmp_path / "text").write_text("a b\n")
    for files, problem in [
        (Files(resume=True), "`resume` needs `checkpoint`"),
        (Files(output=str(tmp_path / "text")), "used as both input and output"),
        (Files(output="v.npz"), "would be read as .npz"),
        (Files(log_json="-"), "`log_json` cannot be standard output or empty"),
    ]:
        refused(lambda: Word2VecTrainer(Config(), [str(tmp_path / "text")], files).train(), problem, kind=Contradiction)
    with pytest.raises(Contradiction, match="`write=concat`"):
        Word2VecTrainer(Config(tying="tied"), files=Files(write="concat"))


RUN = "-size 20 --epochs 1 -threads 1 --seed 1"
COMMANDS = {
    "w2v": f"w2v {RUN} -min-count 1 --tie-linear",
    "rnnlm": "rnnlm -hidden 20 -class 5 -bptt 3 -bptt-block 5 -max-iter 1 -threads 1 --doc-dim 5",
    "lstm": f"lstm {RUN} -hidden 24 --batch 5 --steps 7 --tie-linear",
    "nmt": f"nmt {RUN} --hidden 24 --source text --target",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_first_and_later_runs_write_the_same_bytes(name, tmp_path):
    rng = random.Random(1)
    lines = (" ".join(f"w{int(rng.paretovariate(0.7)) % 50}" for _ in range(8)) for _ in range(60))
    (tmp_path / "text").write_text("\n".join(lines))
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)
    if platform.machine() in ("x86_64", "AMD64"):  # kernels for this CPU differed when they were compiled twice
        env |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}

    def run(precision):
        options = [] if name == "rnnlm" else ["--precision", precision]
        command = [sys.executable, "-m", "tiedtools", *COMMANDS[name].split(), "text", *options]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True, text=True)
        return done.stdout, "compil" in done.stderr

    precisions = ["float32"] if name == "rnnlm" else ["float32", "bfloat16"]
    first = [run(precision) for precision in precisions]
    assert first[0][1] and len(first[0][0]) > 1000
    assert [run(precision) for precision in precisions] == [(vectors, False) for vectors, _ in first]


EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "python.md"

needs_examples = pytest.mark.skipif(not (EXAMPLES.is_dir() and PAGE.exists()), reason="needs a checkout")


def python(script, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@needs_examples
def test_the_example_and_the_page(tmp_path):
    printed = python(EXAMPLES / "python.py", tmp_path, 2000).splitlines()
    assert [line.split(":")[0] for line in printed if line.startswith("epoch ")] == ["epoch 1", "epoch 2", "epoch 3"]
    perplexity = next(line for line in printed if line.startswith("test perplexity "))
    assert 1 < float(perplexity.split()[-1]) < 1000
    assert any(line.startswith("the name of the -> ") for line in printed) and os.listdir(tmp_path) == []
    code = "".join(blocks(PAGE))
    shown = code + (EXAMPLES / "technical-pairs.txt").read_text()
    words, source = sorted(set(re.findall("[a-z]+", shown.lower()))), random.Random(1)
    lines = [" ".join(source.choices(words, k=6)) for _ in range(4100)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "guide.py").write_text(code)
    numbers = subprocess.run(["awk", "-f", EXAMPLES / "numbers.awk"], capture_output=True, check=True).stdout
    (tmp_path / "numbers.tsv").write_bytes(numbers)
    printed = python("guide.py", tmp_path)
    assert "\nzwei und vierzig\nneun hundert elf\n" in printed
    assert printed.startswith("(100,) True ") and "unknown setting `sizes`; did you mean `size`?\n" in printed


def blocks(page):
    """The Python code of a page; what needs gensim only if it is installed."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [code for code in found if importlib.util.find_spec("gensim") or "gensim" not in code]


def test_the_notebook(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    file = EXAMPLES / "tour.ipynb"
    notebook = nbformat.read(file, as_version=4)
    assert file.stat().st_size < 20_000 and [cell for cell in notebook.cells if cell.get("outputs")]
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    printed = [out.get("text", "") for cell in notebook.cells for out in cell.get("outputs", ())]
    first, _, last = next(text for text in printed if text.startswith("word    slice")).split("\n")[1:4]
    assert "function" not in first and "functions" in last  # the change that was planted
