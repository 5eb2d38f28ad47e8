"""Test that every shell command in the documentation and every recipe in examples/ runs unchanged in a POSIX shell.

Code blocks for the reader to run are marked sh; program output and commands that cannot run here (installation, other
programs) are marked console or text. The commands are run as shown, except that they train for one epoch, on a text of
the words in the documentation, and that small files replace the published data sets (forkserver.py).
"""

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from common import ROOT, regex_or_skip
from forkserver import CLIENT

from tiedtools.text.datasets import DATASETS, SIMILARITY

EXAMPLES = ROOT / "examples"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))] if EXAMPLES.is_dir()]
PAIRS = "technical-pairs.txt"

pytestmark = pytest.mark.skipif(
    not PAGES or not sys.platform.startswith("linux") or shutil.which("sh") is None,
    reason="needs a checkout, Linux and a POSIX shell",
)


def lines_to_type(page):
    return "".join(code for kind, code in FENCE.findall(page.read_text()) if kind == "sh")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A folder with a `tiedtools` executable, for PATH."""
    folder = tmp_path_factory.mktemp("server")
    address, client = str(folder / "socket"), folder / "bin" / "tiedtools"
    client.parent.mkdir()
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "tests/helpers/forkserver.py", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"ready\n"
        yield client.parent
        process.terminate()


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with a text in which each word of the commands and word pairs is frequent, and small data sets."""
    folder = tmp_path_factory.mktemp("texts")
    shown = "".join([*map(lines_to_type, PAGES), (EXAMPLES / PAIRS).read_text()])
    words = sorted(set(re.findall("[a-z]+", shown.lower()))) * 12
    random.Random(1).shuffle(words)
    lines = [" ".join(words[k : k + 9]) for k in range(0, len(words), 9)]
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n")
    for name, dataset in DATASETS.items():
        path = folder / "sets" / dataset.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in SIMILARITY:
            shutil.copy(EXAMPLES / PAIRS, path)
        elif name == "google-analogies":
            path.write_text(": gram1\nfile files word words\nword words file files\n")
        else:
            path.write_text("\n".join(lines[:200]) + "\n")
    return folder


FEW = {"EPOCHS": "1 2", "SEEDS": "1"}  # of tying-by-epoch.sh


@pytest.fixture
def shell(server, texts, tmp_path):
    """Run a shell in a folder with the text as corpus.txt and a link to the checkout's examples/."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    shutil.copy(texts / "corpus.txt", tmp_path)

    def shell(*command, lines=None):
        path = f"{server}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "TIEDTOOLS_DATA": str(texts / "sets"), "PS4": "$ ",
            **FEW,
        }  # fmt: skip
        command = ["sh", *map(str, command)]
        result = subprocess.run(command, input=lines, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    return shell


@pytest.mark.parametrize("page", [page for page in PAGES if lines_to_type(page)], ids=lambda page: page.name)
def test_page(shell, page, tmp_path):
    """The commands run; a checkout in which they are typed has no new files for git."""
    if "tiedtools tokenize" in lines_to_type(page):
        regex_or_skip()
    before = {path.name for path in tmp_path.iterdir()}
    build = f"'{sys.executable}' examples/corpus.py -package xopen -output {os.devnull}"  # the text already exists
    lines = lines_to_type(page).replace("python examples/corpus.py -output corpus.txt", build)
    texts = f"{build}; mkdir texts; tee <corpus.txt texts/numpy.txt >texts/scipy.txt"
    shell("-eux", lines=lines.replace("python examples/corpus.py --raw texts", texts))
    if git("rev-parse").returncode == 0:
        written = {path.name for path in tmp_path.iterdir()} - before | {"corpus.txt"}
        ignored = git("check-ignore", "--no-index", "--stdin", lines="\n".join(written))
        assert set(ignored.stdout.split()) == written, "see .gitignore"


def git(*arguments, lines=None):
    command = ["git" if shutil.which("git") else "false", *arguments]
    return subprocess.run(command, input=lines, cwd=ROOT, capture_output=True, text=True)


# Narrow networks; test_results.py checks the command lines of all rows.
SMALL = "--hidden 8 --threads 1"
RECIPES = f"""
sh examples/quickstart.sh corpus.txt . matrix file
sh examples/tying-by-epoch.sh corpus.txt out -size 8; sh examples/tying-by-epoch.sh corpus.txt out -size 8
PAPERS gulordava-table3 "CBOW tied+L" --options "-size 8"
PAPERS inan-figure1 "BETA 1, temperature 5" --options "{SMALL} --size 8"
PAPERS inan-table2 "half 2, AL" --options "{SMALL} --size 8"
PAPERS press-wolf-table2 input output --options "-size 8"; PAPERS press-wolf-table4 "skip-gram: input and output"
PAPERS press-wolf-table8 "English to German, untied" --options "{SMALL} --size 8"
PAPERS rei-table1 "M = 100, D = 20" --options "-hidden 8"; PAPERS rei-table3 "M = 100, D = 20"
PAPERS assylbekov-table2 "MorphSum RE+RW, PTB small" --options "{SMALL} --size 8";\
 PAPERS assylbekov-table3 MorphSum-RE+RW-PTB-small; PAPERS assylbekov-table5 MorphSum
""".replace("\\\n", "")
TEXTS = "text8", "wiki", "wiki-sentences-train", "wiki-sentences-valid", "wiki-sentences-test"
PAPERS = " ".join(
    [f"{shlex.quote(sys.executable)} examples/papers.py --folder out --results results --epochs 1 --seed 9"]
    + [f"--text {name}=corpus.txt" for name in TEXTS]
)


@pytest.mark.parametrize("lines", RECIPES.split("\n")[1:-1], ids=lambda lines: " ".join(lines.split()[:2]))
def test_recipe(shell, lines, tmp_path):
    shell("-eu", lines=lines.replace("; ", "\n").replace("PAPERS", PAPERS))
    for path in (tmp_path / "results").glob("*.json"):
        data = json.loads(path.read_text())
        runs = [run for row in data["rows"] for run in row["runs"] if run["seed"] == 9]
        assert runs and all(data["figures"][-1] in run for run in runs)


def test_scripts_are_run_blocks_marked_and_no_file_ignored():
    run_elsewhere = {"wiki-sentences.sh"}  # in test_examples.py
    assert {path.name for path in EXAMPLES.glob("*.sh")} == {*re.findall(r"[\w-]+\.sh", RECIPES)} | run_elsewhere
    for page in PAGES:
        for kind, code in FENCE.findall(page.read_text()):
            assert kind in ("sh", "console", "text", "python", "math"), f"{page.name}: a block marked {kind!r}:\n{code}"
    if git("rev-parse").returncode:
        pytest.skip("needs a git checkout")
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard").stdout == ""
