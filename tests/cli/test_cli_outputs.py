"""Test where commands write their outputs, and which names they reject."""

import os
import subprocess
import sys

import pytest

from tiedtools.text.sources import open_source

TEXT = "the cat sat on the mat\n" * 40


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("extension", ["gz", "bz2", "xz", "zst"])
def test_compression_follows_from_the_file_name(run, corpus, tmp_path, extension):
    if extension == "zst" and "tiedtools[zst]" in run("vocab", "-output", tmp_path / "v.zst", corpus).stderr:
        pytest.skip("no Zstandard library here: pip install tiedtools[zst]")
    train = "w2v -threads 1 -iter 1 -size 3"
    for command in f"{train} -output", f"{train} -save-vocab", "vocab -output":
        plain, packed = tmp_path / "plain", tmp_path / f"packed.{extension}"
        for path in plain, packed:
            assert run(*command.split(), path, corpus).exit_code == 0
        with open_source(str(packed)) as file:
            assert file.read() == plain.read_bytes() != packed.read_bytes()


@pytest.mark.parametrize("flag", ["--save-model", "--checkpoint", "--log-json", "--manifest"])
def test_uncompressed_outputs_reject_names_of_compressed_files(run, corpus, tmp_path, flag):
    result = run("w2v", flag, tmp_path / "v.gz", corpus)
    assert result.exit_code == 2 and "v.gz: this output is never compressed" in result.stderr
    assert os.listdir(tmp_path) == [corpus.name]


@pytest.mark.parametrize("flag", ["-output", "--save-model", "-save-vocab", "--log-json", "--checkpoint"])
def test_the_text_is_never_overwritten(run, corpus, flag):
    result = run("w2v", flag, corpus, corpus)
    assert result.exit_code == 2 and "used as both input and output" in result.stderr
    assert corpus.read_text() == TEXT
    assert run("vocab", "-output", corpus, corpus).exit_code == 2 and corpus.read_text() == TEXT


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", "/proc/{}/fd"])
def test_a_file_opened_by_the_shell(run, corpus, tmp_path, folder):
    """With `-output /dev/fd/3 3>vectors`, no manifest can be written next to the output."""
    train = ["w2v", "-threads", 1, "-iter", 1, "-size", 3, corpus]
    with open(tmp_path / "vectors", "w") as opened:
        path = f"{folder.format(os.getpid())}/{opened.fileno()}"
        result = run(*train, "-output", path, "--manifest", tmp_path / "manifest")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "vectors").read_text() == run(*train).stdout
    assert sorted(os.listdir(tmp_path)) == ["corpus.txt", "manifest", "vectors"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_failed_output_does_not_affect_the_others(run, corpus, tmp_path):
    kept, vocab = tmp_path / "kept", tmp_path / "vocab"
    result = run("w2v", "-size", 4, "-output", kept, "-save-vocab", vocab, "--save-model", "/dev/full", corpus)
    assert result.exit_code == 1 and "/dev/full: cannot be written: No space left" in result.stderr
    assert kept.read_text().startswith("6 4\n") and vocab.read_text().startswith("</s> 40")
    result = run("w2v", "-size", 4, "--log-json", "/dev/full", "-output", kept, corpus)
    assert result.exit_code == 0 and "log can no longer be written" in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["--version", "w2v -h", "check v", "nn v the", "vocab c", "pca v", "data list"])
def test_every_command_reports_a_full_standard_output(tmp_path, command):
    (tmp_path / "c").write_text(TEXT)
    (tmp_path / "v").write_text("3 2\nthe 1 2\ncat 2 1\nsat 1 1\n")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "tiedtools", *command.split()]
        result = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    told = (
        "tiedtools: standard output: cannot be written: No space left on device; free some space, or write elsewhere\n"
    )
    assert (result.returncode, result.stderr) == (1, told)
