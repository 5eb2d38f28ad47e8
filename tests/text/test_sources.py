"""Test text sources: corrupt compressed files, and reports of invalid UTF-8."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import threading

import pytest
from fakelm import FakeLM
from refusals import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text.sources import Decoder, open_source

TEXT = b"".join(b"line %d\n" % k for k in range(30_000))


def zstd(data):
    compression = pytest.importorskip("backports.zstd")
    return compression.compress(data)


def reading(path):
    with open_source(str(path)) as file:
        while file.read(1 << 16):
            pass


def as_standard_input(monkeypatch, file):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
    return "-"


TRAILING = [(gzip.compress, "gzip", tail) for tail in (b"\n", b"\0x", b"nine byte", b"a whole line\n" * 3)]
TRAILING += [(zstd, "zstd", tail) for tail in (b"\n", b"a whole line\n")]


@pytest.mark.parametrize("pack, name, tail", TRAILING)
def test_trailing_data_is_distinguished_from_truncation(tmp_path, monkeypatch, pack, name, tail):
    path = tmp_path / "text"
    for data in b"a b\n", TEXT, TEXT + TEXT[:1]:
        path.write_bytes(pack(data) + tail)
        message = f"cannot be read: trailing data after the {name} stream; `{name} -dc` extracts"
        refused(lambda: reading(path), f"text: {message}")
        with open(path, "rb") as file, pytest.raises(TiedtoolsError, match=f"standard input: {message}"):
            reading(as_standard_input(monkeypatch, file))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_truncated_data_is_reported(tmp_path, monkeypatch, pack):
    path, packed = tmp_path / "text", pack(TEXT)
    for again, left in itertools.product((False, True), (12, len(packed) // 2, -1)):
        path.write_bytes(packed * again + packed[:left])
        refused(lambda: reading(path), "text: cannot be read: the compressed data is truncated")
        with open(path, "rb") as file, pytest.raises(TiedtoolsError, match="standard input: .* is truncated"):
            reading(as_standard_input(monkeypatch, file))


def test_deflate_data_that_only_the_second_reader_finds_corrupt(tmp_path, monkeypatch):
    """igzip waits for more data; zlib, which looks for trailing data, already rejects the code lengths."""
    path = tmp_path / "text.gz"
    path.write_bytes(bytes.fromhex("1f8b080000000000000205ba7a1d000000"))
    refused(lambda: reading(path), "text.gz: cannot be read: ")
    with open(path, "rb") as file, pytest.raises(TiedtoolsError, match="standard input: cannot be read: "):
        reading(as_standard_input(monkeypatch, file))


@pytest.mark.parametrize("tail, message", [(b"x", "truncated, or a few bytes follow"), (b"a whole line", "trailing")])
def test_a_pipe_is_not_reread(tmp_path, monkeypatch, tail, message):
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=lambda: [os.write(write_end, gzip.compress(b"a b\n") + tail), os.close(write_end)])
    writer.start()
    with open(read_end, "rb") as file, pytest.raises(TiedtoolsError, match=f"standard input: .*{message}"):
        reading(as_standard_input(monkeypatch, file))
    writer.join()


def test_a_misleading_file_extension_is_reported(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(TEXT)
    refused(lambda: reading(path), "text.gz: cannot be read: Not a gzipped file")


INVALID = "caf\u00e9 \ufffd\n\n".encode() + b"caf\xe9 \xe2\x82\xff\nfine\n\xff\n"  # 4 invalid sequences


@pytest.mark.parametrize("errors, done", [("replace", "replaced {} with U+FFFD"), ("ignore", "skipped {}")])
@pytest.mark.parametrize("size", [1000, 4])
def test_invalid_utf8_is_counted(messages, errors, done, size):
    lines = INVALID.splitlines(True)
    with Decoder("text", errors) as decode:
        found = "".join(decode(b"".join(lines[k : k + size])) for k in range(0, len(lines), size))
    assert found == INVALID.decode("utf-8", errors)
    assert messages() == f"text: {done.format('4 invalid UTF-8 sequences')}, the first in line 3\n"
    with Decoder("-", errors) as decode:
        decode(b"\xff \n")
    told = f"standard input: {done.format('1 invalid UTF-8 sequence')}, the first in line 1\n"
    assert messages() == told
    with Decoder("text", errors) as decode:
        decode("caf\u00e9 \ufffd\n".encode())
    assert messages() == ""


COMMANDS = {
    "vocab": "vocab {text} --min-count 1",
    "w2v": "w2v {text} -min-count 1 -size 2 -iter 1 -threads 1 -sample 0 -debug 0 -output {out}",
    "lstm": "lstm {text} -valid {text} -debug 0 --epochs 1 --batch 2 --hidden 2 --layers 1 -output {out}",
    "ppl": "ppl {model} {text}", "ppl, streams": "ppl {model} {text} --batch 2", "predict": "predict {model} {text}",
    "nbest": "nbest {model} {text}",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_report_replaced_bytes(run, tmp_path, command):
    names = {name: tmp_path / name for name in ("text", "model", "out")}
    names["text"].write_bytes(INVALID + b"a b c d\n" * 20)
    with open(names["model"], "wb") as file:
        FakeLM().save(file)
    result = run(*command.format(**names).split(), "--errors", "replace")
    assert result.exit_code == 0, result.stderr
    told = f"{names['text']}: replaced 4 invalid UTF-8 sequences with U+FFFD, the first in line 3\n"
    assert result.stderr.count(told) == (2 if command.startswith("lstm") else 1)
