"""The fuzzer, for a few seconds; and that it sees what it is there for."""

import random
import warnings

import fuzz
import pytest

from tiedtools.errors import TiedtoolsError


def test_damaged_files_of_every_kind(tmp_path):
    told = []
    failures, counts, seconds = fuzz.fuzz(2000, seed=7, keep=tmp_path, tell=lambda text, flush: told.append(text))
    assert not failures, "".join(told)
    assert counts.total() == 2000 and len(seconds) > 30
    for name in seconds:
        assert counts[name, "read"] and counts[name, "refused"], name


def fail(*_):
    raise ValueError("of another kind")


def wrong(*_):
    assert 1 == 2


def warn(*_):
    warnings.warn("of something", stacklevel=2)


def refuse(message):
    def read(path, files, rng):
        raise TiedtoolsError(message.format(path))

    return read


@pytest.mark.parametrize(
    "read, problem",
    [
        (lambda *_: None, None),
        (refuse("{}:3: is no such file"), None),
        (refuse("is no such file"), "not one line"),
        (refuse("{}: is\nno such file"), "not one line"),
        (refuse("{}: is \x1b[31m red"), "not one line"),
        (fail, "of another kind"),
        (wrong, "wrong content"),
        (warn, "warning: of something"),
    ],
)
def test_what_is_judged(tmp_path, read, problem):
    found, was_read = fuzz.judge(read, tmp_path / "f", {"f": b""}, random.Random(1))
    assert found is None if problem is None else problem in found


def test_the_same_number_is_the_same_file():
    kind = "text-plain", ("t", {"t": b"some words\nand more 1 2 3\n"}, None)
    files = {fuzz.damaged(kind, number, 1)[1]["t"] for number in range(50)}
    assert len(files) > 40
    assert files == {fuzz.damaged(kind, number, 1)[1]["t"] for number in range(50)}
