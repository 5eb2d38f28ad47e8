"""Test where the watcher of a parallel run reports a failure; test_mpi.py tests what it reports."""

import shutil
import subprocess
import sys

import pytest

CODE = "import os; from tiedtools.parallel.watcher import launcher_stderr; os.write(launcher_stderr(), b'a line\\n')"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("name, told", [("mpiexec", "a line\n"), ("other", "")])
def test_the_stderr_of_the_launcher_is_found(name, told, tmp_path):
    """The process itself writes to /dev/null, as if the launcher no longer forwarded its stderr."""
    launcher = shutil.copy("/bin/sh", tmp_path / name)
    line = f'"{sys.executable}" -c "$1" 2>/dev/null; true'  # `true`: the shell must not replace itself
    result = subprocess.run([launcher, "-c", line, "sh", CODE], stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (0, told)
