"""Test that every shell command in the documentation and every recipe in examples/ runs unchanged in a POSIX shell.

Code blocks for the reader to run are marked sh; program output and commands that cannot run here (installation, other
programs) are marked console or text. The commands are run as shown, except that they train for one epoch, on a text of
the words in the documentation, and that small files replace the published data sets (forkserver.py).
"""

import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from common import ROOT
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
    before = {path.name for path in tmp_path.iterdir()}
    build = f"'{sys.executable}' examples/corpus.py -package xopen -output {os.devnull}"  # the text already exists
    shell("-eux", lines=lines_to_type(page).replace("python examples/corpus.py -output corpus.txt", build))
    if git("rev-parse").returncode == 0:
        written = {path.name for path in tmp_path.iterdir()} - before | {"corpus.txt"}
        ignored = git("check-ignore", "--no-index", "--stdin", lines="\n".join(written))
        assert set(ignored.stdout.split()) == written, "see .gitignore"


def git(*arguments, lines=None):
    command = ["git" if shutil.which("git") else "false", *arguments]
    return subprocess.run(command, input=lines, cwd=ROOT, capture_output=True, text=True)


def test_git_ignores_no_file_of_the_project():
    if git("rev-parse").returncode:
        pytest.skip("needs a git checkout")
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard").stdout == ""


# Narrow networks; other tests check the sizes in the papers.
RECIPES = """
assylbekov-table2.sh chars-small TEXT TEXT TEXT out --filters 1,2 --hidden 8 --epochs 1;\
 assylbekov-table3.sh out/chars-small-all.npz;\
 assylbekov-figure2.sh out/chars-small-none.npz out/chars-small-all.npz f.png;\
 assylbekov-table5.sh TEXT TEXT out/chars-small-all.npz
gulordava-table1.sh 200-200 TEXT TEXT TEXT out --emb 8 --hidden 8
gulordava-table2.sh 8 4 TEXT TEXT TEXT out
gulordava-table3.sh TEXT out
inan-table1.sh inan-small 1 TEXT TEXT TEXT out --emb 8 --hidden 8
inan-figure1.sh TEXT out 1 --size 8 --epochs 1
inan-table2.sh TEXT TEXT TEXT out --emb 8 --hidden 8; assylbekov-figure3.sh out/part1/VD.npz; INAN4
press-wolf-table2.sh TEXT out; press-wolf-table4.sh out/untied.npz out/tied.npz
press-wolf-table5.sh TEXT TEXT TEXT out --emb 8 --hidden 8
press-wolf-table6.sh TEXT TEXT TEXT out --emb 8 --hidden 8; press-wolf-table3.sh out/small.npz out/small--tie.npz TEXT
press-wolf-table8.sh TEXT TEXT TEXT TEXT TEXT TEXT out --size 8 --hidden 8
quickstart.sh TEXT . matrix file
rei-figure3.sh TEXT TEXT TEXT out 1 -hidden 8 --epochs 1
rei-table1.sh TEXT TEXT TEXT out -hidden 8
tying-by-epoch.sh TEXT out -size 8; tying-by-epoch.sh TEXT out -size 8
""".replace("TEXT", "corpus.txt").replace(
    "INAN4", "inan-table4.sh out/part1/VD.npz out/part1/REAL.npz corpus.txt corpus.txt"
)


@pytest.mark.parametrize("lines", RECIPES.split("\n")[1:-1], ids=lambda lines: lines.split()[0])
def test_recipe(shell, lines):
    shell("-eu", lines="\n".join(f"sh examples/{line.strip()}" for line in lines.split(";")))


def test_every_recipe_is_run():
    run_elsewhere = {"wiki-sentences.sh"}  # in test_examples.py
    assert {path.name for path in EXAMPLES.glob("*.sh")} == {*re.findall(r"[\w-]+\.sh", RECIPES)} | run_elsewhere


def test_code_blocks_are_marked():
    for page in PAGES:
        for kind, code in FENCE.findall(page.read_text()):
            assert kind in ("sh", "console", "text", "python", "math"), f"{page.name}: a block marked {kind!r}:\n{code}"
