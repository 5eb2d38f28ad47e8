"""Run the fuzzer for a few seconds, and test that it detects failures."""

import random
import warnings

import fuzz
import fuzzmessages
import pytest

from tiedtools.base.errors import TiedtoolsError


def test_damaged_files_of_every_kind(tmp_path):
    told = []
    failures, counts, seconds = fuzz.fuzz(3000, seed=7, keep=tmp_path, tell=lambda text, flush: told.append(text))
    assert not failures, "".join(told)
    assert counts.total() == 3000 and len(seconds) > 30
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


@pytest.mark.parametrize("read, problem", [
    (lambda *_: None, None), (refuse("{}:3: is odd; correct the line"), "a line that the file does not have"),
    (refuse("{}:2: is odd; correct the line"), None),
    (refuse("is odd; correct it"), "does not begin with the file's name"), (fail, "of another kind"),
    (wrong, "wrong content"), (warn, "warning: of something"),
])  # fmt: skip
def test_judge(tmp_path, read, problem):
    found, was_read = fuzz.judge(read, tmp_path / "f", {"f": b""}, random.Random(1), "text-plain")
    assert found is None if problem is None else problem in found


GOOD = [
    "{}:1: is odd; correct the line", "{}: row 7: is odd; if training diverged, lower the learning rate",
    "{}:3: is odd; is this a text?", "{}: is empty; give a file of word vectors",
    "{}:2: '; --' is odd; read it with --errors replace",
    "{}: cannot be read: trailing data; `gzip -dc` extracts what comes before it", "{}:in: row 2: is odd; correct it",
]  # fmt: skip
BAD = {
    "{}:1: is odd": "no remedy",
    "{}:1: is odd; it should not be": "no remedy",
    "{}:1: is 'odd; correct it'": "no remedy",
    "{}: is odd; correct it": "neither a position nor a problem of the whole file",
    "{} is odd; correct it": "no position after the file's name",
    "{}:0: is odd; correct it": "a line that the file does not have",
    "{}:4: is odd; correct it": "a line that the file does not have",
    "{}: row 1: is odd;\ncorrect it": "not one printable line",
    "{}: row 1: is \x1b[31m; correct it": "not one printable line",
    "{}x:1: is odd; correct it": "no position",
    "other:1: is odd; correct it": "does not begin",
    "{}:1: --size is odd; correct it": "an option that was not given: --size",
    "{}:1: is odd; set --size": "an option that was not given: --size",
    "{}:1: --errors is odd; correct it": "an option that was not given: --errors",
    "{}:1: is " + "odd" * 1000 + "; correct it": "longer",
}


@pytest.mark.parametrize("message", [*GOOD, *BAD])
@pytest.mark.parametrize("name", ["f", "a:in", "a:1: x", "--help", "%s", "{}; give"])
def test_judge_messages(tmp_path, message, name):
    path = tmp_path / name
    found = fuzzmessages.judge(message.replace("{}", str(path)), path, {name: b"1\n"}, "vectors-text")
    assert found is None if message in GOOD else BAD[message] in found


def test_files_have_odd_names():
    pair = "vectors-npy", ("v.npy", {"v.npy": b"1", "v.words": b"2"}, None)
    for name, files, *_ in (fuzz.damaged(pair, number, 1) for number in range(200)):
        assert files.keys() == {name, name.removesuffix(".npy") + ".words"}
    kind = "text-plain", ("t.txt", {"t.txt": b"1"}, None)
    names = {fuzz.damaged(kind, number, 1)[0] for number in range(400)}
    assert len(names) > 60 and any("\n" in name for name in names) and "t.txt" in names
    assert any(name.endswith(".npz") for name in names) and any("\udcff" in name for name in names)
