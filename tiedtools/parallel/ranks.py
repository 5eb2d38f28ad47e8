"""Ranks, the processes of a parallel run under MPI: sums, exchange, broadcast, and a joint exit if one fails.

Another engine could replace MPI by providing the methods of Ranks.
"""

import contextlib
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from tiedtools.base.errors import TiedtoolsError, printable, reason
from tiedtools.base.version import __version__
from tiedtools.parallel import watcher

# Variables with the number of processes started by a launcher: MPICH and Intel MPI, Open MPI, Slurm.
SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"
NUMBERS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"  # number of this process
GRACE = 5  # seconds until a rank exits after the death of another rank

current = None  # the Ranks of this process


def launched() -> int | None:
    """Return the number of processes that an MPI launcher started together; None without a launcher."""
    sizes = {name: int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()}
    if sizes.get("SLURM_STEP_NUM_TASKS") == 1:  # also in an interactive shell
        del sizes["SLURM_STEP_NUM_TASKS"]
    return max(sizes.values(), default=None)


def start(args: list[str]) -> "Ranks":
    """Connect the ranks of the command line `args`. Raises TiedtoolsError if MPI is missing or the ranks differ."""
    global current
    try:
        current = Ranks()
    except TiedtoolsError as error:
        if number := next((os.environ[name] for name in NUMBERS if os.environ.get(name, "0") != "0"), None):
            time.sleep(GRACE)  # if rank 0 has the same error, its message comes first
            sys.stderr.write(f"tiedtools: rank {number} of {launched()}: {error}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)  # a launcher ignores an exit before MPI has started
        raise
    current.compare(args)
    return current


class Ranks:
    """The ranks of this run, which must all call the collective methods in the same order.

    rank, size  number of this process, from 0, and number of processes
    parted      whether no collective step follows, so that rank 0 alone reports how the run ended

    Raises TiedtoolsError if mpi4py is missing or does not fit the launcher.
    """

    mpi: Any  # the module mpi4py.MPI

    def __init__(self) -> None:
        self.parted = False
        try:
            import mpi4py

            mpi4py.rc.thread_level = "funneled"
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            problem = f"{launched()} processes were started under MPI, but mpi4py cannot be loaded ({error})"
            remedy = 'pip install "tiedtools[mpi]" and an MPI library, or start one process'
            raise TiedtoolsError(f"{problem}; {remedy}") from None
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        if self.size == 1 < (launched() or 1):
            alone = f"each is alone in mpi4py's MPI ({MPI.get_vendor()[0]})"
            remedy = "use the launcher of that library, or srun --mpi=pmi2 or pmix"
            raise TiedtoolsError(f"the launcher started {launched()} processes, but {alone}; {remedy}")
        self.near = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.local = self.near.size  # ranks on this machine
        self.adders = {}
        self.connection: socket.socket | None = None
        self.reported = threading.Event()
        try:
            self.watch()
        except OSError as error:  # of this rank alone; the others would wait
            self.abort(f"the watcher of the ranks cannot be started: {reason(error)}", 1)
        sys.excepthook = self.traceback

    def watch(self) -> None:
        """Connect to the watcher, a child process of rank 0 that reports which rank died."""
        host = "localhost" if self.local == self.size else ""
        server = socket.create_server((host, 0)) if self.rank == 0 else contextlib.nullcontext()
        with server as listener:
            address = listener and (socket.gethostname(), listener.getsockname()[1], secrets.token_hex(8))
            leader, port, token = self.broadcast(address)
            if listener:
                command = [sys.executable, "-S", watcher.__file__, str(listener.fileno()), str(self.size)]
                pipes: Any = dict(stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()])
                process: Any = subprocess.Popen(command, start_new_session=True, **pipes)
                with process.stdin as secret:
                    secret.write(token.encode())
        with contextlib.suppress(OSError):
            self.connection = socket.create_connection((host or leader, port), timeout=10)
            self.connection.sendall(watcher.hello(token, self.rank))
            self.connection.recv(1)  # from now on, the watcher sees which rank dies first
            self.connection.settimeout(None)
            threading.Thread(target=self.exit_with_others, args=[self.connection], daemon=True).start()

    def exit_with_others(self, connection: socket.socket) -> None:
        """Exit when another rank has died, unless the launcher ends this process first."""
        with contextlib.suppress(OSError):
            if connection.recv(1) == watcher.END:
                self.reported.set()
                time.sleep(GRACE)
                os._exit(1)

    def compare(self, args: list[str]) -> None:
        """Raise TiedtoolsError if the ranks run different versions or command lines."""
        everyone = self.exchange((__version__, args))
        version, line = everyone[0]
        for rank, (other_version, other_line) in enumerate(everyone):
            if other_version != version:
                problem = f"runs tiedtools {other_version}, rank 0 {version}; install the same version on all machines"
            elif other_line != line:
                ours, theirs = (without(*lines) for lines in ((line, other_line), (other_line, line)))
                problem = f"was started with{theirs}, rank 0 with{ours}; start all ranks with the same command"
            else:
                continue
            self.part()
            raise TiedtoolsError(f"rank {rank} {problem}")

    def threads(self, cores: int) -> int:
        """Return the default number of threads: `cores`, divided by the processes that share them."""
        mask = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        return max(1, cores // self.near.allgather(mask).count(mask))

    def start_sum(self, total: Any, own: Any, add: Callable[..., Any] | None = None) -> Callable[[], bool]:
        """Start to sum the array `own` of each rank into `total`, of the same shape, and return a function.

        The function returns whether the sum is complete; call it until it returns True.

        add  add(into, other), which adds arrays of this type; None: MPI's own sum
        """
        op = self.mpi.SUM if add is None else self.operation(add, own.dtype)
        return self.comm.Iallreduce(own, total, op).Test

    def operation(self, add: Callable[..., Any], dtype: Any) -> Any:
        import numpy as np

        if add not in self.adders:
            self.adders[add] = self.mpi.Op.Create(
                lambda other, into, _: add(np.frombuffer(into, dtype), np.frombuffer(other, dtype)), commute=True
            )
        return self.adders[add]

    def exchange(self, value: Any) -> list[Any]:
        """Return a list of the values of all ranks. Values of this and the next methods must be picklable."""
        return self.comm.allgather(value)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value on every rank."""
        return self.comm.bcast(value)

    def send(self, value: Any, to: int) -> None:
        self.comm.send(value, to)

    def receive(self, source: int) -> Any:
        return self.comm.recv(source=source)

    def part(self) -> None:
        """Declare that no collective step follows."""
        self.parted = True
        self.send_line(watcher.BYE.decode())

    def send_line(self, line: str) -> bool:
        """Send a line to the watcher; return whether this rank has a connection to it."""
        if self.connection is None:
            return False
        with contextlib.suppress(OSError):
            self.connection.sendall(f"{line}\n".encode())
        return True

    def abort(self, message: str, status: int) -> NoReturn:
        """Report an error of this rank in one line and end all ranks; does not return."""
        if self.reported.is_set():  # this rank stops because another one has failed
            time.sleep(0.2)  # let the launcher see the other rank's exit status first
            status = 1
        elif not (self.send_line(printable(message)) and self.reported.wait(GRACE)):
            sys.stderr.write(f"tiedtools: rank {self.rank} of {self.size}: {printable(message)}\n")
            sys.stderr.flush()
        time.sleep(0.05)  # the launcher may drop output that it has not read yet
        self.comm.Abort(status)
        os._exit(status)  # MPI_Abort may return

    def traceback(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """Print the traceback of a bug and end all ranks."""
        sys.__excepthook__(kind, error, trace)
        self.abort(f"{kind.__name__}: {error}", 1)


def without(line: list[str], others: list[str]) -> str:
    """Return the arguments of `line` that `others` lacks, for a message."""
    return f" {shlex.join([word for word in line if word not in others] or line)}"
