"""Measure whether slices of time find known changes of words: docs/results.md#time.

python examples/change.py TEXT --gensim

The lines of TEXT are shuffled and cut into two halves. In the second, pairs of words of similar counts are exchanged:
each occurrence becomes the other word with a probability, the rate of the pair, from 0 to 1. Measured is Spearman's rho
between the rate and the change, 1 - the cosine of a word's two vectors, over all words of the pairs; and between the
rate and the excess of the change over the control, the median change of the 101 unchanged words nearest in count. Since
the halves are random, unchanged words are as in a shuffled text. Further options are those of `tiedtools w2v`.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.ndimage import median_filter
from scipy.stats import spearmanr

from tiedtools.api.slices import read_slices
from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.shift import changes
from tiedtools.text.sources import decoded_lines
from tiedtools.vectors.edit import align
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors

RATES = 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0
BANDS = (101, 1000), (1001, 5000), (5001, 15000)  # ranks of the exchanged words
SETTINGS = ["-size", "100", "-epochs", "5", "-debug", "0"]


def exchanged(lines, rate_of, partner, rng):
    """Yield lines in which each word of `partner` becomes its partner with the probability rate_of[word]."""
    for line in lines:
        words = line.split()
        for k, word in enumerate(words):
            if word in partner and rng.random() < rate_of[word]:
                words[k] = partner[word]
        yield " ".join(words) + "\n"


def pairs_of(lines, number, rng):
    """Return (rate of each word, partner of each word): `number` pairs in each band of frequency, for each rate."""
    counts = Counter(word for line in lines for word in line.split())
    ranked = [word for word, _ in counts.most_common() if word.isalpha()]
    rate_of, partner = {}, {}
    for first, last in BANDS:
        starts = rng.permutation(np.arange(first, min(last, len(ranked)) - 1, 2))[: number * len(RATES)]
        for place, start in enumerate(starts):
            a, b = ranked[start], ranked[start + 1]
            partner[a], partner[b] = b, a
            rate_of[a] = rate_of[b] = RATES[place % len(RATES)]
    return rate_of, partner


def w2v(*args):
    if status := subprocess.run([sys.executable, "-m", "tiedtools", "w2v", *map(str, args)]).returncode:
        sys.exit(status)


def slices(folder, *options):
    """Return the change of each word between the slices `a` and `b`."""
    output = folder / "slices"
    shutil.rmtree(output, ignore_errors=True)
    w2v("--slices", folder / "a", folder / "b", "-output", output, *SETTINGS, *options)
    found = read_slices(str(output))
    return {line["word"]: line["change"] for line in changes(found["a"], found["b"], align=False)[0]}


def independent(folder, *options):
    """Return the change of each word between two trainings, after orthogonal alignment."""
    for number, name in enumerate("ab"):
        w2v(folder / name, "-output", folder / f"{name}.vec", "-seed", number + 1, *SETTINGS, *options)
    one, two = (Vectors.read(folder / f"{name}.vec") for name in "ab")
    return cosine_changes(one, align(one, two)[0])


def cosine_changes(one, two):
    words = [word for word in one.index if word in two.index]
    sides = [unit(v.matrix[[v.index[word] for word in words]]) for v in (one, two)]
    return dict(zip(words, (1 - (sides[0] * sides[1]).sum(1)).tolist()))


def gensim_frozen(folder, chunk=2000):
    """Return the change in gensim: a model of both halves, then each half with the output matrix put back often."""
    from gensim.models import Word2Vec

    text = {name: [line.split() for line in (folder / name).read_text().splitlines()] for name in "ab"}
    settings = dict(vector_size=100, sg=1, min_count=5, epochs=5, workers=2, sample=1e-3, negative=5)
    compass = Word2Vec([*text["a"], *text["b"]], **settings)
    start, frozen = compass.wv.vectors.copy(), compass.syn1neg.copy()
    sides = []
    for sentences in text.values():
        compass.wv.vectors[:] = start
        parts = [sentences[k : k + chunk] for k in range(0, len(sentences), chunk)] * 5
        for place, part in enumerate(parts):
            lr = 0.025 * (1 - place / len(parts))
            compass.train(part, total_examples=len(part), epochs=1, start_alpha=lr, end_alpha=lr)
            compass.syn1neg[:] = frozen
        seen = Counter(word for line in sentences for word in line)
        words = [word for word in compass.wv.index_to_key if seen[word] >= 5]
        sides.append(Vectors(words, compass.wv[words].copy()))
    return cosine_changes(*sides)


def excess(change, counts, changed):
    """Return the change of each word minus the median of the 101 words not in `changed` nearest in count."""
    control = sorted((word for word in change if word not in changed), key=lambda word: counts[word])
    usual = median_filter([change[word] for word in control], 101)
    known = np.log([counts[word] for word in control])
    return {word: value - np.interp(np.log(counts[word]), known, usual) for word, value in change.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--pairs", type=int, default=10, help="pairs for each rate and band of frequency")
    parser.add_argument("--gensim", action="store_true")
    parser.add_argument("--half", choices=["even", "odd", "all"], default="all", help="pairs to evaluate")
    parser.add_argument("--only", default="", help="only methods whose names begin like this")
    args, options = parser.parse_known_args()
    if args.gensim and options:
        parser.error("--gensim has settings of its own; omit it, or the options of w2v")
    if args.gensim and importlib.util.find_spec("gensim") is None:
        parser.error("--gensim: not installed; run pip install gensim")
    SETTINGS += options
    rng = np.random.default_rng(1)
    try:
        lines = [line.rstrip("\n") for line in decoded_lines(args.text)]
    except TiedtoolsError as error:
        sys.exit(f"change.py: {error}")
    lines = [lines[k] for k in rng.permutation(len(lines))]
    half = len(lines) // 2
    rate_of, partner = pairs_of(lines, args.pairs, rng)
    parts = {"even": [0, 1], "odd": [2, 3], "all": range(4)}  # a pair is two words
    judged = [word for k, word in enumerate(rate_of) if k % 4 in parts[args.half]]
    methods = {
        "slices, skip-gram": lambda f: slices(f, "-cbow", 0),
        "slices, CBOW": lambda f: slices(f),
        "slices, skip-gram, fixed signs": lambda f: slices(f, "-cbow", 0, "--tie-signs"),
        "independent, skip-gram, aligned": lambda f: independent(f, "-cbow", 0),
    }
    if args.gensim:
        methods["gensim, skip-gram, frozen output"] = gensim_frozen
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a").write_text("\n".join(lines[:half]) + "\n")
        (folder / "b").write_text("".join(exchanged(lines[half:], rate_of, partner, rng)))
        counts = Counter((folder / "a").read_text().split())
        ranked = [word for word, _ in counts.most_common()]
        print("| method | rho | rho of the excess | " + " | ".join(f"{a} to {b}" for a, b in BANDS) + " |")
        for method, measure in methods.items():
            if not method.startswith(args.only):
                continue
            change = {word: value for word, value in measure(folder).items() if counts[word]}
            above = excess(change, counts, rate_of)
            rho = lambda values, words: spearmanr([rate_of[w] for w in words], [values[w] for w in words])[0]
            measured = [word for word in judged if word in change]
            cells = [f"{rho(values, measured):.3f}" for values in (change, above)]
            for first, last in BANDS:
                band = set(ranked[first - 1 : last])
                control = np.mean([change[w] for w in band if w in change and w not in rate_of])
                cells.append(f"{rho(above, [word for word in measured if word in band]):.3f} ({control:.3f})")
            print(f"| {method} | " + " | ".join(cells) + " |", flush=True)
