"""Compare word vectors with and without subwords, tied and untied, on German and Czech captions.

    python examples/captions.py MULTI30K FOLDER SETS --seeds 1 2 3

MULTI30K is a folder with train.de.xz, val.de.xz, train.cs.xz, and val.cs.xz, SETS one with the German files of `SETS`.
FOLDER gets a small file per run, which is not repeated. The rate of each model has the lowest loss on the validation
captions, for the first seed. Prints means over seeds: that loss and, for German, the mean rho of the sets
over pairs of known words, and over all pairs, with unknown words composed. `tiedtools data` has no Czech set.
"""

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from subwords import ARCHITECTURES, MODELS, W2V, existing, rates, show

from tiedtools import Vectors
from tiedtools.evaluation.similarity import judge, read_set, spearman

LANGUAGES, PARTS = ("de", "cs"), ("train", "val")
SETS = "DE-SCHM280.txt", "DE-GUR350.txt", "DE-ZG222.txt", "DE-SIMLEX-999.txt"
LEFT_OUT = "fastText", "subwords, tied, PMI"


def trained(arguments, language, architecture, name, rate, seed):
    """Return the figures of one run by name; train the model unless its file exists."""
    path = arguments.folder / f"{language} {architecture} {name} {rate} {arguments.epochs} {seed}.json"
    if not path.exists():
        model, log = path.with_suffix(".model.npz"), path.with_suffix(".log")
        text, valid = (arguments.texts / f"{part}.{language}.xz" for part in PARTS)
        options = f"{ARCHITECTURES[architecture][0]} {MODELS[name]} -alpha {rate} --epochs {arguments.epochs}"
        files = ["--seed", seed, "-threads", 2, "--valid", valid, "--log-json", log, "--save-model", model, text]
        command = [sys.executable, *W2V.split(), *options.split(), *files]
        if subprocess.run([*map(str, command)]).returncode:
            return {"loss": np.inf}
        losses = (json.loads(line).get("valid_loss") for line in log.read_text().splitlines())
        figures = {"loss": [loss for loss in losses if loss][-1]}
        if language == "de":
            figures |= evaluate(Vectors.read(model), arguments.sets)
        model.unlink()
        log.unlink()
        path.write_text(json.dumps(figures))
    return json.loads(path.read_text())


def evaluate(vectors, folder):
    """Return the mean rho of the German sets and the number of pairs, of known words and of all."""
    rho, pairs = {"known": [], "all": []}, {"known": 0, "all": 0}
    for file in SETS:
        each = read_set(folder / file)
        judged = {"known": judge(vectors, each, case="lower")}
        judged["all"] = judged["known"]
        if vectors.composes:
            judged["all"] = judge(vectors, each, "compose", "lower", vectors.compose)
        for kind, of in judged.items():
            rho[kind].append(spearman(each.scores[of.used], of.cosines[of.used]))
            pairs[kind] += int(of.used.sum())
    means = {f"rho, {kind}": float(np.mean(values)) for kind, values in rho.items()}
    return means | {f"pairs, {kind}": count for kind, count in pairs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    texts = lambda path: existing(path, *(f"{part}.{language}.xz" for part in PARTS for language in LANGUAGES))
    sets = lambda path: existing(path, *SETS)
    for name, kind in ("texts", texts), ("folder", Path), ("sets", sets):
        parser.add_argument(name, type=kind)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--epochs", type=int, default=10)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    columns = "loss", "rho, known", "rho, all", "pairs, known", "pairs, all"
    show("language", "architecture", "model", "rate", *columns)
    for language, architecture, name in itertools.product(LANGUAGES, ARCHITECTURES, MODELS):
        if name in LEFT_OUT:
            continue
        run = lambda rate, seed, of=(language, architecture, name): trained(arguments, *of, rate, seed)
        rate = min(rates(architecture, name), key=lambda rate, run=run: run(rate, arguments.seeds[0])["loss"])
        found = [run(rate, seed) for seed in arguments.seeds]
        means = [float(np.mean([figures.get(key, np.nan) for figures in found])) for key in columns]
        show(language, architecture, name, str(rate), *means)


if __name__ == "__main__":
    main()
