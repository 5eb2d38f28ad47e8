"""Files appear whole or not at all."""

import os

import pytest

from tiedtools.errors import TiedtoolsError
from tiedtools.output import open_output


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
def test_a_failure_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(error):
        with open_output(str(path)) as file:
            file.write(b"new")
            raise error
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


def test_links_and_devices(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with open_output(str(link)) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    with open_output(os.devnull) as file:
        file.write(b"gone")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("path", ["/", "/nonexistent/out"])
def test_bad_places_are_refused_before_any_work(path):
    with pytest.raises(TiedtoolsError, match=path):
        with open_output(path):
            pytest.fail("the work was begun")
