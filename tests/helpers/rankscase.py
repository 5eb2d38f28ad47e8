"""Ranks that are threads of one process, for tests, and command lines started under MPI."""

import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py and mpiexec"
)


class ThreadRanks:
    """The methods of Ranks, for `size` threads with one instance each."""

    def __init__(self, rank, size, shared):
        self.rank, self.size, self.shared = rank, size, shared

    @classmethod
    def team(cls, size):
        shared = dict(
            slots=[None] * size,
            barrier=threading.Barrier(size),
            queues={(a, b): queue.Queue() for a in range(size) for b in range(size)},
        )
        return [cls(rank, size, shared) for rank in range(size)]

    def exchange(self, value):
        self.shared["slots"][self.rank] = value
        self.shared["barrier"].wait()
        found = list(self.shared["slots"])
        self.shared["barrier"].wait()
        return found

    def broadcast(self, value):
        return self.exchange(value)[0]

    def send(self, value, to):
        self.shared["queues"][self.rank, to].put(value)

    def receive(self, source):
        return self.shared["queues"][source, self.rank].get(timeout=60)

    def start_sum(self, total, own, add=None):
        first, *others = self.exchange(own.copy())
        total[:] = first
        for other in others:
            if add is None:
                total += other
            else:
                add(total, other)
        return lambda: True

    def part(self):
        pass


def start(n, *args, each=(), **options):
    """Start `tiedtools ARGS` on n ranks; `each`: mpiexec's options and command prefix of single ranks instead."""
    command = [sys.executable, "-m", "tiedtools", *map(str, args)]
    groups = [["-n", "1", *prefix(k), *command] for k in range(n)] if (prefix := each) else [["-n", str(n), *command]]
    line = [word for k, group in enumerate(groups) for word in [*[":"] * bool(k), *group]]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    return subprocess.Popen([MPIEXEC, *line], start_new_session=True, **pipes, **options)


def finished(process, timeout=100):
    """Return (exit status, standard output, lines of tiedtools on standard error)."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, [line for line in err.splitlines() if line.startswith("tiedtools")]
