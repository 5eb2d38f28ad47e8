"""Process that reports, in one line, which rank of a parallel run failed first or was killed.

A launcher kills the other ranks within microseconds when one is killed, so none of them can tell. The kernel closes the
connections of a dead process before the launcher hears of it; this process, which the launcher does not know, sees it.

Run by rank 0 as `python watcher.py SOCKET SIZE`, with a secret as standard input: SOCKET is the descriptor of a
listening socket, SIZE the number of ranks. Each rank connects, sends `hello`, and waits for `+`. Before it ends, it
sends `bye`, or a line of error. All are sent `!` when one has failed.
"""

import contextlib
import os
import selectors
import socket
import sys
import time
from typing import Any

PATIENCE = 60  # seconds until all ranks have connected
KILLED = " was killed, or lost its connection; nothing was written"
READY, BYE, END = b"+", b"bye", b"!"
LAUNCHERS = "mpiexec", "mpiexec.hydra", "mpirun", "hydra_pmi_proxy", "prterun", "orterun"


def hello(token, rank):
    """Return the first bytes of a rank's connection."""
    return f"{token}{rank:9d}".encode()


def launcher_stderr():
    """Return a descriptor of the launcher's stderr, or of our own if the launcher is on another machine or unknown.

    Once a rank is killed, a launcher may exit without forwarding what the processes it started still write.
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
        return os.open(f"/proc/{launcher}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
    except OSError:  # not Linux, no launcher, or its stderr is a socket
        return 2


def watch(listener, size, token):
    """Report the first rank that ends without BYE on stderr. Returns when all have said it, or after the report."""
    stderr = launcher_stderr()
    waiting, lines = selectors.DefaultSelector(), dict[Any, int]()
    waiting.register(listener, selectors.EVENT_READ)
    connected, left, late = 0, size, time.monotonic() + PATIENCE
    while left:
        timeout = max(0, late - time.monotonic()) if connected < size else None
        ready = waiting.select(timeout)
        if not ready:
            return  # a rank failed to connect; training continues without a watcher
        for key, _ in ready:
            connection: Any = key.fileobj
            if connection is listener:
                connection, _ = listener.accept()
                connection.settimeout(5)
                with contextlib.suppress(OSError, ValueError):
                    said = connection.recv(len(hello(token, 0)), socket.MSG_WAITALL)
                    if said.startswith(token.encode()):
                        lines[connection] = int(said[len(token) :])
                        connection.sendall(READY)
                        waiting.register(connection, selectors.EVENT_READ)
                        connected += 1
                continue
            try:
                said = connection.makefile("rb").readline().strip()
            except OSError:
                said = b""
            waiting.unregister(connection)
            rank, left = lines[connection], left - 1
            if said != BYE:
                said = f": {text}" if (text := said.decode("utf-8", "replace")) else KILLED
                if said == KILLED and stderr != 2:
                    time.sleep(0.1)  # not amid the lines in which MPI reports failed transfers from that rank
                os.write(stderr, f"tiedtools: rank {rank} of {size}{said}\n".encode())
                for connection in lines:
                    with contextlib.suppress(OSError):
                        connection.sendall(END)
                return


if __name__ == "__main__":
    number, size = sys.argv[1:]
    watch(socket.socket(fileno=int(number)), int(size), sys.stdin.read())
