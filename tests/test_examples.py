"""The recipes of examples/ that make texts and tables."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))

pytestmark = pytest.mark.skipif(not SCRIPTS or shutil.which("sh") is None, reason="needs a checkout and a POSIX shell")


def shell(script, *arguments, **options):
    command = ["sh", str(EXAMPLES / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_syntax_and_usage(script):
    assert subprocess.run(["sh", "-n", script], capture_output=True, text=True).stderr == ""
    result = shell(script.name, stdin=subprocess.DEVNULL)
    assert result.returncode == 2 and result.stderr.startswith("usage: sh ") and result.stdout == ""


def sentences(folder, text, *arguments):
    """The lines of train.txt, valid.txt and test.txt that the recipe makes of a text."""
    result = shell("wiki-sentences.sh", folder, *arguments, input=text)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert sorted(os.listdir(folder)) == ["test.txt", "train.txt", "valid.txt"]
    return [(folder / f"{name}.txt").read_text().splitlines() for name in ("train", "valid", "test")]


def test_wiki_sentences_are_parted_and_shuffled(tmp_path):
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    text = "".join(f"{' '.join([name] * 30)}\n\n" for name in names)  # all frequent, where they are in train.txt
    train, valid, test = sentences(tmp_path, text, 30 * 40 + 29, 10, 12)
    assert [len(part) for part in (train, valid, test)] == [40, 10, 12]
    assert set(valid + test) == {" ".join(["<unk>"] * 30)}
    found = [line.split()[0] for line in train]
    assert len(set(found)) == 40 and set(found) <= set(names) and found != sorted(found)
    assert all(line == " ".join([name] * 30) for line, name in zip(train, found))


def test_wiki_sentences_without_rare_words(tmp_path):
    numbers = np.random.default_rng(1).integers(0, 60, (1000, 3))
    text = "".join(f"The {' '.join(f'W{k}' for k in row)}\n" for row in numbers)
    train, valid, test = sentences(tmp_path, text, 4 * 600, 150, 250)
    counts = Counter(" ".join(train).split())
    assert counts["the"] == 600 and min(counts.values()) >= 30 and 30 < len(counts) < 62
    assert {word for line in valid + test for word in line.split()} == set(counts)
    # Sentences are those of the text, but for the words replaced: as often as these are rare in training.
    original = Counter(word.lower() for word in text.split())
    kept = Counter(" ".join(train + valid + test).split())
    assert all(kept[word] == original[word] for word in counts if word != "<unk>")


def test_the_seed_of_wiki_sentences(tmp_path):
    text = "".join(f"w{k}\n" * 40 for k in range(20))
    same, again, other = (sentences(tmp_path / name, text, 600, 9, 9, seed) for name, seed in zip("abc", (1, 1, 2)))
    assert same == again != other


FAKE = """#!{python}
import json, os, sys
with open("noted", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
if sys.argv[1] == "rnnlm":
    with open(sys.argv[sys.argv.index("--log-json") + 1], "w") as file:
        file.write('{{"epoch": 1, "valid_ppl": 7.5}}' + chr(10))
        file.write('{{"best_epoch": 1, "test_ppl": 12.25, "params": 4, "seconds": 1.5}}' + chr(10))
else:
    print(*sys.argv[1:])
"""


def test_rei(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "tiedtools"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    texts = ["train.txt", "valid.txt", "test.txt"]
    result = shell("rei-table1.sh", *texts, "out dir", "--threads", 2, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert result.returncode == 0 and result.stderr == ""
    *table, similar = result.stdout.splitlines()
    assert table == [f"{size} 12.25" for size in ("100+0", "120+0", "100+20", "135+0", "100+35")]
    assert shlex.split(similar) == "similar out dir/100+20.npz valid.txt --sample 10".split()
    first, *_, last, _ = map(json.loads, (tmp_path / "noted").read_text().splitlines())
    assert first[:6] == ["rnnlm", "-hidden", "100", "--doc-dim", "0", "--sentences"] and first[-2:] == [
        "--threads",
        "2",
    ]
    assert last[1:5] == ["-hidden", "100", "--doc-dim", "35"]
    given = dict(zip(last[6:18:2], last[7:18:2]))
    assert given.pop("--checkpoint") == "out dir/100+35.checkpoint"
    assert [given[name] for name in ("-train", "-valid", "-test")] == texts
