"""Process that reports, in one line, which rank of a parallel run failed first or was killed.

A launcher kills the other ranks within microseconds when one is killed, so none of them can report it. The kernel
closes the connections of a dead process before the launcher notices; this process, unknown to the launcher, sees that.

Run by rank 0 as `python watcher.py SOCKET SIZE`, with a secret as standard input: SOCKET is the descriptor of a
listening socket, SIZE the number of ranks. Each rank connects, sends `hello`, and waits for `+`. Before it
ends, it sends `bye` or a one-line error. When a rank has failed, all receive `!`.
"""

import contextlib
import os
import selectors
import socket
import stat
import sys
import time
from typing import Any

PATIENCE = 60  # seconds until all ranks have connected
KILLED = " was killed, or lost its connection; the run ended without its output"
READY, BYE, END = b"+", b"bye", b"!"
LAUNCHERS = "mpiexec", "mpiexec.hydra", "mpirun", "hydra_pmi_proxy", "prterun", "orterun"


def hello(token: str, rank: int) -> bytes:
    """Return the first bytes of a rank's connection."""
    return f"{token}{rank:9d}".encode()


def launcher_stderr() -> int:
    """Return a descriptor of the launcher's stderr, or of our stderr if the launcher is on another machine or unknown.

    Once a rank is killed, a launcher may exit without forwarding the last output of its processes.
    """
    pid, launcher = os.getpid(), None
    try:
        while pid > 1:
            with open(f"/proc/{pid}/stat") as file:
                name, _, fields = file.read().partition("(")[2].rpartition(")")
            if name in LAUNCHERS:
                launcher = pid
            elif launcher:
                break
            pid = int(fields.split()[1])
        with open(f"/proc/{launcher}/fdinfo/2") as file:
            appends = int(file.read().partition("flags:")[2].split()[0], 8) & os.O_APPEND
        if not appends and stat.S_ISREG(os.stat(f"/proc/{launcher}/fd/2").st_mode):
            return 2  # the launcher would overwrite what is appended to its file
        return os.open(f"/proc/{launcher}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
    except OSError:  # not Linux, no launcher, or its stderr is a socket
        return 2


def watch(listener: socket.socket, size: int, token: str) -> None:
    """Report the first rank that ends without BYE on stderr. Returns after the report, or when all have sent BYE."""
    stderr = launcher_stderr()
    waiting, rank_of = selectors.DefaultSelector(), dict[Any, int]()
    waiting.register(listener, selectors.EVENT_READ)
    connected, running, deadline = 0, size, time.monotonic() + PATIENCE
    while running:
        timeout = max(0, deadline - time.monotonic()) if connected < size else None
        ready = waiting.select(timeout)
        if not ready:
            return  # a rank failed to connect; training continues without a watcher
        for key, _ in ready:
            connection: Any = key.fileobj
            if connection is listener:
                connection, _ = listener.accept()
                connection.settimeout(5)
                with contextlib.suppress(OSError, ValueError):
                    message = connection.recv(len(hello(token, 0)), socket.MSG_WAITALL)
                    if message.startswith(token.encode()):
                        rank_of[connection] = int(message[len(token) :])
                        connection.sendall(READY)
                        waiting.register(connection, selectors.EVENT_READ)
                        connected += 1
                continue
            try:
                message = connection.makefile("rb").readline().strip()
            except OSError:
                message = b""
            waiting.unregister(connection)
            rank, running = rank_of[connection], running - 1
            if message != BYE:
                message = f": {text}" if (text := message.decode("utf-8", "replace")) else KILLED
                if message == KILLED and stderr != 2:
                    time.sleep(0.1)  # after the lines in which MPI reports failed transfers from that rank
                os.write(stderr, f"tiedtools: rank {rank} of {size}{message}\n".encode())
                for connection in rank_of:
                    with contextlib.suppress(OSError):
                        connection.sendall(END)
                return


if __name__ == "__main__":
    number, size = sys.argv[1:]
    watch(socket.socket(fileno=int(number)), int(size), sys.stdin.read())
