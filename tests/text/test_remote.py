"""Test texts at URLs: memory:// and file://, compressed or not, and the messages of errors."""

import builtins
import bz2
import gzip
import lzma
import re
import sys

import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.output import refuse_clashes
from tiedtools.text import sentences as remote
from tiedtools.text.encoding import encode
from tiedtools.text.parts import shares
from tiedtools.text.sentences import sources
from tiedtools.text.sources import open_source, refuse_missing

DATA = b"".join(b"a line %d\n" % k for k in range(5000))


@pytest.fixture
def memory():
    """A function that writes files to fsspec's memory:// and returns their URLs."""
    fsspec = pytest.importorskip("fsspec", reason='needs fsspec: pip install "tiedtools[remote]"')
    system = fsspec.filesystem("memory")

    def write(name, data):
        system.pipe(f"/{name}", data)
        return f"memory://{name}"

    yield write
    system.store.clear()


def content(source):
    with open_source(source) as file:
        return file.read()


def test_urls():
    assert all(map(remote.is_url, ["s3://bucket/key", "file:///tmp/text", "simplecache::s3://bucket/key"]))
    assert not any(map(remote.is_url, ["/tmp/text", "-", "a b://c", "://c", ["s3://bucket/key"]]))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_urls_are_read_like_files(tmp_path, memory, pack):
    url, path = memory("text", pack(DATA)), tmp_path / "text"
    path.write_bytes(pack(DATA))
    for source in url, f"file://{path}":
        assert content(source) == DATA
        assert remote.url_size(source) == len(pack(DATA))
    assert encode([url]).ids.tolist() == encode([str(path)]).ids.tolist()


def test_zstandard(memory):
    compression = pytest.importorskip("backports.zstd")
    assert content(memory("text", compression.compress(DATA))) == DATA


def test_an_empty_file(memory):
    assert content(memory("text", b"")) == b""


def test_damaged_files_name_the_url(memory):
    for data, message in (
        (gzip.compress(DATA)[:-20], "the compressed data is truncated"),
        (gzip.compress(DATA) + b"x", "trailing data after the gzip stream"),
    ):
        with pytest.raises(TiedtoolsError, match=rf"memory://text: cannot be read: {message}"):
            content(memory("text", data))


def test_missing_files_name_the_url(tmp_path, memory):
    for url in "memory://missing", f"file://{tmp_path}/missing":
        for action in content, remote.url_size, lambda url: refuse_missing([url]), lambda url: shares([url], 2):
            with pytest.raises(
                TiedtoolsError, match=f"^{re.escape(url)}: cannot be read: No such file or directory; check the name$"
            ):
                action(url)
    refuse_missing([memory("text", b""), "-"])


@pytest.mark.parametrize(
    "error, message",
    [
        (PermissionError("s3 says\nno"), "cannot be read: Permission denied; check its permissions"),
        (OSError(110, "Connection timed out"), "cannot be read: Connection timed out"),
        (RuntimeError("no\ncredentials"), r"cannot be read: no\\ncredentials; check the URL, the credentials, .*"),
        (TimeoutError(), "cannot be read: TimeoutError; check the URL, the credentials, and the network"),
    ],
)
def test_errors_of_the_file_system_name_the_url(monkeypatch, memory, error, message):
    """Whether in looking the file up, in opening it, or in reading it."""

    def refuse(*_, **__):
        raise error

    import fsspec

    url, system = memory("text", DATA), type(fsspec.filesystem("memory"))
    for target, name in (system, "info"), (system, "_open"), (type(system().open("/text")), "read"):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, refuse)
            with pytest.raises(TiedtoolsError, match=f"^memory://text: {message}$"):
                remote.url_size(url) if name == "info" else content(url)


def test_unknown_protocols(memory):
    with pytest.raises(
        TiedtoolsError, match="nothing://x: cannot be read: Protocol not known: nothing.*; check the URL"
    ):
        content("nothing://x")


@pytest.mark.parametrize(
    "missing, url, message",
    [
        (["fsspec"], "s3://b/k", 'needs fsspec: pip install "tiedtools\\[remote\\]"'),
        (["s3fs", "aiobotocore"], "s3://b/k", ".*[Ii]nstall.* s3fs.*"),
        (["pyarrow"], "hdfs://host/x", "No module named 'pyarrow.*'; pip install pyarrow"),
    ],
)
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
    with pytest.raises(TiedtoolsError, match=f"^{url}: {message}$"):
        content(url)


def test_an_output_must_not_overwrite_a_local_url(tmp_path):
    refuse_clashes([str(tmp_path / "out")], ["s3://bucket/key", f"file://{tmp_path}/text"])
    with pytest.raises(TiedtoolsError, match="both input and output"):
        refuse_clashes([str(tmp_path / "text")], [f"file://{tmp_path}/text"])


def test_sources():
    assert sources("s3://b/a text") == ["s3://b/a text"]
    assert sources(["s3://b/a text", "s3://b/k"]) == ["s3://b/a text", "s3://b/k"]


def test_commands_read_urls(run, memory):
    result = run("vocab", memory("text", b"a b a\n"), "-min-count", 1)
    assert (result.exit_code, result.stdout_bytes) == (0, b"</s> 1\na 2\nb 1\n"), result.stderr
    result = run("w2v", "memory://missing", "-size", 2)
    assert result.exit_code == 1
    assert result.stderr == "tiedtools: memory://missing: cannot be read: No such file or directory; check the name\n"
