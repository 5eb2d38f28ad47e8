"""Benchmark of translation models: tasks, variants, and floating-point operations of a training step."""

import dataclasses
import re

import numpy as np

from benchmarks import zipf
from tiedtools.base.errors import Contradiction
from tiedtools.training.batches import Pairs

WORKERS, STEPS = ("workers:NmtTraining", "torchnmt:Training"), "batches"
TIES = {"": "none", "-decoder": "decoder", "-all": "all"}  # ending of a variant -> TranslationConfig.tie
PAIRS = 40  # length of the text in batches; it repeats
MEAN, DEVIATION, SHORTEST = 14, 4, 4  # words of a sentence, with its end, as in Multi30k with BPE
LR, CLIP = 0.0005, 1.0  # learning rate and gradient clipping of Adam


@dataclasses.dataclass(frozen=True)
class Task:
    """Settings of a benchmark run, passed to a worker as JSON.

    path       file of int32 IDs: the source, then the target, with 0 at the end of each sentence
    batch      sentence pairs in a batch
    dropout    probability at all sites
    precision  precision of matrix products
    hidden, size, tie, threads  as in TranslationConfig
    """

    path: str
    vocabulary: int
    hidden: int
    size: int
    tie: str = "none"
    batch: int = 32
    dropout: float = 0.3
    threads: int = 1
    precision: str = "float32"

    def lengths(self):
        """Return the lengths of all sentences, int [2, pairs], source and target; always the same."""
        rng, n = np.random.default_rng(1), PAIRS * self.batch
        source = rng.normal(MEAN, DEVIATION, n)
        both = np.stack([source, source + rng.normal(0, DEVIATION / 2, n)])
        return np.maximum(SHORTEST, both.round().astype(np.int64))

    def write(self):
        """Write the text: independent words with Zipfian frequencies and a fixed random seed."""
        rng, share = np.random.default_rng(2), zipf.shares(self.vocabulary - 1)
        lengths = self.lengths().ravel()
        ids = 1 + zipf.draw(rng, lengths.sum(), share).astype(np.int32)
        ids[lengths.cumsum() - 1] = 0
        ids.tofile(self.path)

    def tokens(self, steps):
        """Return the number of words, source and target, in the first `steps` batches."""
        text = batches(dataclasses.asdict(self))
        return sum(np.count_nonzero(side >= 0) for k in range(steps) for side in text[k % PAIRS][:2])

    def flops(self):
        """Return {part of a step: floating-point operations per word}, forward and backward; see lm.Task."""
        m, n, (source, target) = self.size, self.hidden, self.lengths().sum(1).tolist()
        gru1, gru2 = (3 * n * (inputs + n) for inputs in (m, 2 * n))  # weights of a GRU
        parts = {
            "encoder": 2 * gru1 * source,
            "decoder": 4 * n * n * source + (gru1 + 2 * n * n + gru2) * target,
            "readout": m * (3 * n + m) * target,
            "softmax": self.vocabulary * m * target,
        }
        return {part: 6 * weights / (source + target) for part, weights in parts.items()}


def batches(task):
    """Return the PairBatches of a Task, a dict; all epochs have the same order."""
    ids = np.fromfile(task["path"], np.int32)
    end = np.flatnonzero(ids == 0)[PAIRS * task["batch"] - 1] + 1
    pairs = Pairs(ids[:end], ids[end:], task["batch"], seed=1)
    return [pairs[k] for k in range(pairs.steps)]


def shape(variant):
    """Parse "HIDDEN/EMB", "HIDDEN/EMB-decoder", or "HIDDEN/EMB-all" into a dict of hidden, size, and tie.

    Raises TiedtoolsError for any other string.
    """
    match = re.fullmatch(r"([1-9]\d{0,4})/([1-9]\d{0,4})(|-decoder|-all)", variant)
    if not match:
        raise Contradiction(f"--variants: {variant!r} is not HIDDEN/EMB, HIDDEN/EMB-decoder, or HIDDEN/EMB-all")
    return dict(hidden=int(match[1]), size=int(match[2]), tie=TIES[match[3]])


def heading(result):
    """Describe the settings that all contenders share."""
    return f"vocabulary {result['vocabulary']:,} on each side, {result['batch']} sentence pairs a batch"
