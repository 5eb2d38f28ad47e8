"""Test the scripts in bin/ and the entry points of the command line."""

import os
import shlex
import shutil
import stat
import subprocess
import sys

import pytest
from common import ROOT

from tiedtools.base.version import __version__

SCRIPTS = [f"bin/{name}" for name in ("check", "demo", "docs", "fuzz", "stoptest", "test", "tiedtools", "_environment")]
SCRIPTS += ["examples/quickstart.sh", ".ci/run"]

needs_checkout = pytest.mark.skipif(
    not (ROOT / "bin").is_dir() or shutil.which("sh") is None, reason="needs a checkout and a POSIX shell"
)


def call(*command, cwd=None, **environment):
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


@needs_checkout
def test_syntax():
    for script in SCRIPTS:
        shell = "bash" if script == ".ci/run" else "sh"
        assert shutil.which(shell) is None or call(shell, "-n", ROOT / script).stderr == "", script
        assert script == "bin/_environment" or (ROOT / script).stat().st_mode & stat.S_IXUSR, script


@needs_checkout
class TestFromACheckout:
    def test_from_another_folder_through_symlinks(self, tmp_path):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "link").symlink_to(ROOT / "bin" / "tiedtools")
        (tmp_path / "tt").symlink_to("a/link")
        # A file in the current folder must not shadow a module.
        (tmp_path / "click.py").write_text("raise SystemExit('the wrong click')")
        result = call("./tt", "--version", cwd=tmp_path, PYTHON=sys.executable, TIEDTOOLS_VENV=tmp_path)
        assert (result.stdout, result.stderr, result.returncode) == (f"tiedtools {__version__}\n", "", 0)

    def test_spaces_and_exit_status(self, tmp_path):
        result = call(ROOT / "bin/tiedtools", "no such", PYTHON=sys.executable, TIEDTOOLS_VENV=tmp_path)
        assert result.returncode == 2 and "'no such'" in result.stderr

    def test_without_dependencies(self, tmp_path):
        bare = write_script(tmp_path / "bare", f'exec {shlex.quote(sys.executable)} -S "$@"\n')
        result = call(ROOT / "bin/tiedtools", "--version", PYTHON=bare, TIEDTOOLS_VENV=tmp_path)
        assert result.returncode == 1 and result.stdout == ""
        assert result.stderr.startswith("tiedtools: click is missing in ") and "bin/demo" in result.stderr
        assert result.stderr.count("\n") == 1

    def test_without_python(self, tmp_path):
        result = call(ROOT / "bin/tiedtools", PYTHON="no-such-python", TIEDTOOLS_VENV=tmp_path)
        assert result.returncode == 1 and result.stderr.startswith("tiedtools: no-such-python not found;")
        assert result.stderr.count("\n") == 1


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that bin/test uses, and a virtual environment whose python only logs its arguments."""
    for name in ("bin", "setup.cfg", "pyproject.toml"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    write_script(tmp_path / ".venv/bin/python", f'echo "$*" >>{shlex.quote(str(tmp_path / "log"))}\n')
    return tmp_path


@needs_checkout
class TestEnvironment:
    def logged(self, checkout):
        lines = (checkout / "log").read_text().splitlines()
        (checkout / "log").unlink()
        return [line for line in lines if " pytest" in line or " install " in line]

    def test_installs_once_and_after_a_change(self, checkout, tmp_path):
        def test(*arguments):
            result = call(checkout / "bin/test", *arguments, cwd="/", TIEDTOOLS_VENV="")
            assert (result.returncode, result.stdout) == (0, "")
            return self.logged(checkout)

        install = f"-m pip install --quiet --no-input --disable-pip-version-check -e {checkout}[test]"
        assert test("-k", "a or b") == [install, "-m pytest -n 2 -k a or b"]
        assert test() == ["-m pytest -n 2"]
        with open(checkout / "setup.cfg", "a") as file:
            file.write("# changed\n")
        assert test() == [install, "-m pytest -n 2"]

    def test_a_failed_install_is_reported_and_retried(self, checkout):
        python = checkout / ".venv/bin/python"
        works = python.read_text()
        write_script(python, 'case "$*" in *install*) exit 1 ;; esac\n')
        result = call(checkout / "bin/test", TIEDTOOLS_VENV="")
        assert result.returncode == 1 and result.stderr.splitlines()[-1].startswith("test: pip could not install")
        python.write_text(works)
        assert call(checkout / "bin/test", TIEDTOOLS_VENV="").returncode == 0
        assert len(self.logged(checkout)) == 2

    @pytest.mark.parametrize("answers, message", [
        ('case "$*" in *version_info*) exit 1 ;; esac', "test: no Python 3.10 to 3.14 among "),
        ('case "$*" in *ensurepip*) exit 1 ;; esac', "has no venv or ensurepip; on Debian and Ubuntu: apt install"),
    ])  # fmt: skip
    def test_no_suitable_python(self, checkout, answers, message):
        python = write_script(checkout / "other/python", answers + "\n")
        result = call(checkout / "bin/test", PYTHON=python, TIEDTOOLS_VENV=checkout / "new")
        assert result.returncode == 1 and message in result.stderr and result.stderr.count("\n") == 1
        assert not (checkout / "new").exists()

    def test_a_folder_that_is_not_an_environment_is_left_alone(self, checkout):
        result = call(checkout / "bin/test", PYTHON=sys.executable, TIEDTOOLS_VENV=checkout / "bin")
        assert result.returncode == 1 and "is not a virtual environment" in result.stderr
        assert (checkout / "bin/test").exists()


def test_entry_points(run):
    expected = f"tiedtools {__version__}\n"
    assert run("--version").stdout == expected
    assert call(sys.executable, "-m", "tiedtools", "--version").stdout == expected
