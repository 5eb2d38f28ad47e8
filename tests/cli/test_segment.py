"""Test `tiedtools segment`: its output, options, and files."""

import os
import signal
import subprocess
import sys

import pytest

from tiedtools.text import morphs
from tiedtools.text.subwords import Subwords

TEXT = "unlocked doors  and un-locked\twindows\n\n  ß e\u0301 <unk> \u00a0x\r\ndoors"
LINES = ["unlocked doors and un-locked windows", "", "ß e\u0301 <unk> \u00a0x", "doors"]
LEARNED = [
    f"{prefix}{stem}{ending}" for prefix in ("", "un") for stem in ("lock", "load") for ending in ("", "ed", "s")
]


@pytest.fixture
def saved(tmp_path):
    """A file of morphs."""
    (path := tmp_path / "morphs").write_text("1 un + lock + ed\n1 door + s\n")
    return path


def lines(result):
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes.decode().removesuffix("\n").split("\n")


def test_characters_and_separators(run, text):
    found = lines(run("segment", "--chars", text))
    assert found[0].startswith("u@@ n@@ l@@ o@@ c@@ k@@ e@@ d d@@ o@@") and found[2].startswith("ß e@@ \u0301 <@@ u@@")
    assert [line.replace("@@ ", "") for line in found] == LINES
    assert run("segment", "--chars", "--separator", "", input=b"un@@ -\n").stdout == "u n @ @ -\n"
    result = run("segment", "--chars", "--separator", "d", input=b"add a\n")
    problem = "the word 'add' ends in the separator 'd'; choose another with --separator"
    assert (result.exit_code, result.stderr) == (1, f"tiedtools: standard input: {problem}\n")


def test_morphs_of_a_file_and_syllables_of_a_language(run, libraries, text, saved, tmp_path):
    found = lines(run("segment", "--load", saved, text))
    assert found[0] == "un@@ lock@@ ed door@@ s a@@ n@@ d un@@ -@@ lock@@ ed w@@ i@@ n@@ d@@ o@@ w@@ s"
    assert [line.replace("@@ ", "") for line in found] == LINES
    assert lines(run("segment", "--morphs", "--load", saved, text)) == found
    text = b"hyphenation of year-to-year - changes\n"
    assert lines(run("segment", "--syllables", input=text)) == ["hy@@ phen@@ ation of year@@ to@@ year - changes"]
    german = lines(run("segment", "--syllables", "--language", "de_DE", input="Straßenbahn\n".encode()))
    assert german == ["Stra@@ ßen@@ bahn"]
    result = run("segment", "--syllables", "--language", "tlh", "-output", tmp_path / "out", input=b"a\n")
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    assert result.stderr.startswith("tiedtools segment: --language tlh is not one of af_ZA, ")


def test_learned_morphs_are_saved_and_loaded(run, libraries, tmp_path):
    """The output is that of the saved morphs, also for text on standard input; the seed decides."""
    path, kept = tmp_path / "text", tmp_path / "kept"
    path.write_text("\n".join([" ".join(LEARNED), "", "doors </s> unloads"]) + "\n")
    result = run("segment", "--morphs", "--save", kept, "-output", tmp_path / "out", path)
    assert (result.exit_code, result.stderr) == (0, "learning morphs from 14 words\n")
    analyses = morphs.read(str(kept))
    assert sorted("".join(found) for _, found in analyses) == sorted({*LEARNED, "doors", "</s>"})
    found = (tmp_path / "out").read_text()
    assert found.replace("@@ ", "") == path.read_text()
    assert lines(run("segment", "--load", kept, path)) == found.removesuffix("\n").split("\n")
    again = run("segment", "--morphs", "--save", tmp_path / "again", input=path.read_bytes())
    assert again.stdout == found and (tmp_path / "again").read_bytes() == kept.read_bytes()
    assert morphs.learn([*LEARNED, "doors", "</s>"], 1) == analyses


def test_learning_does_not_depend_on_the_order_of_hashes(libraries, tmp_path):
    (tmp_path / "text").write_text(" ".join(LEARNED))
    found = set()
    for seed in "1", "2":
        command = [sys.executable, "-m", "tiedtools", "segment", "--morphs", "--types", tmp_path / "text"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 1


@pytest.mark.parametrize("kind", ["chars", "syllables", "morphs"])
def test_types_are_segmentations_that_lstm_reads(run, libraries, tmp_path, kind):
    (tmp_path / "text").write_text("doors unlocked\n\ndoors doors unlocks well-known\n")
    result = run("segment", f"--{kind}", "--types", "-output", tmp_path / "types", tmp_path / "text")
    assert result.exit_code == 0 and result.stdout == ""
    written = [line.split("\t") for line in (tmp_path / "types").read_text().splitlines()]
    assert [word for word, _ in written] == ["doors", "unlocked", "unlocks", "well-known"]
    made = Subwords.learn("morphs", ["</s>", "well-known", "doors"], segmentation=str(tmp_path / "types"))
    assert [made.segment(word) for word, _ in written] == [found.split() for _, found in written]


def test_invalid_utf8_leaves_no_files_or_is_skipped(run, tmp_path, saved):
    (tmp_path / "bad").write_bytes(b"fine\nca\xfft\n")
    for options in ["--chars"], ["--load", saved]:
        run.fails(1, "/bad:2: invalid UTF-8", "segment", *options, "-output", tmp_path / "out", tmp_path / "bad")
    args = "--load", tmp_path / "bad", "-output", tmp_path / "out", tmp_path / "bad"
    run.fails(1, "bad:1: expected `count morph + morph`", "segment", *args)
    assert not (tmp_path / "out").exists()
    result = run("segment", "--chars", "--errors", "ignore", input=b"ca\xfft\n")
    assert (result.exit_code, result.stdout) == (0, "c@@ a@@ t\n") and "skipped 1 invalid" in result.stderr


@pytest.mark.parametrize("name, option", [("morfessor", "--morphs"), ("pyphen", "--syllables")])
def test_without_the_library(run, monkeypatch, text, saved, name, option):
    monkeypatch.setitem(sys.modules, name, None)
    result = run("segment", option, text)
    assert result.exit_code == 1 and result.stderr.endswith(': pip install "tiedtools[subwords]"\n')
    assert run("segment", "--load", saved, text).exit_code == 0


@pytest.mark.parametrize("options", [["--chars"], ["--load", "morphs"], ["--chars", "-output", "/dev/stdout"]])
def test_each_line_is_answered_at_once(tmp_path, saved, options):
    command = [sys.executable, "-m", "tiedtools", "segment", *options]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        signal.alarm(60)
        for line in b"ab c\n", b"doors\n":
            process.stdin.write(line)
            assert process.stdout.readline().replace(b"@@ ", b"") == line
        signal.alarm(0)
        process.stdin.close()
        assert process.wait(60) == 0
