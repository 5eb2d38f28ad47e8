"""Test signals: the first one interrupts, at once or at the next check; later ones are ignored up to a limit."""

import _imp
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tiedtools.base import interrupts
from tiedtools.base.interrupts import check, deferred, handle

pytestmark = pytest.mark.usefixtures("no_signals")


def test_signals_after_the_first_are_ignored_up_to_a_limit():
    with pytest.raises(KeyboardInterrupt) as stop:
        handle(signal.SIGTERM, None)
    assert stop.value.args == (signal.SIGTERM,)
    [handle(signal.SIGINT, None) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        handle(signal.SIGINT, None)


def test_a_signal_swallowed_by_the_compiler_is_reported(run, tmp_path, monkeypatch):
    def compile_kernels(config):
        try:
            handle(signal.SIGTERM, None)
        except KeyboardInterrupt:
            raise RuntimeError("no compiled object yet") from None

    from tiedtools.models.word2vec.model import Word2Vec

    monkeypatch.setattr(Word2Vec, "warm_up", compile_kernels)
    (tmp_path / "text").write_text("a b c\n" * 50)
    result = run("w2v", "-output", tmp_path / "vectors", tmp_path / "text")
    assert result.exit_code == 128 + signal.SIGTERM and result.stderr.endswith("tiedtools: interrupted\n")
    assert not (tmp_path / "vectors").exists()


def test_deferred_signals_raise_at_the_next_check():
    steps = []
    _imp.acquire_lock()  # as an import that a signal has interrupted may do
    with pytest.raises(KeyboardInterrupt) as stop, deferred():
        check()
        handle(signal.SIGTERM, None)
        steps.append("whole")
        check()
        steps.append("never")
    assert steps == ["whole"] and stop.value.args == (signal.SIGTERM,) and not _imp.lock_held()


def test_the_first_deferred_signal_raises_at_the_end_of_the_block():
    with pytest.raises(KeyboardInterrupt), deferred():
        with deferred():
            handle(signal.SIGINT, None)
        steps = "whole"
    with deferred():
        handle(signal.SIGINT, None)
    interrupts.received.clear()
    with pytest.raises(KeyboardInterrupt), deferred(), deferred(False):
        handle(signal.SIGINT, None)
        pytest.fail("the signal was deferred")
    assert steps == "whole"


def test_deferred_signals_do_not_hide_another_error():
    with pytest.raises(ZeroDivisionError), deferred():
        handle(signal.SIGINT, None)
        1 / 0


def test_the_limit_holds_in_a_deferred_block():
    with deferred():
        [handle(signal.SIGINT, None) for _ in range(interrupts.PATIENCE)]
        with pytest.raises(KeyboardInterrupt):
            handle(signal.SIGINT, None)
        interrupts.received.clear()


def status(before="", after="", parsing=""):
    """Return (exit status, stderr) of a process that runs `tiedtools --version`, and code before, after, or in it."""
    code = f"""
import atexit, os, signal, sys
from tiedtools.base import interrupts
from tiedtools.__main__ import main
install = interrupts.install
def install_and_run(): install(); {before or "pass"}
interrupts.install = install_and_run
if {parsing!r}:
    from tiedtools.cli import cli
    parse = cli.parse_args
    cli.parse_args = lambda *args: ({parsing or None}, parse(*args))[1]
atexit.register(lambda: {after or None})
sys.argv = ["tiedtools", "--version"]
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return result.returncode, result.stderr.lstrip("\n")  # click ends a line in which the terminal has shown ^C


KILL = "os.kill(os.getpid(), signal.SIGTERM)"


def test_signals_at_startup_and_exit_show_no_traceback():
    assert status(before=KILL) == (128 + signal.SIGTERM, "tiedtools: interrupted\n")
    assert status(parsing=KILL) == (128 + signal.SIGTERM, "tiedtools: interrupted\n")
    assert status(after=KILL) == (0, "")


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
def test_a_background_job_of_a_script_ignores_ctrl_c_but_not_sigterm(tmp_path):
    (tmp_path / "text").write_text("a b c\n" * 500)
    script = '"$@" & echo $!; wait $!; echo $?'
    training = [sys.executable, "-m", "tiedtools", "w2v", "text", "-iter", "9999", "-output", "vectors"]
    with subprocess.Popen(
        ["sh", "-c", script, "sh", *training], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        job = int(process.stdout.readline())
        for line in process.stderr:
            if line.startswith("epoch 2:"):
                os.kill(job, signal.SIGINT)
            elif line.startswith("epoch 300:"):
                os.kill(job, signal.SIGTERM)
                break
        told, errors = process.communicate(timeout=60)
    assert told == "143\n" and "tiedtools: interrupted after " in errors and (tmp_path / "vectors").exists()


def test_a_signal_in_a_callback_is_silent_and_raised_later():
    program = (
        "import os, weakref; from tiedtools.base import interrupts; interrupts.install()\n"
        "c = type('C', (), {})(); ref = weakref.ref(c, lambda _: [os.kill(os.getpid(), 2), sum(range(9))]); del c\n"
        "try: interrupts.check()\n"
        "except KeyboardInterrupt: print('raised')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("raised\n", "")
