"""Find and join the phrases of a text with tiedtools and with gensim, and compare times and texts.

    python examples/phrases.py TEXT [--scoring default|npmi]

Both count and join with the same settings in the same run; the joined texts must be equal. gensim has one thread.
"""

import argparse
import importlib.util
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENSIM = """
import sys
from gensim.models.phrases import Phrases
from gensim.models.word2vec import LineSentence

text, output, scoring, threshold = sys.argv[1:]
phrases = Phrases(LineSentence(text, max_sentence_length=10**9), threshold=float(threshold), scoring=scoring).freeze()
with open(text, encoding="utf-8") as lines, open(output, "w", encoding="utf-8") as file:
    file.writelines(" ".join(phrases[line.split()]) + "\\n" for line in lines)
"""


def measure(name, command):
    """Run a command; print its wall-clock and CPU time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if status := subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}).returncode:
        sys.exit(status)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:10} {seconds:8.2f} s {cpu:8.2f} s of CPU time", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--scoring", choices=["default", "npmi"], default="default")
    arguments = parser.parse_args()
    if importlib.util.find_spec("gensim") is None:
        parser.error("gensim is not installed; run pip install gensim")
    threshold = {"default": "10", "npmi": "0.5"}[arguments.scoring]
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "theirs")
        command = [sys.executable, "-m", "tiedtools", "phrases", arguments.text, "-debug", "0"]
        command += ["--scoring", arguments.scoring]
        for _ in range(3):
            measure("tiedtools", [*command, "--threshold", threshold, "-output", ours])
        measure("gensim", [sys.executable, "-c", GENSIM, arguments.text, theirs, arguments.scoring, threshold])
        words = [path.read_text(encoding="utf-8").rstrip("\n").split("\n") for path in (ours, theirs)]
        different = sum(one.split() != two.split() for one, two in itertools.zip_longest(*words, fillvalue=""))
        different += len(words[0]) != len(words[1])
        print(f"{len(words[0]):,} lines, {different:,} different")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
