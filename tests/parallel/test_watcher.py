"""Test where the watcher of a parallel run reports a failure; test_mpi.py tests what it reports."""

import shutil
import subprocess
import sys

import pytest

# The process loses its own stderr, as if the launcher no longer forwarded it.
CODE = """import os
from tiedtools.parallel.watcher import launcher_stderr
found = launcher_stderr()
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
os.write(found, b"a line")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("name, told", [("mpiexec", "a line"), ("other", "")])
def test_the_stderr_of_the_launcher_is_found(name, told, tmp_path):
    launcher = shutil.copy("/bin/sh", tmp_path / name)
    run_and_wait = '"$0" -c "$1"; exit $?'
    result = subprocess.run([launcher, "-c", run_and_wait, sys.executable, CODE], stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (0, told)
