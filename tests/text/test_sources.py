"""Test sources of text: files, standard input, iterables, compression, URLs."""

import builtins
import gzip
import io
import itertools
import os
import pathlib
import sys
import threading

import pytest
from common import content, refused, save
from fakelm import FakeLM
from fuzzmutations import PACK

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.output import refuse_clashes
from tiedtools.text import sentences as remote
from tiedtools.text.encoding import encode
from tiedtools.text.parts import shares
from tiedtools.text.sentences import LONGEST_WORD, sources, words_of
from tiedtools.text.sources import BLOCK, Decoder, open_source, refuse_missing

TEXT = b"".join(b"line %d\n" % k for k in range(30_000))


def reading(path):
    with open_source(str(path)) as file:
        while file.read(1 << 16):
            pass


def as_standard_input(monkeypatch, file):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
    return "-"


TRAILING = [(gzip.compress, "gzip", tail) for tail in (b"\n", b"\0x", b"nine byte", b"a whole line\n" * 3)]
TRAILING += [(PACK["zst"], "zstd", tail) for tail in (b"\n", b"a whole line\n")]


@pytest.mark.parametrize("pack, name, tail", TRAILING)
def test_trailing_data_is_distinguished_from_truncation(tmp_path, monkeypatch, pack, name, tail):
    path = tmp_path / "text"
    for data in b"a b\n", TEXT, TEXT + TEXT[:1]:
        path.write_bytes(pack(data) + tail)
        message = f"cannot be read: trailing data after the {name} stream; `{name} -dc` extracts"
        refused(lambda: reading(path), f"text: {message}")
        with open(path, "rb") as file, pytest.raises(TiedtoolsError, match=f"standard input: {message}"):
            reading(as_standard_input(monkeypatch, file))


@pytest.mark.parametrize("pack", PACK.values())
def test_truncated_data_is_reported(tmp_path, monkeypatch, pack):
    path, packed = tmp_path / "text", pack(TEXT)
    for again, left in itertools.product((False, True), (12, len(packed) // 2, -1)):
        path.write_bytes(packed * again + packed[:left])
        refused(lambda: reading(path), "text: cannot be read: the compressed data is truncated")
        with open(path, "rb") as file, pytest.raises(TiedtoolsError, match="standard input: .* is truncated"):
            reading(as_standard_input(monkeypatch, file))


def test_corrupt_data_and_misleading_names(tmp_path, monkeypatch):
    """igzip waits for more data; zlib, which looks for trailing data, already rejects the code lengths."""
    (path := tmp_path / "text.gz").write_bytes(bytes.fromhex("1f8b080000000000000205ba7a1d000000"))
    refused(lambda: reading(path), "text.gz: cannot be read: ")
    with open(path, "rb") as file, pytest.raises(TiedtoolsError, match="standard input: cannot be read: "):
        reading(as_standard_input(monkeypatch, file))
    path.write_bytes(TEXT), refused(lambda: reading(path), "text.gz: cannot be read: Not a gzipped file")


@pytest.mark.parametrize("tail, message", [(b"x", "truncated, or a few bytes follow"), (b"a whole line", "trailing")])
def test_a_pipe_is_not_reread(tmp_path, monkeypatch, tail, message):
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=lambda: [os.write(write_end, gzip.compress(b"a b\n") + tail), os.close(write_end)])
    writer.start()
    with open(read_end, "rb") as file, pytest.raises(TiedtoolsError, match=f"standard input: .*{message}"):
        reading(as_standard_input(monkeypatch, file))
    writer.join()


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
    assert messages() == f"standard input: {done.format('1 invalid UTF-8 sequence')}, the first in line 1\n"
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
    save(FakeLM(), names["model"])
    result = run(*command.format(**names).split(), "--errors", "replace")
    assert result.exit_code == 0, result.stderr
    told = f"{names['text']}: replaced 4 invalid UTF-8 sequences with U+FFFD, the first in line 3\n"
    assert result.stderr.count(told) == (2 if command.startswith("lstm") else 1)


SENTENCES = [["the", "cat", "sat"], ["the", "döner", "sat"], []] * 3
AS_TEXT = "the cat sat\nthe döner sat\n\n" * 3


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "text").write_text(AS_TEXT)
    return path


def read(source):
    text = encode(sources(source), 1)
    return text.vocab.words, text.ids.tolist()


@pytest.mark.parametrize("make", [
    lambda path: path, lambda path: [path], open, lambda path: open(path, "rb"), lambda path: io.StringIO(AS_TEXT),
    lambda path: io.BytesIO(AS_TEXT.encode()), lambda path: io.BytesIO(gzip.compress(AS_TEXT.encode())),
    lambda path: gzip.GzipFile("a.gz", "rb", fileobj=io.BytesIO(gzip.compress(AS_TEXT.encode()))),
    lambda path: SENTENCES, lambda path: (tuple(sentence) for sentence in SENTENCES), lambda path: map(iter, SENTENCES),
], ids='path,paths,file,binary file,text stream,bytes,gzip,gzip.open,lists,generator,iterators'.split(','))  # fmt: skip
def test_every_kind_of_source_reads_the_same(path, make):
    assert read(make(path)) == read(str(path))


def test_paths_open_files_and_urls(path, tmp_path):
    assert read([str(path), path]) == (read(path)[0], read(path)[1] * 2)
    with open(path) as file:
        file.readline()
        assert read(file) == read(SENTENCES[1:]) and not file.closed
    assert sources("s3://b/a text") == ["s3://b/a text"]
    assert sources(["s3://b/a text", "s3://b/k"]) == ["s3://b/a text", "s3://b/k"]
    assert encode([io.StringIO("\ud800\udc80b\n")], errors="replace").vocab.words[1] == "\ufffd\ufffdb"
    assert words_of(" the  cat\n") == ["the", "cat"] == words_of(iter(["the", "cat"]))
    refused(lambda: words_of([1]), "a word is a str")
    assert isinstance(sources(pathlib.Path("a"))[0], str)
    refuse_clashes([str(tmp_path / "out")], ["s3://bucket/key", f"file://{tmp_path}/text"])
    refused(lambda: refuse_clashes([str(tmp_path / "text")], [f"file://{tmp_path}/text"]), "both input and output")


def test_sentences_are_read_piece_by_piece_and_their_errors_pass():
    """No more than a block is taken from it before the first words are used."""
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield ["word"] * 1000

    (source,) = sources(endless())
    assert len(source.read(BLOCK)) == BLOCK
    assert 5000 * taken == pytest.approx(BLOCK, rel=0.01)
    assert len(read([["a", "b"] * BLOCK])[1]) == 2 * BLOCK + 1

    def failing():
        yield ["a"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read(failing())


@pytest.mark.parametrize("source, problem", [
    (5, "expected a path, a file, or an iterable of sentences, found int"), (None, "found NoneType"),
    (b"path", "found bytes"), ([], "sentences: no words"), ([[]], "sentences: no words"),
    (["the cat", "sat"], "the cat: no such file; check the name; in Python, a list of strings is"),
    ([1, 2], "sentences:1: a sentence is a list of words, not int 1"), (["a b.txt", "c"], "a b.txt: cannot be read"),
    ([["a"], "b c"], "sentences:2: a sentence is a list of words, not str 'b c'; split it into words"),
    ((line for line in ["a b"]), "sentences:1: a sentence is a list of words, not str"),
    ([["a", 1]], "sentences:1: a word is a str, not int 1"), ([[b"a"]], "sentences:1: a word is a str, not bytes"),
    ([["a b"]], "'a b' is empty or contains whitespace"), ([["a", ""]], "'' is empty or contains whitespace"),
    ([["a b", ""]], "'a b' is empty or contains whitespace"), ({"a": 1}, "found dict; give one of its columns"),
    ([["a\0"]], "contains whitespace or a zero byte"), ([["\udcff"]], "is not valid Unicode"),
    ([["x" * 30_000_000]], f"a word of more than {LONGEST_WORD:,} bytes"),
], ids=lambda value: str(value)[:20] if isinstance(value, str) else None)  # fmt: skip
def test_other_sources_are_refused(source, problem):
    with pytest.raises(TiedtoolsError, match=problem) as raised:
        read(source)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300
    assert isinstance(raised.value, ValueError | OSError) or "no words" in problem


DATA = b"".join(b"a line %d\n" % k for k in range(5000))


def test_urls(memory, tmp_path, run):
    assert all(map(remote.is_url, ["s3://bucket/key", "file:///tmp/text", "simplecache::s3://bucket/key"]))
    assert not any(map(remote.is_url, ["/tmp/text", "-", "a b://c", "://c", ["s3://bucket/key"]]))
    assert content(memory("text", b"")) == b""
    for data, message in (
        (gzip.compress(DATA)[:-20], "the compressed data is truncated"),
        (gzip.compress(DATA) + b"x", "trailing data after the gzip stream"),
    ):
        refused(lambda: content(memory("text", data)), f"memory://text: cannot be read: {message}")
    refused(lambda: content("nothing://x"), "nothing://x: cannot be read: Protocol not known:", "; check the URL")
    for url in "memory://missing", f"file://{tmp_path}/missing":
        for action in content, remote.url_size, lambda url: refuse_missing([url, *"abc"]), lambda url: shares([url], 2):
            refused(lambda: action(url), f"{url}: cannot be read: No such file or directory; check the name")
    refuse_missing([memory("text", b""), "-"])
    result = run("vocab", memory("text", b"a b a\n"), "-min-count", 1)
    assert (result.exit_code, result.stdout_bytes) == (0, b"</s> 1\na 2\nb 1\n"), result.stderr
    result = run("w2v", "memory://missing", "-size", 2)
    assert result.exit_code == 1
    assert result.stderr == "tiedtools: memory://missing: cannot be read: No such file or directory; check the name\n"


@pytest.mark.parametrize("pack", [bytes, *PACK.values()])
def test_urls_are_read_like_files(tmp_path, memory, pack):
    url, path = memory("text", pack(DATA)), tmp_path / "text"
    path.write_bytes(pack(DATA))
    for source in url, f"file://{path}":
        assert content(source) == DATA and remote.url_size(source) == len(pack(DATA))
    assert encode([url]).ids.tolist() == encode([str(path)]).ids.tolist()


@pytest.mark.parametrize("error, message", [
    (PermissionError("s3 says\nno"), "cannot be read: Permission denied; check its permissions"),
    (OSError(110, "Connection timed out"), "cannot be read: Connection timed out"),
    (RuntimeError("no\ncredentials"), r"cannot be read: no\ncredentials; check the URL, the credentials, "),
    (TimeoutError(), "cannot be read: TimeoutError; check the URL, the credentials, and the network"),
])  # fmt: skip
def test_errors_of_the_file_system_name_the_url(monkeypatch, memory, error, message):
    """Whether in looking the file up, in opening it, or in reading it."""

    def refuse(*_, **__):
        raise error

    import fsspec

    url, system = memory("text", DATA), type(fsspec.filesystem("memory"))
    for target, name in (system, "info"), (system, "_open"), (type(system().open("/text")), "read"):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, refuse)
            refused(lambda: remote.url_size(url) if name == "info" else content(url), f"memory://text: {message}")


@pytest.mark.parametrize("missing, url, message", [
    (["fsspec"], "s3://b/k", 'needs fsspec: pip install "tiedtools[remote]"'),
    (["s3fs", "aiobotocore"], "s3://b/k", "s3fs"),
    (["pyarrow"], "hdfs://host/x", "; pip install pyarrow"),
])  # fmt: skip
def test_missing_packages(monkeypatch, memory, missing, url, message):
    """fsspec itself, a package that it names, and one that it does not."""
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    if "fsspec" in missing:
        monkeypatch.setitem(sys.modules, "fsspec", None)
    refused(lambda: content(url), f"{url}: ", message)
