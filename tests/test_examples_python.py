"""The Python programs that examples/ and docs/python.md show run as they stand."""

import importlib.util
import os
import random
import re
import subprocess
import sys

import pytest
from paths import ROOT

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "python.md"

pytestmark = pytest.mark.skipif(not (EXAMPLES.is_dir() and PAGE.exists()), reason="needs a checkout")


def python(script, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_the_example(tmp_path):
    printed = python(EXAMPLES / "python.py", tmp_path, 2000).splitlines()
    assert [line.split(":")[0] for line in printed if line.startswith("epoch ")] == ["epoch 1", "epoch 2", "epoch 3"]
    perplexity = next(line for line in printed if line.startswith("test perplexity "))
    assert 1 < float(perplexity.split()[-1]) < 1000
    assert any(line.startswith("the name of the -> ") for line in printed) and os.listdir(tmp_path) == []


def blocks(page):
    """The Python code of a page; what needs gensim only if it is installed."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [code for code in found if importlib.util.find_spec("gensim") or "gensim" not in code]


def test_the_page(tmp_path):
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
