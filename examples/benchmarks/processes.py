"""Start, query, measure, and reliably terminate child processes of the benchmarks. Imports nothing heavy."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from tiedtools.base.errors import Contradiction, TiedtoolsError

FOLDER = os.path.dirname(os.path.abspath(__file__))


def refuse_uninstalled(package, rival):
    """Raise TiedtoolsError if the Python package that a rival needs is not installed."""
    if importlib.util.find_spec(package) is None:
        raise TiedtoolsError(f"--against {rival}: not installed; run pip install {package}")


def refuse_missing_torch(rivals, choices):
    """Raise TiedtoolsError for a rival that is not one of `choices`, or not installed."""
    for rival in rivals:
        if rival not in choices:
            raise Contradiction(f"--against {rival}: no such rival; choose {' or '.join(choices)}")
        refuse_uninstalled("torch", rival)


def program(rival, choices):
    """Parse a rival NAME=PATH into (name, path).

    choices  all valid forms, for the message: NAME=PATH, or the name of a rival without a path

    Raises TiedtoolsError if the rival is unknown or PATH is not a program.
    """
    name, _, path = rival.partition("=")
    if not path or f"{name}=PATH" not in choices:
        raise Contradiction(f"--against {rival}: no such rival; choose {' or '.join(choices)}")
    if shutil.which(path) is None:
        raise TiedtoolsError(f"--against {rival}: no program there; give the path of {name}, compiled")
    return name, os.path.abspath(shutil.which(path))


@contextlib.contextmanager
def running(command, **pipes):
    """Run a process while the block runs; if the block raises, kill the process and its children."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, **pipes) as process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def failed(name, reason):
    """Return the TiedtoolsError for a contender that failed, with the last line of its output as the reason."""
    return TiedtoolsError(f"{name}: {(reason.strip().splitlines() or ['it stopped without a word'])[-1]}")


def worker(function, task=None):
    """Return the command line of a Worker that answers a question with function(task)(question).

    function  "module:name" in this folder
    task      a JSON-serializable value
    """
    return [sys.executable, FOLDER, "worker", function, json.dumps(task)]


class Worker:
    """A process that answers each line of JSON with a line of JSON; it starts at the first question.

    processes    an ExitStack that ends the process
    environment  variables to add to the environment of this process
    """

    def __init__(self, name, command, processes, environment=None):
        self.name, self.command, self.processes, self.environment = name, command, processes, environment or {}
        self.process = None

    def __call__(self, question):
        if not self.process:
            self.errors = self.processes.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            pipes = dict(stdin=subprocess.PIPE, stderr=self.errors, text=True)
            environment = os.environ | self.environment
            self.process = self.processes.enter_context(running(self.command, env=environment, **pipes))
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.errors.seek(0)
            raise failed(self.name, self.errors.read())
        return json.loads(answer)


def serve(answer):
    """Run a worker's loop: print answer(question) for each line of standard input, both as JSON."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


# A small interpreter starts the program, since the peak memory of a process includes its memory before exec.
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
    """Run a complete command in a separate process; return (seconds, peak bytes of memory)."""
    command = [sys.executable, "-S", "-c", MEASURE, *command]
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate()
    if process.returncode:
        raise failed(name, errors)
    seconds, peak = output.split()
    return float(seconds), int(peak)
