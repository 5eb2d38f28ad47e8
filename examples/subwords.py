"""Compare word vectors with and without subwords, tied and untied, to fastText's: the tables of docs/results.md.

    python examples/subwords.py trials TEXT FOLDER SETS
    python examples/subwords.py runs TEXT FOLDER SETS --seeds 1 2 3 4 5
    python examples/subwords.py table TEXT FOLDER SETS --seeds 1 2 3 4 5

TEXT has one sentence per line. FOLDER gets a small file per run, which is not repeated. SETS is a folder with the files
of `SETS` below and questions-words.txt. `trials` trains for one epoch and prints scores on development sets only:
each model has three rates, in RATES or PMI_RATES. The best are entered in CHOSEN by hand, which has the rates of the
first table of docs/results/subwords.json, for `--epochs 1`. `table` prints means over seeds and, for the mean of
SimLex, MEN, and RW, the difference to fastText with its 95% t-interval over seeds.
fastText trains with 12 threads, because it leaves rows at zero with fewer than ten.
"""

import argparse
import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats
from tying import DEVELOPMENT, THREE, existing
from tying import SETS as ALL_SETS

from tiedtools import Vectors
from tiedtools.evaluation import analogysets
from tiedtools.evaluation.similarity import judge, read_set, spearman

W2V = "-m tiedtools w2v --preset fasttext -size 300 -debug 0 --no-manifest -output /dev/null"
FASTTEXT = (
    "import sys, fasttext; text, path, model, epochs, seed, *more = sys.argv[1:];"
    " fasttext.FastText.unsupervised_default['seed'] = int(seed);"  # which train_unsupervised takes no argument for
    " fasttext.train_unsupervised(text, model=model, dim=300, epoch=int(epochs), thread=12, verbose=0,"
    " **{name: float(value) for name, value in zip(more[::2], more[1::2])}).save_model(path)"
)
ARCHITECTURES = {"skip-gram": ("-cbow 0", "skipgram"), "CBOW": ("-cbow 1", "cbow")}
RATES = 0.05, 0.025, 0.1
MODELS = {
    "fastText": None,
    "words": "--max-n 0",
    "subwords": "",
    "subwords, tied": "--tie",
    "subwords, tied, PMI": "--tie --fit-pmi",
    "subwords, tied, fixed signs": "--tie-signs",
    "subwords, tied+L": "--tie-linear",
}
PMI_RATES = {"skip-gram": (0.035, 0.05, 0.07), "CBOW": (0.2, 0.1, 0.3)}
SETS = {name: ALL_SETS[name] for name in (*DEVELOPMENT, *THREE)}
# Rates found by `trials`, (architecture, model) -> rate; otherwise the first.
CHOSEN: dict[tuple[str, str], float] = {("CBOW", "fastText"): 0.1, ("CBOW", "subwords"): 0.1}


def rates(architecture, name):
    return PMI_RATES[architecture] if "PMI" in name or "signs" in name else RATES


def train(arguments, architecture, name, rate, epochs, seed, path):
    ours, theirs = ARCHITECTURES[architecture]
    if MODELS[name] is None:
        if importlib.util.find_spec("fasttext") is None:
            sys.exit("subwords.py: fastText is not installed; run pip install fasttext")
        # fastText's seeds 0 and 1 start two threads with the same random numbers.
        command = ["-c", FASTTEXT, arguments.text, path, theirs, epochs, 1000 * seed, "lr", rate]
    else:
        options = f"{ours} {MODELS[name]} -alpha {rate} --epochs {epochs} --seed {seed} -threads {arguments.threads}"
        command = [*W2V.split(), *options.split(), "--save-model", path, arguments.text]
    subprocess.run([sys.executable, *map(str, command)], check=True)


def evaluate(vectors, sets):
    """Return rho of each set, of RW over all pairs and over pairs with an unknown word, and of analogies the share."""
    found = {}
    for name, path in SETS.items():
        pairs = read_set(sets / path)
        known = judge(vectors, pairs)
        found[name] = spearman(pairs.scores[known.used], known.cosines[known.used])
        if name == "RW":
            every = judge(vectors, pairs, "compose", compose=vectors.compose) if vectors.composes else known
            rare = every.used & ~known.used
            found["RW, all pairs"] = spearman(pairs.scores[every.used], every.cosines[every.used])
            found["RW, unseen"] = spearman(pairs.scores[rare], every.cosines[rare]) if rare.sum() > 2 else np.nan
            found["pairs"], found["unseen pairs"] = every.used.sum(), rare.sum()
    answered = analogysets.answer(vectors, analogysets.read_set(sets / "questions-words.txt"), restrict=30_000)
    return {**found, "analogies": answered.right[answered.known].mean()}


def measured(arguments, architecture, name, rate, epochs, seed):
    """Return the figures of one run by name; train the model unless its file exists."""
    path = arguments.folder / f"{arguments.text.name} {architecture} {name} {rate} {epochs} {seed}.npz"
    if not path.exists():
        model = path.with_suffix(".bin" if MODELS[name] is None else ".model.npz")
        train(arguments, architecture, name, rate, epochs, seed, model)
        np.savez(path.with_suffix(".new.npz"), **evaluate(Vectors.read(model), arguments.sets))
        model.unlink()
        path.with_suffix(".new.npz").rename(path)
    with np.load(path) as file:
        return {key: float(file[key]) for key in file}


def show(*cells):
    cells = [f"{x:.3f}".replace("0.", ".", 1) if isinstance(x, float) else str(x) for x in cells]
    print(f"| {' | '.join(cells)} |", flush=True)


def trials(arguments):
    show("architecture", "model", "rate", "mean", *DEVELOPMENT, "analogies")
    for architecture, name in itertools.product(arguments.only, MODELS):
        for rate in rates(architecture, name):
            try:
                found = measured(arguments, architecture, name, rate, 1, 1)
            except subprocess.CalledProcessError:
                show(architecture, name, str(rate), "diverged")
                continue
            scores = [found[key] for key in (*DEVELOPMENT, "analogies")]
            show(architecture, name, str(rate), float(np.mean(scores)), *scores)


def runs_of(arguments, architecture, name):
    rate = CHOSEN.get((architecture, name), rates(architecture, name)[0])
    return [measured(arguments, architecture, name, rate, arguments.epochs, seed) for seed in arguments.seeds]


def runs(arguments):
    for seed, (architecture, name) in itertools.product(arguments.seeds, itertools.product(arguments.only, MODELS)):
        runs_of(argparse.Namespace(**{**vars(arguments), "seeds": [seed]}), architecture, name)


def table(arguments):
    columns = (*THREE, "RW, all pairs", "RW, unseen", "analogies")
    show("architecture", "model", "mean of three", *columns, "difference to fastText, 95%")
    for architecture in arguments.only:
        three = {}
        for name in MODELS:
            found = runs_of(arguments, architecture, name)
            three[name] = np.array([np.mean([run[key] for key in THREE]) for run in found])
            change, low, high = three[name] - three["fastText"], np.nan, np.nan
            if len(change) > 1 and change.any():
                low, high = stats.ttest_1samp(change, 0).confidence_interval()
            means = [float(np.mean([run[key] for run in found])) for key in columns]
            show(
                architecture, name, float(three[name].mean()), *means, f"{change.mean():+.3f} ({low:+.3f}, {high:+.3f})"
            )


def main():
    actions = {"trials": trials, "runs": runs, "table": table}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=actions)
    sets = lambda path: existing(path, *SETS.values(), "questions-words.txt")
    for name, kind in ("text", existing), ("folder", Path), ("sets", sets):
        parser.add_argument(name, type=kind)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=ARCHITECTURES, default=list(ARCHITECTURES))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    actions[arguments.action](arguments)


if __name__ == "__main__":
    main()
