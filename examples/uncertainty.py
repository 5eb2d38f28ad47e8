"""Measure whether intervals over resampled documents cover what new samples give: docs/results.md#uncertainty.

python examples/uncertainty.py coverage TEXT --words 400000     # TEXT: one document per line
python examples/uncertainty.py null TEXT --splits 20             # permutation test on random halves of one text
python examples/uncertainty.py stability TEXT                    # shared neighbors of untied and tied models

The lines of TEXT are shuffled. `coverage` cuts it into base samples and other samples, all of `--words` words and
disjoint. For pairs of a word and one of its neighbors, it compares the interval over resamples of a base sample with
the mean of the cosine over the other samples, and with its value in a single other sample.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.uncertainty import BANDS, bands, cosine_of, estimate, neighbors
from tiedtools.text.sources import decoded_lines
from tiedtools.vectors.runs import Runs

MODEL = ["-cbow", "0", "--size", "100", "--epochs", "5", "-debug", "0", "--no-manifest"]
TYINGS = {"untied": [], "untied, PMI": ["--fit-pmi"], "untied, PMI, sum": ["--fit-pmi", "--write", "sum"],
          "tied": ["--tie"], "tied, PMI": ["--tie", "--fit-pmi"], "tied, fixed signs": ["--tie-signs"]}  # fmt: skip


def w2v(text, runs, output, *options):
    """Train `runs` models of a text and return their Runs; `output` is overwritten."""
    command = [sys.executable, "-m", "tiedtools", "w2v", text, *MODEL, "--runs", runs, "-output", output, *options]
    if status := subprocess.run(list(map(str, command))).returncode:
        sys.exit(status)
    return Runs.read(str(output))


def samples(lines, words, number):
    """Yield `number` disjoint samples of `lines`, lists of lines of about `words` words together."""
    lengths = np.cumsum([len(line.split()) for line in lines])
    bounds = np.searchsorted(lengths, words * np.arange(number + 1))
    if lengths[-1] < words * number:
        sys.exit(f"the text has {lengths[-1]:,} words, not {number} samples of {words:,}; lower --words")
    return [lines[start:end] for start, end in itertools.pairwise(bounds)]


def coverage(lines, args, folder):
    text, output = folder / "sample.txt", folder / "sample.runs"
    parts = samples(lines, args.words, args.bases + args.others + 1)
    pairs, held_out = [], []
    for number, part in enumerate(parts[args.bases :]):
        text.write_text("".join(part))
        runs = w2v(text, 2, output, "--resample", "none", "--seed", 1000 + 2 * number, *args.options)
        if number:
            held_out.append(pair_cosines(runs, pairs)[0])
        else:  # a sample that is not used again, since neighbors chosen from it are too near in it
            pairs = drawn_pairs(runs, args.pairs)
    held_out = np.array(held_out)
    common = (~np.isnan(held_out)).mean(0) >= 0.75
    truth = np.where(common, np.nanmean(np.where(common, held_out, 0), 0), np.nan)
    hits, single, widths, biases = [], [], [], []
    for number, part in enumerate(parts[: args.bases]):
        text.write_text("".join(part))
        runs = w2v(text, args.runs, output, "--seed", 1 + 100 * number, *args.options)
        whole = pair_cosines(runs.on_whole_text, pairs)
        estimates = np.array([estimate(*values) for values in zip(pair_cosines(runs, pairs).T, whole.T)])
        low, high = estimates[:, 1], estimates[:, 2]
        known = ~np.isnan(low) & common
        inside = lambda values: np.where(known & ~np.isnan(values), (values >= low) & (values <= high), np.nan)
        hits.append(inside(truth))
        single.append([inside(values) for values in held_out])
        widths.append(high - low)
        biases.append(estimates[:, 0] - truth)
    print("| ranks | pairs | mean of new samples inside | one new sample inside | mean width | mean difference |")
    print("|---|--:|--:|--:|--:|--:|")
    band = np.array([band for band, *_ in pairs])
    for first in BANDS:
        which = (band == first) & common
        if which.any():
            shares = [np.nanmean(np.array(values)[..., which]) for values in (hits, single, widths, biases)]
            print(f"| from {first:,} | {which.sum()} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")


def drawn_pairs(runs, number):
    """Return up to `number` pairs (band, word, one of its ten nearest neighbors) for each band of frequency."""
    rng, pairs = np.random.default_rng(1), []
    for first, after in zip(BANDS, (*BANDS[1:], len(runs.words))):
        rows = rng.permutation(np.arange(first, min(after, len(runs.words))))[:number]
        for row, answers in zip(rows, neighbors(runs, [[(row, 1)] for row in rows]) if len(rows) else []):
            if answers:
                pairs.append((first, runs.words[row], answers[rng.integers(len(answers))]["neighbor"]))
    return pairs


def pair_cosines(runs, pairs):
    """Return the cosines of pairs in each run, [R, pairs]; NaN where a word is missing."""
    index, missing = runs.index, np.full(len(runs), np.nan)
    return np.array([
        cosine_of(runs, [(index[a], 1)], [(index[b], 1)]) if a in index and b in index else missing
        for _, a, b in pairs
    ]).T  # fmt: skip


def null(lines, args, folder):
    shares, rng = [], np.random.default_rng(1)
    for split in range(args.splits):
        order = rng.permutation(len(lines))
        for name, half in zip("ab", np.array_split(order, 2)):
            (folder / name).write_text("".join(lines[k] for k in half))
        command = [sys.executable, "-m", "tiedtools", "shift", folder / "a", folder / "b", "--size", 50, "--epochs", 3]
        command += ["--permutations", args.permutations, "--min-count", 20, "--seed", split + 1, "--json"]
        found = subprocess.run([*map(str, command), *args.options], capture_output=True, text=True)
        if found.returncode:
            sys.exit(found.stderr.strip())
        p = np.array([line["p"] for line in json.loads(found.stdout)["results"]])
        shares.append((p <= 0.05).mean())
        print(f"split {split + 1}: {len(p):,} words, p <= .05 for {shares[-1]:.3f}", flush=True)
    print(f"mean {np.mean(shares):.3f}, from {min(shares):.3f} to {max(shares):.3f}")


def stability(lines, args, folder):
    text = folder / "text.txt"
    text.write_text("".join(lines))
    print("| model | " + " | ".join(f"from {first:,}" for first in BANDS) + " |")
    for name, options in TYINGS.items():
        for way in ("documents", "none"):
            runs = w2v(text, args.runs, folder / "text.runs", "--resample", way, *options, *args.options)
            cells = [f"{line['shared']:.3f} ±{line['high'] - line['shared']:.3f}" for line in bands(runs, 200, 1)[0]]
            print(f"| {name}, {way} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    measures = {"coverage": coverage, "null": null, "stability": stability}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=measures)
    parser.add_argument("text", help="a text of one document per line")
    parser.add_argument("--words", type=int, default=400_000, help="words of a sample")
    parser.add_argument("--bases", type=int, default=10, help="base samples, each resampled")
    parser.add_argument("--others", type=int, default=20, help="new samples")
    parser.add_argument("--runs", type=int, default=25, help="resamples of a base sample")
    parser.add_argument("--pairs", type=int, default=200, help="pairs per band of frequency")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--permutations", type=int, default=99)
    args, args.options = parser.parse_known_args()
    try:
        lines = [line.rstrip("\n") + "\n" for line in decoded_lines(args.text)]
    except TiedtoolsError as error:
        sys.exit(f"uncertainty.py: {error}")
    lines = [lines[k] for k in np.random.default_rng(0).permutation(len(lines))]
    with tempfile.TemporaryDirectory() as folder:
        measures[args.measure](lines, args, Path(folder))
