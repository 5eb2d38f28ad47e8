"""Contenders in processes of their own: started, asked, measured, and never left behind. Imports nothing heavy."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from tiedtools.errors import Contradiction, TiedtoolsError


def refuse_uninstalled(package, rival):
    """Raise TiedtoolsError where a Python package that a rival needs is not installed."""
    if importlib.util.find_spec(package) is None:
        raise TiedtoolsError(f"--against {rival}: it is not installed; pip install {package}")


def program(rival, choices):
    """(name, path) of a rival given as NAME=PATH; `choices` has NAME=PATH of all that there are, and others' names.

    Raises TiedtoolsError where it is none of them, or no program.
    """
    name, _, path = rival.partition("=")
    if not path or f"{name}=PATH" not in choices:
        raise Contradiction(f"--against {rival}: no such rival; choose {' or '.join(choices)}")
    if shutil.which(path) is None:
        raise TiedtoolsError(f"--against {rival}: no program there; give the path of {name}, compiled")
    return name, os.path.abspath(shutil.which(path))


@contextlib.contextmanager
def running(command, **pipes):
    """A process, which with all that it starts ends with the block if that is left early."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, **pipes) as process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def failed(name, reason):
    """The TiedtoolsError for a contender that failed: its name, and the last line of what it said."""
    return TiedtoolsError(f"{name}: {(reason.strip().splitlines() or ['it stopped without a word'])[-1]}")


class Worker:
    """A process that is started with the first question and answers each, a line of JSON, by one.

    processes  an ExitStack, with which it ends;  environment  added to this process's own
    """

    def __init__(self, name, command, processes, environment=None):
        self.name, self.command, self.processes, self.environment = name, command, processes, environment or {}
        self.process = None

    def __call__(self, question):
        if not self.process:
            self.errors = self.processes.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            self.process = self.processes.enter_context(
                running(
                    self.command,
                    stdin=subprocess.PIPE,
                    stderr=self.errors,
                    text=True,
                    env=os.environ | self.environment,
                )
            )
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.errors.seek(0)
            raise failed(self.name, self.errors.read())
        return json.loads(answer)


def serve(answer):
    """What a worker does: answer(question) for each line of standard input."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


# Started small: the system counts what a process held before it became another one as that one's memory.
MEASURE = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(time.perf_counter() - began, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
sys.exit(status != 0)
"""


def whole(name, command):
    """Run a whole command in a process of its own; returns (seconds, bytes of memory at its peak)."""
    command = [sys.executable, "-S", "-c", MEASURE, *command]
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        told, errors = process.communicate()
    if process.returncode:
        raise failed(name, errors)
    seconds, peak = told.split()
    return float(seconds), int(peak)
