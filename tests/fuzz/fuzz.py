"""Fuzz every reader of the toolkit with damaged files.

A reader passes if it returns the content of the file, as a simple reader does, or raises a TiedtoolsError with a
message that fuzzmessages.py accepts. Other exceptions, warnings, wrong content, crashes, hangs, and high memory use are
failures. Half of the files have unusual names (fuzznames.py).

    python tests/fuzz/fuzz.py --files 100000 --seed 1        several thousand files per second, on all CPUs
    python tests/fuzz/fuzz.py --reader log --number 1234     this file again, kept in the folder of failures
"""

import argparse
import collections
import contextlib
import io
import multiprocessing
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings

from tiedtools.base.processor import available_cores

HANG = 60.0  # seconds per file, on a machine that may do other work
START = 600.0  # seconds until the kernels are compiled
MEMORY = 512 << 20  # bytes above the use after startup


def judge(read, path, files, rng, reader=""):
    """Return the problem, or None, and whether the file was read. `reader` is the reader's name."""
    import fuzzmessages

    from tiedtools.base.errors import TiedtoolsError

    quiet = contextlib.redirect_stderr(io.StringIO())
    with warnings.catch_warnings(record=True) as told, quiet:
        warnings.simplefilter("always")
        try:
            read(path, files, rng)
            message = None
        except TiedtoolsError as error:
            message = str(error)
        except AssertionError:
            return "wrong content: " + traceback.format_exc(limit=-3), True
        except MemoryError:
            return "much memory: " + traceback.format_exc(limit=-5), False
        except Exception:
            return traceback.format_exc(limit=-6), False
    if told:
        return f"warning: {told[0].message} ({told[0].filename}:{told[0].lineno})", message is None
    if message is not None:
        if wrong := fuzzmessages.judge(message, path, files, reader):
            return f"message: {wrong}: {message!r:.2000}", False
    return None, message is None


def damaged(kind, number, seed):
    """Return the file name, dict {name: bytes}, reader, and random.Random of one damaged file."""
    from fuzzmutations import mutated
    from fuzznames import renamed

    name, files, read = kind[1]
    rng = random.Random(f"{kind[0]} {number} {seed}")
    target = name if len(files) == 1 or rng.random() < 0.7 else rng.choice(sorted(files.keys() - {name}))
    files = {**files, target: mutated(rng, target, files[target])}
    return *(renamed(rng, name, files) if rng.random() < 0.5 else (name, files)), read, rng


def put(folder, files):
    for name, data in files.items():
        (folder / name).write_bytes(data)


def prepare():
    """Return all kinds of files, with their readers compiled, and limit the memory used from here on."""
    from fuzzcases import kinds

    found = kinds()
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, files, read) in found.items():
            put(pathlib.Path(folder), files)
            for k in range(3):
                problem, was_read = judge(read, pathlib.Path(folder, path), files, random.Random(k), name)
                assert problem is None and was_read or path.endswith("npz"), f"{name}, undamaged: {problem}"
            for file in files:
                os.unlink(pathlib.Path(folder, file))
    if sys.platform == "linux":
        used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    return found


def work(pipe, current, numbers, seed, chosen):
    found = [kind for kind in prepare().items() if kind[0].startswith(chosen)]
    counts, seconds = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="tiedtools-fuzz-") as folder:
        folder = pathlib.Path(folder)
        for number in numbers:
            kind = found[number % len(found)]
            current.value = number
            name, files, read, rng = damaged(kind, number, seed)
            put(folder, files)
            began = time.perf_counter()
            problem, was_read = judge(read, folder / name, files, rng, kind[0])
            seconds[kind[0]] += time.perf_counter() - began
            counts[kind[0], "read" if was_read else "refused"] += 1
            if problem:
                pipe.send((number, kind[0], problem))
            for file in files:
                os.unlink(folder / file)
            if number == numbers[-1] or counts.total() == 500:
                pipe.send((None, counts, seconds))
                counts, seconds = collections.Counter(), collections.Counter()
    pipe.send((None, None, None))


class Worker:
    """A process that reads its part of the files; one that crashes or hangs is replaced."""

    def __init__(self, numbers, seed, chosen):
        self.numbers, self.options = numbers, (seed, chosen)
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe(False)
        self.current, self.last = context.Value("q", -1, lock=False), (-1, time.monotonic())
        arguments = theirs, self.current, self.numbers, *self.options
        self.process = context.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def poll(self):
        """Yield the results received: failures, and (None, counts, seconds); (None, None, None) at the end."""
        dead = not self.process.is_alive()
        with contextlib.suppress(EOFError):
            while self.pipe.poll():
                told = self.pipe.recv()
                yield told
                if told[1:] == (None, None):
                    return
        at = self.current.value
        if self.last[0] != at:
            self.last = at, time.monotonic()
        slow = time.monotonic() - self.last[1] > (START if at < 0 else HANG)
        if dead or slow:
            self.process.kill()
            self.process.join()
            if at < 0:
                raise SystemExit("fuzz: no reader could be started, see above")
            yield at, None, f"crashed, exit status {self.process.exitcode}" if dead else f"hung for {HANG} seconds"
            self.numbers = self.numbers[self.numbers.index(at) + 1 :]
            self.start()


def fuzz(files, seed=1, chosen="", processes=2, keep="fuzz-failures", tell=print):
    """Read damaged files; return (failures, Counter of (reader, "read" or "refused"), seconds by reader)."""
    from fuzzcases import kinds

    known = [kind for kind in kinds().items() if kind[0].startswith(chosen)]
    if not known:
        raise SystemExit(f"fuzz: no reader's name starts with {chosen}; choose one of {', '.join(kinds())}")
    workers = [Worker(range(first, files, processes), seed, chosen) for first in range(min(processes, files))]
    failures, counts, seconds = [], collections.Counter(), collections.Counter()
    while workers:
        time.sleep(0.05)
        for worker in list(workers):
            for number, *told in worker.poll():
                if told == [None, None]:
                    workers.remove(worker)
                    worker.process.join()
                    continue
                if number is None:
                    counts += told[0]
                    seconds += told[1]
                    continue
                kind = known[number % len(known)]
                folder = pathlib.Path(keep, f"{kind[0]}-{seed}-{number}")
                folder.mkdir(parents=True, exist_ok=True)
                put(folder, damaged(kind, number, seed)[1])
                failures.append((kind[0], number))
                again = f"bin/fuzz --reader {kind[0]} --seed {seed} --number {number}"
                tell(f"\n{kind[0]}: {told[1].strip()}\n{folder}; again: {again}", flush=True)
    return failures, counts, seconds


def main():
    parser = argparse.ArgumentParser(prog="bin/fuzz", description="Fuzz every reader of the toolkit.")
    parser.add_argument("--files", type=int, default=100_000, help="number of files (100000)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (1)")
    parser.add_argument("--reader", default="", help="only readers whose names start with this")
    parser.add_argument("--number", type=int, help="only this file of the given reader")
    parser.add_argument("--keep", default="fuzz-failures", metavar="FOLDER", help="folder for failures")
    options = parser.parse_args()
    if options.number is not None:
        found = prepare()
        if options.reader not in found:
            raise SystemExit(f"fuzz: --number needs the whole name of a --reader, one of {', '.join(found)}")
        name, files, read, rng = damaged((options.reader, found[options.reader]), options.number, options.seed)
        folder = pathlib.Path(options.keep, f"{options.reader}-{options.seed}-{options.number}")
        folder.mkdir(parents=True, exist_ok=True)
        put(folder, files)
        print(judge(read, folder / name, files, rng, options.reader)[0] or "no problem")
        return
    began = time.monotonic()
    failures, counts, seconds = fuzz(options.files, options.seed, options.reader, available_cores(), options.keep)
    failed = collections.Counter(name for name, _ in failures)
    print(f"\n{'reader':24} {'read':>7} {'refused':>7} {'failed':>7} {'ms each':>8}")
    for name in seconds:
        read, refused = counts[name, "read"], counts[name, "refused"]
        print(f"{name:24} {read:7} {refused:7} {failed[name]:7} {1000 * seconds[name] / (read + refused):8.2f}")
    print(f"{counts.total():,} files in {time.monotonic() - began:.0f} s, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve()
    sys.path[:0] = [str(here.parents[2]), str(here.parents[1] / "helpers")]
    main()
