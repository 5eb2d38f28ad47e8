"""Compare the ways of tying word2vec's vectors: the trials and the tables of docs/results.md.

    python examples/tying.py trials TEXT FOLDER SETS
    python examples/tying.py runs TEXT FOLDER SETS --epochs 1
    python examples/tying.py table TEXT FOLDER SETS --epochs 1

TEXT has one sentence per line. FOLDER gets a small file per run, which is not repeated. SETS is a folder with the files
of `SETS` below and questions-words.txt. `trials` prints scores on development sets only; the best became CHOSEN.
`table` prints means over seeds and the comparisons. Several processes may share FOLDER if they differ in --only.
"""

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from tiedtools import Vectors
from tiedtools.evaluation import analogysets
from tiedtools.evaluation.similarity import judge, read_set, spearman
from tiedtools.vectors.neighbors import Candidates, neighbors

W2V = "-m tiedtools w2v -size 300 -sample 1e-4 -threads 1 -debug 0 -output /dev/null --no-manifest"
ARCHITECTURES = {"CBOW": "", "skip-gram": "-cbow 0"}
TYINGS = {
    "untied": "",
    "untied, PMI": "--fit-pmi",
    "tied": "--tie",
    "tied, PMI": "--tie --fit-pmi",
    "tied, fixed signs": "--tie-signs",
    "tied+L": "--tie-linear",
    "tied+L, PMI": "--tie-linear --fit-pmi",
}
TWO = "untied", "tied+L"  # first letters of the models whose input and output vectors have a sum
SETS = {
    "Verb-143": "EN-VERB-143.txt",
    "MTurk-771": "EN-MTurk-771.txt",
    "SimLex": "EN-SIMLEX-999.txt",
    "MEN": "EN-MEN-TR-3k.txt",
    "RW": "EN-RW-STANFORD.txt",
    "SemEval": "report/EN-SEMEVAL17-T2.txt",
    "RG": "report/EN-RG-65.txt",
    "YP": "report/EN-YP-130.txt",
}
DEVELOPMENT = "Verb-143", "MTurk-771"  # and the analogies
THREE = "SimLex", "MEN", "RW"
RESTRICT = 30_000  # words of analogy questions and answers
FREQUENT, RARE = slice(100, 600), 20_000  # ranks of words whose neighbors are counted, and of rare neighbors

# Declared before the runs: COMPARED against AGAINST by each of MEASURES, with the options and vectors of CHOSEN.
AGAINST, COMPARED = "untied, PMI", ("tied, fixed signs", "tied+L, PMI", "tied, PMI")
MEASURES = {"mean of three": THREE, "SemEval": ("SemEval",)}
RESAMPLES = 1000
DEFAULT = "", "in"
CHOSEN = {
    ("CBOW", "untied"): ("-alpha .075", "sum"),
    ("CBOW", "untied, PMI"): ("--init-range .1", "sum"),
    ("CBOW", "tied"): ("-alpha .1", "in"),
    ("CBOW", "tied, PMI"): ("--init-range .1", "in"),
    ("CBOW", "tied+L"): ("-alpha .075", "in"),
    ("CBOW", "tied+L, PMI"): ("--init-range .1", "sum"),  # the best, --ns-exponent .5, diverged on all of the text
    ("skip-gram", "untied"): ("--init-range .1", "sum"),
    ("skip-gram", "untied, PMI"): ("-alpha .07", "sum"),
    ("skip-gram", "tied"): ("-alpha .05", "in"),
    ("skip-gram", "tied, PMI"): ("-alpha .07", "in"),
    ("skip-gram", "tied+L"): ("-alpha .05", "sum"),
    ("skip-gram", "tied+L, PMI"): ("--lr-linear .0004", "in"),
}


def options_tried(architecture, tying):
    """List the options of the seven trials of a model: its defaults, and six that change one option each."""
    pmi = "PMI" in tying or "signs" in tying
    rate = {"CBOW": 0.2 if pmi else 0.05, "skip-gram": 0.035 if pmi else 0.025}[architecture]
    rates = [f"-alpha {rate * factor:.4g}" for factor in (0.5, 1.5, 2)]
    of_linear = {"CBOW": "--lr-linear 0.002", "skip-gram": "--lr-linear 0.0004"}[architecture]
    return ["", *rates, "--init-range .1", "--ns-exponent .5", of_linear if "+L" in tying else "--init-range .02"]


def rare_neighbors(vectors):
    """Return the share of rare words among the ten nearest neighbors of frequent words; see docs/evaluation.md."""
    words = [word for word in vectors.words if word != "</s>"]
    rare = set(words[RARE:])
    found = neighbors(Candidates(vectors), words[FREQUENT], top=10)
    return np.mean([word in rare for near in found for word, _ in near])


def evaluate(vectors, sets, names):
    """Return the figures of vectors by name: cosines of each set in `names`, NaN if not covered, and two shares."""
    found = {}
    for name in names:
        judged = judge(vectors, read_set(sets / SETS[name]))
        found[name] = np.where(judged.used, judged.cosines, np.nan)
    answered = analogysets.answer(vectors, analogysets.read_set(sets / "questions-words.txt"), restrict=RESTRICT)
    return {**found, "analogies": answered.right[answered.known].mean(), "rare": rare_neighbors(vectors)}


def measured(path, arguments, names, architecture, tying, options, epochs, seed):
    """Return the figures of one run, a dict by (vectors, name); train the model unless `path` has them."""
    if not path.exists():
        model, new = path.with_suffix(".model"), path.with_suffix(".new.npz")
        command = f"{W2V} {ARCHITECTURES[architecture]} {TYINGS[tying]} --epochs {epochs} --seed {seed} {options}"
        subprocess.run([sys.executable, *command.split(), "--save-model", model, arguments.text], check=True)
        figures = {}
        for which in kinds(tying):
            found = evaluate(Vectors.read(f"{model}:{which}"), arguments.sets, names)
            figures |= {f"{which} {name}": value for name, value in found.items()}
        model.unlink()
        np.savez(new, **figures)
        new.rename(path)
    with np.load(path) as file:
        return {tuple(name.split(" ", 1)): file[name] for name in file}


def kinds(tying):
    return ["in", "sum"] if tying.startswith(TWO) else ["in"]


def rho(similarity_set, cosines, counts=None):
    """Return Spearman's rho on the covered pairs; with `counts` int64 [B, pairs], of B resamples."""
    used = ~np.isnan(cosines)
    return spearman(similarity_set.scores[used], cosines[used], None if counts is None else counts[:, used])


def trials(arguments):
    sets = {name: read_set(arguments.sets / SETS[name]) for name in DEVELOPMENT}
    for architecture, tying in itertools.product(arguments.only, TYINGS):
        for options in options_tried(architecture, tying):
            row = architecture, tying, options or "defaults"
            path = arguments.folder / f"{arguments.text.name} {' '.join(row)}.npz"
            try:
                found = measured(path, arguments, DEVELOPMENT, architecture, tying, options, 3, 1)
            except subprocess.CalledProcessError:
                print(*row, "diverged", sep="\t", flush=True)
                continue
            for kind in kinds(tying):
                scores = [rho(sets[name], found[kind, name]) for name in DEVELOPMENT]
                scores = [*scores, found[kind, "analogies"]]
                print(*row, kind, *decimals(np.mean(scores), *scores, found[kind, "rare"]), sep="\t", flush=True)


def existing(path, *names):
    """Return the Path of an argument that must exist, as must the files `names` in it."""
    for each in Path(path), *(Path(path, name) for name in names):
        if not each.exists():
            raise argparse.ArgumentTypeError(f"{each}: no such file or folder")
    return Path(path)


def decimals(*figures, sign=""):
    return [f"{x:{sign}.3f}".replace("0.", ".", 1) for x in figures]


def print_row(*cells):
    print(f"| {' | '.join(map(str, cells))} |")


def print_head(*names):
    print_row(*names)
    print_row(*["---"] * len(names))


def runs_of(arguments, epochs, architecture, tying):
    """Return the figures of each seed's run."""
    options, _ = CHOSEN.get((architecture, tying), DEFAULT)
    name = f"{arguments.text.name} {architecture} {tying} {options} {epochs}"
    paths = [arguments.folder / f"{name} {seed}.npz" for seed in arguments.seeds]
    of = architecture, tying, options, epochs
    return [measured(path, arguments, SETS, *of, seed) for path, seed in zip(paths, arguments.seeds)]


def runs(arguments):
    for of in itertools.product(arguments.epochs, arguments.only, TYINGS):
        runs_of(arguments, *of)


def word_counts(similarity_set):
    """Return how often each pair occurs in RESAMPLES resamples of the set's words, int64 [RESAMPLES, pairs].

    A pair occurs once for each copy of its one word and copy of its other, so pairs that share a word do not count as
    independent. Intervals are conservative: if no pairs share a word, sqrt(3) times as wide as those over pairs.
    """
    words, rows = np.unique(np.array(similarity_set.pairs), return_inverse=True)
    rng = np.random.default_rng(similarity_set.own_seed(1))
    copies = rng.multinomial(len(words), np.full(len(words), 1 / len(words)), RESAMPLES)
    return copies[:, rows.reshape(-1, 2)].prod(axis=2)


def holm(p):
    """Return the p-values adjusted for their number (Holm 1979)."""
    p, order = np.array(p), np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def compare(ours, theirs, names, sets, counts):
    """Compare two models on the mean rho of some sets: (difference, t-interval over seeds, interval over words, p).

    ours, theirs  each seed's cosines by set name
    """
    pairs = list(zip(ours, theirs))
    mean = lambda rhos: np.mean([rhos(name, a) - rhos(name, b) for a, b in pairs for name in names], axis=0)
    by_seed = [np.mean([rho(sets[name], a[name]) - rho(sets[name], b[name]) for name in names]) for a, b in pairs]
    t = stats.ttest_1samp(by_seed, 0)
    resampled = mean(lambda name, cosines: rho(sets[name], cosines[name], counts[name]))
    intervals = t.confidence_interval(), np.quantile(resampled, [0.025, 0.975])
    return np.mean(by_seed), *(" to ".join(decimals(*interval, sign="+")) for interval in intervals), t.pvalue


def table(arguments):
    sets = {name: read_set(arguments.sets / path) for name, path in SETS.items()}
    shown = list(SETS)[len(DEVELOPMENT) :]
    print_head("epochs", "", "vectors", *THREE, "mean", "sd", *shown[3:], "analogies", "rare")
    everyone = {}
    for of in itertools.product(arguments.epochs, arguments.only, TYINGS):
        everyone[of] = found = runs_of(arguments, *of)
        for kind in kinds(of[2]):
            rhos = np.array([[rho(sets[name], run[kind, name]) for name in shown] for run in found])
            means, three = rhos.mean(axis=0), rhos[:, :3].mean(axis=1)
            others = [np.mean([run[kind, name] for run in found]) for name in ("analogies", "rare")]
            figures = [*means[:3], three.mean(), three.std(ddof=1), *means[3:], *others]
            name = f"**{kind}**" if kind == CHOSEN.get(of[1:], DEFAULT)[1] else kind
            print_row(of[0], f"{of[1]} {of[2]}", name, *decimals(*figures))

    counts = {name: word_counts(sets[name]) for names in MEASURES.values() for name in names}
    chosen = lambda epochs, architecture, tying: [
        {name: run[CHOSEN.get((architecture, tying), DEFAULT)[1], name] for name in counts}
        for run in everyone[epochs, architecture, tying]
    ]
    of = [*itertools.product(arguments.epochs, arguments.only, COMPARED, MEASURES)]
    results = [compare(chosen(e, a, t), chosen(e, a, AGAINST), MEASURES[m], sets, counts) for e, a, t, m in of]
    print()
    print_head("epochs", "", "measure", "difference", "over seeds", "over words", "p", "adjusted")
    adjusted = holm([p for *_, p in results])
    for (epochs, architecture, tying, measure), (d, *over, p), after in zip(of, results, adjusted):
        given = *decimals(d, sign="+"), *over, *(f"{x:.2g}".replace("0.", ".", 1) for x in (p, after))
        print_row(epochs, f"{architecture} {tying}", measure, *given)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["trials", "runs", "table"])
    sets = lambda path: existing(path, *SETS.values(), "questions-words.txt")
    for name, kind in ("text", existing), ("folder", Path), ("sets", sets):
        parser.add_argument(name, type=kind)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--only", choices=ARCHITECTURES, nargs="+", default=list(ARCHITECTURES))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    {"trials": trials, "runs": runs, "table": table}[arguments.command](arguments)
