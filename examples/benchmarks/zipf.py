"""Generate synthetic texts, so that benchmarks need no download: independent words with Zipfian frequencies."""

import contextlib
import os
import tempfile

import numpy as np

from tiedtools.base.messages import log

BLOCK = 1 << 18  # words generated at a time
LENGTHS = 10, 30  # minimum and maximum words per sentence, drawn uniformly


def shares(types):
    """Return the cumulative probabilities, float64 [types], if word k, from 1, has probability ~ 1 / k."""
    share = np.cumsum(1 / np.arange(1, types + 1))
    return share / share[-1]


def draw(rng, n, share):
    """Draw n word IDs, numbered from 0 by falling frequency; `share` is the result of `shares`."""
    return np.searchsorted(share, rng.random(n)).clip(max=share.size - 1)


def write(file, words, types=50_000, seed=1):
    """Write `words` words to a binary file, one sentence per line; word k of `types` has probability ~ 1 / k."""
    rng = np.random.default_rng(seed)
    share = shares(types)
    names = [b"w%d" % k for k in range(1, types + 1)]
    names = np.array([name + end for end in (b" ", b"\n") for name in names], object)
    for start in range(0, words, BLOCK):
        n = min(BLOCK, words - start)
        ids = draw(rng, n, share)
        ends = np.cumsum(rng.integers(LENGTHS[0], LENGTHS[1] + 1, 1 + n // LENGTHS[0])) - 1
        ids[ends[ends < n]] += types
        ids[-1] = ids[-1] % types + types
        file.write(b"".join(names[ids].tolist()))


@contextlib.contextmanager
def text_or_made(text, words, types=50_000):
    """Yield a temporary folder and the path of `text`; None: generate a text in the folder."""
    with tempfile.TemporaryDirectory(prefix="tiedtools-") as folder:
        if text is None:
            text = os.path.join(folder, "text")
            log.info(f"generating a text of {words:,} words")
            with open(text, "wb") as file:
                write(file, words, types)
        yield folder, text


class Windows:
    """A text of IDs, int32 [rows, batch], in windows; targets are the next row. The text repeats."""

    def __init__(self, task):
        self.ids = np.fromfile(task["path"], np.int32).reshape(-1, task["batch"])
        self.steps, self.done = task["steps"], 0

    def next(self):
        """Return the IDs and the targets of the next window."""
        start = self.done * self.steps % (len(self.ids) - 1)
        self.done += 1
        return self.ids[start : start + self.steps], self.ids[start + 1 : start + 1 + self.steps]
