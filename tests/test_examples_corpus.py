"""Test examples/corpus.py, the corpus of installed documentation: sentence detection and reproducibility."""

import doctest
import importlib.util
import os
import sys

import pytest
from common import ROOT

SCRIPT = ROOT / "examples" / "corpus.py"
if not SCRIPT.exists():
    pytest.skip("needs a checkout", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("corpus", SCRIPT)
corpus = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(corpus)
paragraphs, passages, sentences = corpus.paragraphs, corpus.passages, corpus.sentences


def lines_of(text):
    return [" ".join(tokens) for paragraph in paragraphs(text) for tokens in sentences(paragraph)]


@pytest.mark.parametrize("text, lines", [
    ("It is a matrix, of course; why not?", ["It is a matrix , of course ; why not ?"]),
    ("This is the first one. And this is\nthe second.", ["This is the first one .", "And this is the second ."]),
    ("See the list, e.g. Those of Fig. 3 in it.", ["See the list , e.g. Those of Fig . 3 in it ."]),
    ("Don't use the ``axis`` of *this* array.", ["Don't use the axis of this array ."]),
    ("Use :meth:`~a.b.C.run` or :class:`Run` for it [1]_.", ["Use run or Run for it ."]),
    ("See `the manual <https://a.example/b>`_ for all of it.", ["See the manual for all of it ."]),
    ("It is on https://a.example/b as you know.", ["It is on as you know ."]),
    ("The __init__ of max_depth calls foo() for os.path.", ["The init of max depth calls foo for path ."]),
    ("Use it and/or the non-empty values.", ["Use it and / or the non-empty values ."]),
    ("The value must be >= 3 if it is given.", ["The value must be at least 3 if it is given ."]),
    ("The value is used (default: 1.5) for all of it.", ["The value is used ( default : 1.5 ) for all of it ."]),
    ("Is this one of the values... or not?", ["Is this one of the values ... or not ?"]),
    # not sentences
    ("for i in x: y = i + 1", []),
    ("alpha, beta, gamma, delta, epsilon, zeta, eta, theta, iota", []),
    ("Too short it is", []),
    ("the file {name} is not in %(folder)s of the archive", []),
    ("a b c d e 1 2 3 4 5 6 7 8 9 10 11 12", []),
    # markup is not prose
    ("A heading of the text\n=====\nThis is what it is about.", ["This is what it is about ."]),
    ("x : array of the given shape\n    The values that are used.", ["The values that are used ."]),
    (":param x: the value that is used\n:type x: int", ["the value that is used"]),
    ("- one of the many items\n  of this list\n- the other of the items",
     ["one of the many items of this list", "the other of the items"]),
    (">>> print('it is what it is')\nit is what it is\n\nThis is all of it.", ["This is all of it ."]),
    ("It is used like this::\n\n    if it is not a file\n\nThis is all of it.",
     ["It is used like this : :", "This is all of it ."]),
    (".. math::\n\n    it is not a sum of\n\nThis is all of it.", ["This is all of it ."]),
    (".. note:: This is to be read\n   by all of you.", ["This is to be read by all of you ."]),
    (".. [1] A paper that is by some of them\n   in a journal of the past.", []),
    ("====  ====\nthe   one of a table\n====  ====\nThis is all of it.", ["This is all of it ."]),
    ("as you see   it is a column\nThis is all of it.", ["This is all of it ."]),
])  # fmt: skip
def test_sentences(text, lines):
    assert lines_of(text) == lines


def test_passages():
    source = b'''"""The first docstring, which is long enough."""

# A comment that goes
# over two lines.
def f(x):
    "Short one."
    y = """a long string of the
# kind that has no comment in it"""
    return f"a formatted string {y} is never a whole sentence"  # nor is this one
'''
    assert list(passages(source)) == [
        "The first docstring, which is long enough.",
        "A comment that goes\nover two lines.",
        "a long string of the\n# kind that has no comment in it",
    ]
    assert list(passages(b"this is {{ a.template }} for another program")) == []
    assert list(passages(b"# coding: nonsense\n'four words and a space'\n")) == []
    latin = "# -*- coding: latin-1 -*-\n'a caf\xe9 is what it is, or so'".encode("latin-1")
    assert list(passages(latin)) == ["-*- coding: latin-1 -*-", "a caf\xe9 is what it is, or so"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Create a package of three modules and tests, and return its name."""
    for name, text in {
        "__init__.py": "The last of the files is Not this one.",
        "b.py": "This is the second of them. The last of the files is not this one.",
        "a/__init__.py": "This is the first in the folder.",
        "tests/test_a.py": "This is in a test of it.",
    }.items():
        path = tmp_path / "documented" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""{text}"""\nraise SystemExit("imported")\n')
    monkeypatch.syspath_prepend(tmp_path)
    return "documented"


EXPECTED = [
    "the last of the files is not this one .", "this is the first in the folder .", "this is the second of them .",
]  # fmt: skip


def test_order_does_not_depend_on_the_file_system(package, monkeypatch):
    def reversed_walk(top):
        for here, folders, files in walk(top):
            folders.sort(reverse=True)
            yield here, folders, sorted(files, reverse=True)

    walk = os.walk
    assert [" ".join(tokens) for tokens in corpus.build([package])] == EXPECTED
    monkeypatch.setattr(os, "walk", reversed_walk)
    assert [" ".join(tokens) for tokens in corpus.build([package])] == EXPECTED


@pytest.fixture
def run(capfd):
    """Run the script in this process; returns (exit status, stdout, stderr)."""

    def run(*arguments):
        try:
            corpus.main([str(argument) for argument in arguments])
            status = 0
        except SystemExit as stop:
            sys.stderr.write(f"{stop.code}\n")
            status = 1
        sys.stdout.flush()
        return status, *capfd.readouterr()

    return run


def test_command(run, package, tmp_path):
    out = tmp_path / "corpus.txt"
    assert run("-output", out, "--package", package) == (0, "", "22 words in 3 sentences from documented\n")
    assert out.read_text().splitlines() == EXPECTED
    lines = run("-package", package, "-package", package, "--keep-case")[1].splitlines()
    assert lines[0] == "The last of the files is Not this one ." and len(lines) == 4
    assert run("--raw", tmp_path / "raw", "--package", package)[0] == 0
    raw = (tmp_path / "raw" / f"{package}.txt").read_text().splitlines()
    assert raw[0] == "The last of the files is Not this one." and sum(line.count(".") for line in raw) >= 3
    (tmp_path / package / "gone.py").symlink_to("nowhere")
    status, _, errors = run("-package", package)
    assert status == 1 and f"{package}/gone.py: cannot be read: No such file" in errors


@pytest.mark.parametrize("name", ["no_such_package", "json.tool", "sys", "", "a/b", "__main__", "__main__x"])
def test_unknown_package(run, name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)  # as in the script `tiedtools`
    out = tmp_path / "corpus.txt"
    message = f"corpus.py: --package {name}: no Python sources of that name are installed; check the name\n"
    assert run("-output", out, "-package", name) == (1, "", message)
    assert not out.exists()


def test_a_real_package_yields_english_text():
    lines = list(corpus.build(["numpy"]))
    tokens = [token for line in lines for token in line]
    words = [token for token in tokens if token.isalpha()]
    assert len(set(lines)) == len(lines) and len(words) > 60_000
    assert len(words) > 0.75 * len(tokens)
    assert 0.04 < words.count("the") / len(words) < 0.12  # as in any English text
    assert all(token.strip() == token and token == token.lower() for token in tokens)
    assert set(corpus.default_packages()) >= {"stdlib", "numpy", "scipy"}
    assert all(corpus.sources(package) for package in corpus.default_packages())
    assert doctest.testmod(corpus) == (0, 1)
