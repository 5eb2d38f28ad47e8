"""Test that output files are written atomically."""

import os
import shutil

import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.output import check_space, new_part, open_output


def test_files_appear_when_the_block_ends_also_through_symlinks(tmp_path):
    path, plain = tmp_path / "out", tmp_path / "plain"
    with open_output(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" whole")
    assert path.read_bytes() == b"half whole" and os.listdir(tmp_path) == ["out"]
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to(target)
    with open_output(str(link)) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o600
    with open_output(os.devnull) as file:
        file.write(b"gone")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file(tmp_path, error):
    (path := tmp_path / "out").write_bytes(b"old")
    with pytest.raises(error), open_output(str(path)) as file:
        file.write(b"new")
        raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("path", ["/", "none/out", "no-folder/", "n" * 256])
def test_bad_paths_are_rejected_before_any_work(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TiedtoolsError, match=path), open_output(path):
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


def test_a_complete_file_survives_other_processes(tmp_path, monkeypatch):
    """Another process starts writing the same output just before the file is renamed."""
    replace = os.replace

    def late(part, target):
        os.close(new_part(target)[0])
        replace(part, target)

    monkeypatch.setattr(os, "replace", late)
    with open_output(str(tmp_path / "out")) as file:
        file.write(b"whole")
    assert (tmp_path / "out").read_bytes() == b"whole"
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


def test_space_is_checked_for_all_outputs_of_a_disk(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    check_space({str(tmp_path / "a"): 1, "-": 2 * free, "/dev/null": 2 * free})
    with pytest.raises(TiedtoolsError, match="a, .*b: needs about [0-9,]+ MB, [0-9,.]+ MB free; free some space"):
        check_space({str(tmp_path / name): 0.7 * free for name in "ab"})
