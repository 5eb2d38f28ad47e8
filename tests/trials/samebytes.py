"""Check that small training runs of every kind give the same bytes after refactoring.

    bin/samebytes record FILE    train, and write a digest of each result to FILE
    bin/samebytes check FILE     train again, print the names of results that differ, and exit with status 1 if any do

The digests are of the vectors and all parameters, computed for the oldest supported CPU, on one thread unless the
name says otherwise. They are comparable only on the same machine, with the same versions of NumPy and Numba.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tiedtools.base.processor import available_cores

W2V = "w2v -size 30 -min-count 2 -iter 2 -sample 1e-2 -threads 1"
LINEAR = f"{W2V} --tie-linear"
LSTM = "lstm -size 24 --epochs 2 --batch 5 --steps 7 --dropout .2 -threads 1 --lr 5"
NMT = "nmt -size 16 --hidden 20 --epochs 2 --batch 20 --seed 1 -threads 1 --source {text} --target {translation}"
RNNLM = "rnnlm -hidden 20 -class 12 -bptt 3 -bptt-block 5 -max-iter 2 -threads 1"
RUNS = {
    "cbow, untied": W2V, "cbow, tied": f"{W2V} --tie", "cbow, tied, fixed signs": f"{W2V} --tie-signs",
    "cbow, tied+L": f"{LINEAR} --precision float32", "cbow, tied+L, bfloat16": f"{LINEAR} --precision bfloat16",
    "cbow, exact": f"{W2V} --exact", "cbow, exact, tied, fixed signs": f"{W2V} --exact --tie-signs",
    "cbow, exact, tied+L": f"{LINEAR} --exact", "cbow, hierarchical": f"{W2V} -hs 1 -negative 0",
    "cbow, in step": f"{W2V} --deterministic -threads 2", "skip-gram, untied": f"{W2V} -cbow 0",
    "skip-gram, tied": f"{W2V} -cbow 0 --tie", "skip-gram, tied, fixed signs": f"{W2V} -cbow 0 --tie-signs",
    "skip-gram, tied+L": f"{LINEAR} -cbow 0 --precision float32",
    "skip-gram, exact, tied": f"{W2V} -cbow 0 --exact --tie", "skip-gram, hierarchical": f"{W2V} -cbow 0 -hs 1",
    "skip-gram, tied, fixed signs, in step": f"{W2V} -cbow 0 --tie-signs --deterministic -threads 2",
    "skip-gram, tied+L, in step": f"{LINEAR} -cbow 0 --precision float32 --deterministic -threads 2",
    "lstm, untied": LSTM, "lstm, tied": f"{LSTM} --tie",
    "lstm, tied+L": f"{LSTM} -hidden 32 --tie-linear --linear-bias --linear-dropout both",
    "lstm, variational": f"{LSTM} --dropout-kind variational --loss-scale sum --lr 1 --clip 5",
    "lstm, gal": f"{LSTM} --dropout-kind gal --weight-decay 1e-5 --mask-sharing batch",
    "lstm, augmented": f"{LSTM} --tie --augment .5", "lstm, projection": f"{LSTM} --tie --projection .15",
    "lstm, sampled": f"{LSTM} --sampled 40", "lstm, bfloat16": f"{LSTM} --precision bfloat16",
    "gru, gal": f"{LSTM} --dropout-kind gal --cell gru".replace("lstm", "lm", 1),
    "rhn, variational": f"{LSTM} --dropout-kind variational --cell rhn --depth 3 --tie".replace("lstm", "lm", 1),
    "lstm, two threads": f"{LSTM} -hidden 32 --tie-linear -threads 2",
    "lstm, preset": "lstm --preset inan-small --size 16 --hidden 16 --epochs 2 --sessions 2 -threads 1",
    "lstm, characters": f"{LSTM} --subwords chars --filters 8,16 --reuse all",
    "lstm, characters, sampled": f"{LSTM} --subwords chars --filters 8,16 --reuse emb,hw1 --sampled 40",
    "lstm, morphs": f"{LSTM} --subwords morphs --segmentation {{segmentation}} --reuse none",
    "lstm, Adam": f"{LSTM} --optimizer adam --lr .01 --clip 1", "lstm, averaged": f"{LSTM} --tie --optimizer asgd",
    "awd-lstm": f"{LSTM} --preset awd-ptb --layer-widths 28,28,24 --optimizer nt-asgd --average-after 1",
    "lstm, validated": f"{LSTM} --valid {{text}}", "rnnlm": RNNLM, "rnnlm, document vector": f"{RNNLM} --doc-dim 6",
    "rnnlm, direct": f"{RNNLM} -direct 1", "nmt": NMT, "nmt, tied": f"{NMT} --tie decoder --optimizer adadelta",
    "nmt, three-way tied": f"{NMT} --tie all --valid-source {{text}} --valid-target {{translation}}",
    "nmt, bfloat16": f"{NMT} --precision bfloat16",
}  # fmt: skip


def make_texts(folder):
    """Write 3,000 lines over a vocabulary of 400 words, in which each word depends on the previous one.

    The translation has their words in reverse order. The morphs of a word are its characters.
    """
    rng = random.Random(1)
    lines = []
    for _ in range(3000):
        words = [int(rng.paretovariate(0.7)) % 400]
        for _ in range(rng.randrange(2, 14)):
            words.append((3 * words[-1] + rng.choice((1, 2, 5, 40))) % 400)
        lines.append(" ".join(f"w{word}" for word in words) + "\n")
    Path(folder, "text").write_text("".join(lines))
    Path(folder, "translation").write_text("".join(" ".join(line.split()[::-1]) + "\n" for line in lines))
    Path(folder, "segmentation").write_text("".join(f"w{k} {' '.join(f'w{k}')}\n" for k in range(1200)))


def digest(folder, line):
    """Return the SHA-256 of the vectors and parameters of a training run."""
    vectors, model = folder / "vectors", folder / "model.npz"
    texts = {name: folder.parent / name for name in ("text", "translation", "segmentation")}
    line = line.format(**texts) if line.startswith("nmt") else f"{line.format(**texts)} {texts['text']}"
    command = [sys.executable, "-m", "tiedtools", *line.split(), "-debug", "0", "--no-manifest", "--save-model", model]
    environment = {**os.environ, "TIEDTOOLS_CPU": "haswell"}
    subprocess.run([*command, "-output", vectors], env=environment, check=True, stdout=subprocess.DEVNULL)
    found = hashlib.sha256(vectors.read_bytes())
    with np.load(model) as arrays:
        for name in sorted(set(arrays.files) - {"header"}):
            found.update(name.encode() + arrays[name].tobytes())
    return found.hexdigest()


def digests(only):
    """Return a dict {name: digest} of the runs with `only` in their names."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(available_cores()) as pool:
        make_texts(folder)
        runs = {}
        for k, (name, line) in enumerate(RUNS.items()):
            if only in name:
                subfolder = Path(folder, str(k))
                subfolder.mkdir()
                runs[name] = pool.submit(digest, subfolder, line)
        return {name: run.result() for name, run in runs.items()}


def main():
    parser = argparse.ArgumentParser(prog="samebytes", description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["record", "check"])
    parser.add_argument("file")
    parser.add_argument("--only", default="", help="only runs with this in their names")
    given = parser.parse_args()
    if given.action == "record":
        found = digests(given.only)
        Path(given.file).write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} recorded")
        return 0
    expected = {name: found for name, found in json.loads(Path(given.file).read_text()).items() if given.only in name}
    found = digests(given.only)
    differ = sorted(name for name in expected if expected[name] != found.get(name))
    print(*(f"differs: {name}" for name in differ), f"{len(expected) - len(differ)} identical", sep="\n")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
