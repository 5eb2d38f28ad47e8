"""Test that output files are written atomically."""

import errno
import os
import shutil
import signal
import tempfile

import pytest

from tiedtools.base import interrupts
from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.output import Outputs, check_space, new_part, open_output


def test_a_file_appears_when_the_block_ends(tmp_path):
    path, plain = tmp_path / "out", tmp_path / "plain"
    with open_output(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" whole")
    assert path.read_bytes() == b"half whole" and os.listdir(tmp_path) == ["out"]
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(error):
        with open_output(str(path)) as file:
            file.write(b"new")
            raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


def test_symlinks_and_devices(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with open_output(str(link)) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    with open_output(os.devnull) as file:
        file.write(b"gone")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("path", ["/", "/nonexistent/out", "no-folder/"])
def test_bad_paths_are_rejected_before_any_work(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TiedtoolsError, match=path):
        with open_output(path):
            pytest.fail("the work was started")


def test_abandoned_partial_files_are_removed(tmp_path):
    out, other = (str(tmp_path / name) for name in ("out", "other"))
    living, part = new_part(out)
    dead, gone = new_part(out)
    strange, kept = new_part(other)
    for number in (dead, strange):
        os.close(number)
    with open_output(out) as file:
        file.write(b"whole")
    assert os.path.exists(part) and os.path.exists(kept) and not os.path.exists(gone)
    os.close(living)
    with open_output(out):
        assert not os.path.exists(part)


def test_a_complete_file_is_safe_until_it_is_renamed(tmp_path, monkeypatch):
    """Another process starts writing the same output just before the file is renamed."""
    replace = os.replace

    def late(part, target):
        os.close(new_part(target)[0])
        replace(part, target)

    monkeypatch.setattr(os, "replace", late)
    with open_output(str(tmp_path / "out")) as file:
        file.write(b"whole")
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_a_partial_file_removed_before_it_is_locked_is_recreated(tmp_path, monkeypatch):
    import fcntl

    lock, removed = fcntl.flock, []

    def late(number, how):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        lock(number, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with open_output(str(tmp_path / "out")) as file:
        file.write(b"whole")
    assert removed and (tmp_path / "out").read_bytes() == b"whole"


def test_file_systems_without_locks(tmp_path, monkeypatch):
    def none(*args):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", none)
    other, _ = new_part(str(tmp_path / "out"))
    with open_output(str(tmp_path / "out")) as file:
        file.write(b"whole")
    os.close(other)
    assert len(list(tmp_path.glob(".tiedtools-*.part"))) == 1  # it may still be in use


@pytest.mark.parametrize("signals", [1, 3])
def test_a_signal_waits_until_files_are_written(tmp_path, no_signals, signals):
    def write(file):
        file.write(b"first")
        for _ in range(signals):
            interrupts.handle(signal.SIGTERM, None)
        file.write(b", second")

    with pytest.raises(KeyboardInterrupt):
        with Outputs({name: str(tmp_path / name) for name in "ab"}, os.replace) as outputs:
            outputs.write("a", write)
            outputs.write("b", lambda file: file.write(b"too"))
    assert (tmp_path / "a").read_bytes() == b"first, second" and (tmp_path / "b").read_bytes() == b"too"


def test_repeated_signals_abort_the_writing(tmp_path, no_signals):
    def write(file):
        for _ in range(interrupts.PATIENCE + 1):
            interrupts.handle(signal.SIGTERM, None)

    with pytest.raises(KeyboardInterrupt):
        with Outputs({"a": str(tmp_path / "a")}, os.replace) as outputs:
            outputs.write("a", write)
            pytest.fail("the writing was not aborted")
    assert os.listdir(tmp_path) == []


def test_a_failed_output_is_reported_even_if_the_block_is_interrupted(tmp_path, messages):
    """A run is interrupted, and its vectors do not fit on the disk."""
    with pytest.raises(KeyboardInterrupt):
        with Outputs({name: str(tmp_path / name) for name in "ab"}, os.replace) as outputs:
            outputs.write("a", fail)
            outputs.write("b", lambda file: file.write(b"whole"))
            raise KeyboardInterrupt
    assert (
        messages()
        == f"tiedtools: {tmp_path / 'a'}: cannot be written: No space left; free some space, or write elsewhere\n"
    )
    assert os.listdir(tmp_path) == ["b"] and list(outputs.done) == ["b"]


def test_a_broken_pipe_of_an_interrupted_run_is_not_reported(messages, tmp_path):
    def gone(file):
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(KeyboardInterrupt):
        with Outputs({"a": "-", "b": str(tmp_path / "b")}, os.replace) as outputs:
            outputs.write("a", gone)
            raise KeyboardInterrupt
    assert messages() == "" and not outputs.done


def test_all_failed_outputs_are_reported_and_a_signal_is_raised(tmp_path, messages, no_signals):
    paths = {name: str(tmp_path / name) for name in "abc"}
    with pytest.raises(TiedtoolsError, match="/a: cannot be written"):
        with Outputs(paths, os.replace) as outputs:
            for name in "ab":
                outputs.write(name, fail)
    assert (
        messages()
        == f"tiedtools: {paths['b']}: cannot be written: No space left; free some space, or write elsewhere\n"
    )
    with pytest.raises(KeyboardInterrupt):
        with Outputs(paths, os.replace) as outputs:
            outputs.write("a", fail)
            outputs.write("b", lambda file: interrupts.handle(signal.SIGTERM, None))
    assert (
        messages()
        == f"tiedtools: {paths['a']}: cannot be written: No space left; free some space, or write elsewhere\n"
    )


def fail(file):
    raise OSError(28, "No space left")


def test_an_output_whose_disk_is_full_is_kept_in_another_folder(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    path = tmp_path / "vectors.txt"

    def write(file):
        if not list(home.glob("*/.tiedtools*")):
            raise OSError(errno.ENOSPC, "No space left on device")
        file.write(b"all of it")

    with pytest.raises(TiedtoolsError, match="No space left on device; free some space.*; it is in ") as error:
        with Outputs({"output": str(path)}, os.replace) as outputs:
            outputs.write("output", write)
    (spare,) = home.glob("*/vectors.txt")
    assert spare.read_bytes() == b"all of it" and outputs.done == {"output": str(spare)} and not path.exists()
    assert str(error.value).endswith(f"; it is in {spare}") and not list(tmp_path.glob(".tiedtools*"))

    home.rename(tmp_path / "elsewhere")
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    with pytest.raises(TiedtoolsError, match="write elsewhere$"):
        with Outputs({"output": str(path)}, os.replace) as outputs:
            outputs.write("output", write)


def test_space_is_checked_for_all_outputs_of_a_disk(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    check_space({str(tmp_path / "a"): 1, "-": 2 * free, "/dev/null": 2 * free})
    with pytest.raises(TiedtoolsError, match="a, .*b: needs about [0-9,]+ MB, [0-9,]+ MB free; free some space"):
        check_space({str(tmp_path / name): 0.7 * free for name in "ab"})
