"""Time commands on a large synthetic fastText model: examples/benchmarks/bigmodel.py FILE [--words N] [--buckets N]

The model has the size of published ones: 2M words, 2M buckets, n-grams of 5 characters, 300 dimensions, 7.2 GB. FILE is
written unless it exists; `--minn 3 --maxn 6` are fastText's own defaults. Commands run twice; the second time counts.
"""

import argparse
import itertools
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np

from tiedtools.files.output import open_output
from tiedtools.vectors.fasttextwriter import write_model

SYLLABLES = ["".join(parts) for parts in itertools.product("bcdfghjklmnprstvwz", "aeiou", ["", "n", "r", "s", "t"])]


class Noise:
    """A matrix of normally distributed numbers, which repeat after 100,003 rows at different lengths."""

    def __init__(self, rows, columns):
        self.shape = rows, columns
        self.block = np.random.default_rng(1).standard_normal((100_003, columns), dtype=np.float32) / 10

    def __getitem__(self, rows):
        numbers = np.arange(rows.start, min(rows.stop, self.shape[0]))
        return self.block[numbers % len(self.block)] * (1 + numbers[:, None] // len(self.block)).astype(np.float32)


def words_of(V):
    """Return V different words of two to four syllables, after `</s>`."""
    rng, words = np.random.default_rng(1), {"</s>": None}
    while len(words) < V:
        draws = rng.integers(len(SYLLABLES), size=(V, 4)).tolist()
        words |= dict.fromkeys("".join(SYLLABLES[k] for k in draw[: 2 + draw[0] % 3]) for draw in draws)
    return list(words)[:V]


def write(path, V, buckets, dim, minn, maxn):
    """Write the model, unless it exists, and beside it 100 words, half of them unseen."""
    words = words_of(V)
    with open(f"{path}.asked", "w") as file:
        file.writelines(f"{word}\n{word[::-1]}qu\n" for word in words[7 :: V // 50][:50])
    if not os.path.exists(path):
        with open_output(path) as file:
            counts = np.maximum(5, 10**9 // np.arange(2, V + 2))
            write_model(file, words, Noise(V + buckets, dim), counts, minn=minn, maxn=maxn, bucket=buckets)


def timed(*command):
    """Run a tiedtools command twice; return seconds, of them CPU seconds, and megabytes at the peak, of the second."""
    for _ in range(2):
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "tiedtools", *map(str, command)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("file")
    for name, default in dict(words=2_000_000, buckets=2_000_000, dim=300, minn=5, maxn=5).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    path, *sizes = vars(parser.parse_args()).values()
    # In a process of its own: the peak of a process includes the memory of the one that started it.
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(path, *sizes))
    writer.start()
    writer.join()
    if writer.exitcode:
        sys.exit(1)
    with open(f"{path}.asked") as file:
        asked = file.read().split()
    for name, command in {
        "vectors of 100 words, half of them unseen": ["convert", path, "-", "--words", f"{path}.asked"],
        "nn of one word": ["nn", path, asked[0], "--min-count", "0"],
        "nn of 100 words": ["nn", path, *asked, "--min-count", "0"],
        "convert to float16": ["convert", path, f"{path}.npy", "--dtype", "float16"],
        "nn of one word then": ["nn", f"{path}.npy", asked[0]],
    }.items():
        print("{}: {:.1f} s, {:.1f} s of CPU, {:,.0f} MB".format(name, *timed(*command)), flush=True)


if __name__ == "__main__":
    main()
