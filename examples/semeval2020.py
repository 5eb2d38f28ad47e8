"""SemEval-2020 task 1 (meaning change between two corpora) with slices of time.

python examples/semeval2020.py FOLDER --output slices

FOLDER is the unpacked archive of one language, such as semeval2020_ulscd_eng (https://www.ims.uni-stuttgart.de/data/sem-eval-ulscd),
with corpus1/lemma/*.txt.gz, corpus2/lemma/*.txt.gz, targets.txt, and truth/graded.txt and truth/binary.txt. Printed are
Spearman's rho between the change of the target words and the graded truth (subtask 2), and the accuracy of calling the
words changed whose change is above the mean of the targets (subtask 1); likewise for the excess of the change over the
median of words of similar counts. With 31 to 48 targets, the standard error of rho is .15 to .19.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from tiedtools.api.slices import read_slices
from tiedtools.evaluation.shift import changes


def table(path):
    """Return {word: number} of a file of `word<TAB>number` lines."""
    return {word: float(value) for word, value in (line.split("\t") for line in path.read_text().splitlines() if line)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", required=True, help="folder for the slices; finished slices are not trained again")
    args, options = parser.parse_known_args()
    texts = [path for number in "12" for path in sorted((args.folder / f"corpus{number}" / "lemma").glob("*.txt.gz"))]
    truth = [args.folder / "truth" / f"{name}.txt" for name in ("graded", "binary")]
    if len(texts) != 2 or not all(path.exists() for path in truth):
        files = "one text in corpus1/lemma, one in corpus2/lemma, truth/graded.txt, and truth/binary.txt"
        sys.exit(f"{args.folder}: expected {files}; name the unpacked archive of one language")
    graded, binary = map(table, truth)
    command = [sys.executable, "-m", "tiedtools", "w2v", "--slices", *map(str, texts), "-output", args.output]
    if status := subprocess.run([*command, "-cbow", "0", "-size", "300", "-window", "10", *options]).returncode:
        sys.exit(status)
    first, second = read_slices(args.output).values()
    lines = {line["word"]: line for line in changes(first, second, align=False)[0]}
    # English targets have a part of speech, as in plane_nn, which the lemmas of the corpora have, too.
    words = [word for word in graded if word in lines]
    if missing := sorted(set(graded) - set(words)):
        print(f"without vectors: {' '.join(missing)}", file=sys.stderr)
    change, expected = (np.array([lines[word][name] for word in words]) for name in ("change", "expected"))
    for name, values in dict(change=change, excess=change - expected).items():
        rho = spearmanr(values, [graded[word] for word in words])[0]
        accuracy = np.mean((values > values.mean()) == np.array([binary[word] > 0 for word in words]))
        print(f"{len(words)} of {len(graded)} targets, {name}: rho {rho:.3f}, accuracy {accuracy:.3f}")
