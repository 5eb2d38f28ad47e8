"""Crash trials: real training runs, each stopped at a random moment, checked, and resumed.

However a run is stopped, no output is incomplete, the output of an earlier finished run is still there, the exit status
is correct, there is no traceback, the last checkpoint loads, and the same command, run again, ends with the bytes of an
uninterrupted run. A run that diverges changes no output.
"""

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from tqdm import tqdm

from tiedtools.files import manifest, modelfile
from tiedtools.models.rnnlm.program import load_rnnlm
from tiedtools.vectors.vectors import Vectors

# Run the command line, with the signals that `start` ignores; Python itself would show a traceback.
LISTEN = """
import signal
from tiedtools.__main__ import main
for number in signal.SIGINT, signal.SIGTERM:
    signal.signal(number, signal.SIG_DFL)
main()
"""
FILES = "--checkpoint run/checkpoint --checkpoint-minutes .002 --resume"
LOG, MODEL, VECTORS, OLD = "--log-json out/log", "--save-model out/model", "-output out/vectors", b"old\n"
W2V = "w2v text -size 20 -sample 0 -min-count 1"
COMMANDS = {
    "w2v": f"{W2V} -threads 1 -iter 25",
    "w2v tied, fixed signs": f"{W2V} --tie-signs -cbow 0 -threads 1 -iter 8",
    "w2v tied+L": f"{W2V} --tie-linear -cbow 0 -threads 1 -iter 8",
    "w2v hs": f"{W2V} -hs 1 -threads 1 -iter 12",
    "w2v tied exact": f"{W2V} --tie --exact -threads 1 -iter 12",
    "w2v deterministic": f"{W2V} --deterministic -threads 2 -iter 25",
    "rnnlm": "rnnlm text -hidden 20 -class 20 --doc-dim 5 -max-iter 3",
    "rnnlm -rnnlm": "rnnlm -train text -rnnlm out/rnnlm -hidden 20 -class 20 -max-iter 5",
    "lstm": "lstm text --tie-linear --emb 20 --epochs 4 --threads 1",
    "lm rhn": "lm text --cell rhn --emb 20 --hidden 20 --epochs 2 --threads 1",
    "nmt": "nmt --source text --target text --tie all --size 20 --hidden 20 --epochs 2 --threads 1",
    "w2v subwords": f"{W2V} --subwords ngrams --buckets 1000 -threads 1 -iter 12",
    "w2v runs": f"{W2V} --runs 4 -threads 2 -iter 12",
    "w2v slices": f"{W2V} half --slices --runs 2 -threads 1 -iter 4 -output out",
}
# Commands that cannot write vectors to standard output, and options that they do without.
SILENT = {"rnnlm -rnnlm": [VECTORS], "w2v runs": [MODEL], "w2v slices": [FILES, MODEL, LOG, VECTORS]}


def command(name, vectors=VECTORS, log=LOG, wild=False):
    options = {FILES: FILES, MODEL: MODEL, LOG: log, VECTORS: vectors}
    line = " ".join([COMMANDS[name], *(now for option, now in options.items() if option not in SILENT.get(name, []))])
    if wild:
        line = f"{line} {WILD[name.split()[0]]} ".replace("run/checkpoint", "run/wild")
        line = line.replace("-output out ", "-output run/wild ")
    return [sys.executable, "-c", LISTEN, *line.split()]


def write_text(folder, words=400, lines=4000):
    """Write a text in which the words of a line depend on its topic."""
    rng = np.random.default_rng(0)
    topics = rng.integers(10, size=(lines, 1))
    names = np.array([f"word{k}" for k in range(words)])
    rows = names[(rng.integers(words // 10, size=(lines, 12)) * 10 + topics)]
    for name, part in ("text", rows), ("half", rows[: lines // 2]):
        (folder / name).write_text("".join(" ".join(row) + "\n" for row in part))


def start(arguments, folder, stdout=subprocess.DEVNULL, unbuffered=False):
    """Start the process, which ignores SIGINT and SIGTERM until it handles them."""

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    # Outputs that cannot be written where they should be are written to the home folder.
    homes = dict(HOME=str(folder), XDG_CACHE_HOME=os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    environment = {**os.environ, **homes, "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    return subprocess.Popen(
        arguments, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, preexec_fn=ignore
    )


def end(process):
    """Wait for the process; return (exit status, stderr)."""
    told = process.stderr.read()  # fits in the buffer of a pipe
    return process.wait(), told


# Functions of the process, the folder, and a random generator that stop a run and return the allowed exit statuses.


def signalled(number, times=1):
    def stop(process, folder, rng):
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.01)
        # SIGHUP may arrive before it is handled. If a signal handler raises within exec() of a string, which creates
        # dataclasses, CPython kills itself with SIGINT, which shells report as 130.
        handled = {128 + number, -signal.SIGINT}
        return {0} | {signal.SIGKILL: {-9}, signal.SIGHUP: {-1, *handled}}.get(number, handled)

    return stop


def full_disk(process, folder, rng):
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
    return {0, 1}


def folder_removed(process, folder, rng):
    shutil.rmtree(folder / "out", ignore_errors=True)
    return {0, 1}


def folder_replaced(process, folder, rng):
    (folder / "out").rename(folder / "moved")
    (folder / "out").write_bytes(OLD)
    return {0, 1}


def checkpoints_removed(process, folder, rng):
    shutil.rmtree(folder / "run", ignore_errors=True)
    return {0, 1}  # 1: removed before the first checkpoint


def pipe_closed(process, folder, rng):
    if rng.random() < 0.5:
        process.stdout.read(100)
    process.stdout.close()
    return {141}


KINDS = {
    "Ctrl-C": signalled(signal.SIGINT), "SIGTERM": signalled(signal.SIGTERM), "SIGHUP": signalled(signal.SIGHUP),
    "SIGKILL": signalled(signal.SIGKILL), "Ctrl-C, five times": signalled(signal.SIGINT, 5), "disk full": full_disk,
    "device full": lambda *_: {0, 1}, "output folder removed": folder_removed,
    "output folder replaced": folder_replaced, "checkpoint folder removed": checkpoints_removed,
    "pipe closed": pipe_closed, "diverged": lambda *_: {1},
}  # fmt: skip
# Options with which the commands diverge.
WILD = dict(w2v="-alpha 1e4", rnnlm="-alpha 1e6", lstm="--lr 1e6 --clip 0", lm="--lr 1e6 --clip 0", nmt="--lr 1e6")
if not hasattr(resource, "prlimit"):
    del KINDS["disk full"]
if not os.path.exists("/dev/full"):
    del KINDS["device full"]


class Trials:
    """Trials in separate folders of `root`; the results of an uninterrupted run are computed once per command."""

    def __init__(self, root, seed):
        self.root, self.seed, self.expected = Path(root), seed, {}
        write_text(self.root)

    def fresh(self, name):
        folder = self.root / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("out", "run"):
            (folder / part).mkdir(parents=True)
        for text in "text", "half":
            shutil.copy(self.root / text, folder)
        return folder

    def uninterrupted(self, name):
        """Return (outputs by name, epochs of the log, seconds of the faster of two runs) of the command."""
        if name not in self.expected:
            seconds = math.inf
            for _ in range(2):
                folder, began = self.fresh(name), time.monotonic()
                status, told = end(start(command(name), folder))
                assert status == 0, told
                seconds = min(seconds, time.monotonic() - began)
            self.expected[name] = outputs(folder), epochs(folder), seconds
        return self.expected[name]

    def run(self, number):
        """Run a trial; return whether the run was stopped early. Raise AssertionError, or a file's reading error."""
        kind, name = which(number)
        rng = np.random.default_rng([self.seed, number])
        expected, _, seconds = self.uninterrupted(name)
        folder = self.fresh(f"trial {number}")
        if rng.random() < 0.5:
            for output in expected.keys() & {"vectors", "model"}:
                (folder / "out" / output).write_bytes(OLD)
        stopped = self.stop(kind, name, folder, seconds * rng.random() ** 0.7, rng)
        if (folder / "out").is_file():
            (folder / "out").unlink()
        if kind == "checkpoint folder removed":
            (folder / "out/rnnlm").unlink(missing_ok=True)  # the run would resume from it
        for part in ("out", "run"):
            (folder / part).mkdir(exist_ok=True)
        while rng.random() < 0.3:
            self.stop("SIGKILL", name, folder, seconds * rng.random(), rng)
        self.resume(name, folder)
        shutil.rmtree(folder)
        return stopped

    def stop(self, kind, name, folder, moment, rng):
        """Start the command, stop it after `moment` seconds, and check its files; return whether that was early."""
        expected, options, stdout, unwritten = self.uninterrupted(name)[0], {}, subprocess.DEVNULL, set()
        if kind == "pipe closed":
            stdout = subprocess.PIPE
            options, unwritten = ({}, set()) if name in SILENT else (dict(vectors=""), {"vectors"})
        if kind == "device full":
            options = dict(vectors="-output /dev/full") if rng.random() < 0.5 else dict(log="--log-json /dev/full")
        wild = kind == "diverged"
        before = contents(folder)
        process = start(command(name, **options, wild=wild), folder, stdout, unbuffered=rng.random() < 0.5)
        time.sleep(0 if wild else moment)
        early = wild or process.poll() is None
        statuses = KINDS[kind](process, folder, rng) if early else {0, 1} if kind == "device full" else {0}
        if name in SILENT and not wild:
            statuses |= {0}
        elif "vectors" in options:
            statuses -= {0}
        status, told = end(process)
        assert status in statuses, f"exit status {status}: {told}"
        no_crash(told, status)
        if status != 0 and "folder" not in kind:
            kept(before, contents(folder), expected)
        if wild:
            assert contents(folder).keys() - {"log", "rnnlm.output.txt"} == before.keys() - {"rnnlm.output.txt"}, (
                "a diverged run wrote something"
            )
        for subfolder in ("out", "moved"):
            if (folder / subfolder).is_dir():
                whole(folder / subfolder, expected, killed=kind == "SIGKILL")
        if status == 0 and "folder" not in kind:
            same(outputs(folder), expected, unwritten)
        return early and status != 0

    def resume(self, name, folder):
        expected, history, _ = self.uninterrupted(name)
        status, told = end(start(command(name), folder))
        assert status == 0, f"resumed: exit status {status}: {told}"
        found = outputs(folder)
        same(found, expected)
        assert set(found) == set(expected), f"unexpected outputs: {sorted(set(found) - set(expected))}"
        assert epochs(folder) == history, f"the log has {epochs(folder)}, not {history}"


def which(number):
    """Return (kind, command) of a trial."""
    return list(KINDS)[number % len(KINDS)], list(COMMANDS)[number // len(KINDS) % len(COMMANDS)]


def same(found, expected, unwritten=frozenset()):
    for name in expected.keys() - unwritten:
        assert found.get(name) == expected[name], f"{name} differs from that of an uninterrupted run"


def outputs(folder):
    """Return the outputs that do not depend on time, by name: bytes, or for manifests the hashes of outputs."""
    files = (path for path in (folder / "out").iterdir() if path.name not in ("log", "rnnlm.output.txt"))
    files = (path for path in files if ".finished" not in path.name)
    return {path.name: hashes(path) if path.suffix == ".json" else path.read_bytes() for path in files}


def contents(folder):
    """Return the bytes of the outputs by name."""
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir() if ".tiedtools-" not in path.name}


def kept(before, after, expected):
    """Check that output finished before a stopped run is still there, under its name or as NAME.finished.

    A run that finishes training replaces it, even if another output then fails.
    """
    for name, data in before.items():
        name = name.removesuffix(".finished")
        if data == OLD and after.get(name) != expected.get(name):
            assert OLD in (after.get(name), after.get(f"{name}.finished")), f"{name} is lost"


def hashes(path):
    return [output["sha256"] for output in manifest.loads(path.read_bytes(), path)["outputs"]]


def epochs(folder):
    """Return the values in each line of the log that do not depend on time."""
    free = ("seconds", "tokens_per_s", "words_per_s")
    log = folder / "out/log"
    lines = map(json.loads, log.read_text().splitlines() if log.exists() else [])
    found = [{name: value for name, value in line.items() if name not in free} for line in lines]
    return sorted(found, key=lambda line: line.get("run", 0))  # runs end in any order


def no_crash(told, status):
    """Check that there is no traceback on stderr, and that a failed run's last line is an error message."""
    for word in ("Traceback", "Exception ignored", "Error:"):
        assert word not in told, told
    if status > 0 and status != 141:
        assert told.splitlines()[-1].startswith("tiedtools: "), told


def whole(folder, expected, killed):
    """Check that each file in `folder` is unchanged or complete, and that partial files remain only after SIGKILL."""
    for path in folder.iterdir():
        if path.name.startswith(".tiedtools-"):
            assert killed or folder.name == "moved", f"{path.name} is left"
        elif path.name in expected and path.read_bytes() not in (OLD, expected[path.name]):
            data = path.read_bytes()
            if path.name == "rnnlm":
                load_rnnlm(str(path))
            elif path.suffix == ".json":
                manifest.loads(data, path)
            elif not data.startswith(modelfile.MAGIC) and path.name == "vectors":
                assert len(Vectors.read(str(path)).matrix)
            else:
                modelfile.read(str(path))
    checkpoint = folder.parent / "run/checkpoint"
    if checkpoint.exists():
        assert modelfile.load(str(checkpoint))[0]["kind"] == "checkpoint"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="stoptest", description=__doc__.split("\n\n")[0])
    parser.add_argument("--trials", type=int, default=200, help="number of trials [200]")
    parser.add_argument("--seed", type=int, default=1, help="random seed [1]")
    parser.add_argument("--trial", type=int, action="append", help="only this trial, by its number in a failure")
    options = parser.parse_args(arguments)
    root = tempfile.mkdtemp(prefix="stoptest-")
    trials, done, stopped, failures = Trials(root, options.seed), Counter(), Counter(), Counter()
    for number in tqdm(options.trial or range(options.trials), unit=" trials", disable=None):
        kind, name = which(number)
        try:
            stopped[kind] += trials.run(number)
        except Exception as error:  # an unreadable file is a failure, too
            failures[kind] += 1
            print(f"trial {number}, {name}, {kind}: {type(error).__name__}: {error}", file=sys.stderr)
            print(f"  again: bin/stoptest --seed {options.seed} --trial {number}; its files: {root}", file=sys.stderr)
        done[kind] += 1
    for kind in done:
        print(f"{kind:28}{done[kind]:4} trials, {stopped[kind]:4} stopped early, {failures[kind]:4} failed")
    if not failures:
        shutil.rmtree(root)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
