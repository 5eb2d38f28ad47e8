"""Test finding and downloading data sets, and `tiedtools data`. No test accesses the internet."""

import dataclasses
import functools
import hashlib
import json
import lzma
import os
import sys
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from common import refused

from tiedtools.text import datasets

CONTENT = {"simlex": b"dog\tcat\t1\n", "men": b"sun\tmoon\t2\n"}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Use an empty cache and no settings of the environment."""
    for name in ("TIEDTOOLS_DATA", "TIEDTOOLS_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIEDTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    """Create a mirror with two files and an archive of two, and replace the published data sets by these."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    with zipfile.ZipFile(folder / "texts.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for part in ("train", "test"):
            archive.writestr(f"inner/{part}.txt", f"a text to {part}\n" * 100)
    for name, content in CONTENT.items():
        (folder / f"{name}.txt").write_bytes(content)

    def entry(file, source, member=None):
        data = (folder / source).read_bytes()
        url = f"http://127.0.0.1:1/nowhere/{source}"
        return datasets.Dataset(file, url, hashlib.sha256(data).hexdigest(), len(data), "ours", member)

    sets = {name: entry(f"wordsim/{name}.txt", f"{name}.txt") for name in CONTENT}
    sets |= {f"texts-{part}": entry(f"texts/{part}", "texts.zip", f"inner/{part}.txt") for part in ("train", "test")}
    monkeypatch.setattr(datasets, "DATASETS", sets)
    monkeypatch.setattr(datasets, "SIMILARITY", list(CONTENT))
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(folder))
    return folder


@pytest.fixture
def server(mirror, monkeypatch):
    """Serve the mirror on 127.0.0.1; yield (folder, list of requested paths)."""
    requested = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requested.append(self.requestline.split()[1])

    http = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=mirror))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("TIEDTOOLS_MIRROR", f"http://127.0.0.1:{http.server_port}/")
    yield mirror, requested
    http.shutdown()
    http.server_close()
    thread.join()


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a b 1\n")
    return path


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has another folder")
def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("TIEDTOOLS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / ".cache" / "tiedtools"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "tiedtools"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX users")
def test_a_missing_home_folder_is_tolerated(monkeypatch):
    monkeypatch.delenv("TIEDTOOLS_CACHE")
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert datasets.find("simlex") is None


def test_cache_on_macos(monkeypatch, tmp_path):
    monkeypatch.delenv("TIEDTOOLS_CACHE")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "Library" / "Caches" / "tiedtools"


def test_folders_are_searched_in_order(tmp_path, cache, monkeypatch):
    compressed = touch(tmp_path / "ptb" / "ptb.train.txt.xz")
    assert datasets.find("ptb-train", tmp_path) == compressed and datasets.find("ptb-test", tmp_path) is None
    plain = touch(tmp_path / "ptb.train.txt")
    assert datasets.find("ptb-train", tmp_path) == plain and datasets.find("men", tmp_path) is None
    file = "EN-MEN-TR-3k.txt"
    monkeypatch.setenv("TIEDTOOLS_DATA", str(tmp_path / "env"))
    given = tmp_path / "given"
    paths = [given / "wordsim" / file, given / file, tmp_path / "env" / "wordsim" / file, tmp_path / "env" / file]
    for path in reversed([*paths, cache / file]):
        touch(path)
        assert datasets.find("men", given) == path
    assert datasets.find("men") == paths[2] and datasets.find("simlex", given) is None


@pytest.mark.parametrize("name", [name for name, entry in datasets.DATASETS.items() if not entry.member])
def test_pinned_hashes_match_the_files(measured_data, name):
    path, entry = datasets.find(name, measured_data), datasets.DATASETS[name]
    if path is None:
        pytest.skip(f"no data: {entry.file} is not in {measured_data}")
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    assert (hashlib.sha256(data).hexdigest(), len(data)) == (entry.sha256, entry.size)


def test_data_sets_have_distinct_paths_and_names_expand(run):
    entries = datasets.DATASETS.values()
    assert len({entry.file for entry in entries}) == len(entries)
    for entry in entries:
        assert entry.file.count("/") == 1 and entry.license and len(entry.sha256) == 64
        assert "/master/" not in entry.url and "/main/" not in entry.url
    sources = {entry.url.rpartition("/")[2]: entry.url for entry in entries}
    assert len(sources) == len({entry.url for entry in entries})  # so that a mirror can hold all in one folder
    others = [name for name in datasets.SIMILARITY if name != "men"]
    assert datasets.expand(["men", "wordsim", "men"]) == ["men", *others]
    assert datasets.expand(["ptb"]) == ["ptb-train", "ptb-valid", "ptb-test"]
    assert len(datasets.expand(["multi30k", "multi30k-val-de"])) == 12
    refused(lambda: datasets.expand(["men", "google"]), "no data set named 'google'; choose one", " text8", " ptb (all")


def test_list_and_path(run, tmp_path, cache):
    path = touch(tmp_path / "wordsim" / "EN-RW-STANFORD.txt")
    downloaded = touch(cache / "EN-MEN-TR-3k.txt")
    lines = [line.split("\t") for line in run("data", "list", "--data", tmp_path).stdout.splitlines()]
    paths = dict.fromkeys(datasets.DATASETS, "-") | {"men": str(downloaded), "rw": str(path)}
    assert {line[0]: line[-1] for line in lines} == paths and {len(line) for line in lines} == {5}
    entries = json.loads(run("data", "list", "--data", tmp_path, "--json").stdout)
    assert list(entries) == list(datasets.DATASETS)
    assert entries["rw"]["path"] == str(path) and entries["simlex"]["path"] is None
    assert entries["rw"]["sha256"] == datasets.DATASETS["rw"].sha256
    assert run("data", "path", "rw", "men", "--data", tmp_path).stdout == f"{path}\n{downloaded}\n"
    missing = run("data", "path", "wordsim", "--data", tmp_path)
    assert missing.exit_code == 1 and missing.stdout == ""
    assert "data set 'simlex' not found: `tiedtools data get simlex`" in missing.stderr
    assert missing.stderr.count("\n") == 1


def test_files_are_downloaded_once_and_to_a_folder(run, server, cache, tmp_path):
    _, requested = server
    result = run("data", "get", "wordsim")
    assert result.exit_code == 0
    assert result.stdout == f"{cache / 'wordsim' / 'simlex.txt'}\n{cache / 'wordsim' / 'men.txt'}\n"
    assert {name: (cache / "wordsim" / f"{name}.txt").read_bytes() for name in CONTENT} == CONTENT
    assert run("data", "get", "men").stdout == f"{cache / 'wordsim' / 'men.txt'}\n"
    assert requested == ["/simlex.txt", "/men.txt"]
    assert (cache / "wordsim" / "men.txt").stat().st_mode & 0o777 == 0o644
    assert datasets.find("men") == cache / "wordsim" / "men.txt"
    (cache / "wordsim" / "men.txt").unlink()
    path = tmp_path / "new" / "folder"
    assert run("data", "get", "men", "--to", path).stdout == f"{path / 'wordsim' / 'men.txt'}\n"
    assert (path / "wordsim" / "men.txt").read_bytes() == CONTENT["men"] and not datasets.find("men")
    assert run("data", "path", "men", "--data", path).stdout == f"{path / 'wordsim' / 'men.txt'}\n"


def test_sections_are_joined_and_archives_must_have_the_file(run, mirror, cache, monkeypatch):
    for name, content in {"I1": b"a\tas\r\nb\tbs", "L2": b"hot\tcold/cool\n"}.items():
        (mirror / f"{name}.txt").write_bytes(content)
    whole = b": I01 plural\na\tas\nb\tbs\n: L02 antonym\nhot\tcold/cool\n"
    sections = {"I1": "I01 plural", "L2": "L02 antonym"}
    for digest, status in (hashlib.sha256(whole).hexdigest(), 0), ("0" * 64, 1):
        entry = datasets.Dataset("wordsim/b.txt", "http://nowhere/{}.txt", digest, len(whole), "ours", None, sections)
        monkeypatch.setitem(datasets.DATASETS, "b", entry)
        assert run("data", "get", "b").exit_code == status
        assert (cache / "wordsim" / "b.txt").read_bytes() == whole
    entry = datasets.DATASETS["texts-test"]
    monkeypatch.setitem(datasets.DATASETS, "texts-test", dataclasses.replace(entry, member="other"))
    result = run("data", "get", "texts-test")
    assert result.exit_code == 1 and result.stdout == "" and "other" in result.stderr.splitlines()[-1]
    assert not (cache / "texts" / "test").exists()


def test_archives_are_unpacked(run, server, cache):
    mirror, requested = server
    paths = [cache / "texts" / part for part in ("train", "test")]
    got = run("data", "get", "texts")
    assert got.stdout == "".join(f"{path}\n" for path in paths)
    for path in paths:
        assert path.read_bytes() == f"a text to {path.name}\n".encode() * 100
        assert path.stat().st_mode & 0o777 == 0o644
    paths[0].write_bytes(paths[0].read_bytes().upper())
    paths[1].unlink()
    assert run("data", "get", "texts-test", "texts-train").stdout == f"{paths[1]}\n{paths[0]}\n"
    assert paths[0].read_bytes() == b"a text to train\n" * 100 and paths[1].is_file()
    assert requested == ["/texts.zip"]


def assert_refused(result, message, cache):
    assert result.exit_code == 1 and result.stdout == ""
    told = [line for line in result.stderr.splitlines() if line.startswith("tiedtools: ")]
    assert len(told) == 1 and message in told[0] and "Traceback" not in result.stderr
    assert not cache.exists() or not [path for path in cache.rglob("*") if path.is_file()]


def test_a_wrong_hash_leaves_no_file(run, server, mirror, cache, monkeypatch):
    (mirror / "men.txt").write_bytes(CONTENT["men"][:-1])
    assert_refused(run("data", "get", "men"), "men.txt", cache)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(mirror))
    assert_refused(run("data", "get", "men"), "does not match the known hash", cache)


def test_a_missing_file_and_a_missing_server(run, server, mirror, cache, monkeypatch):
    (mirror / "men.txt").unlink()
    assert_refused(run("data", "get", "men"), "404", cache)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", "http://127.0.0.1:1")
    assert_refused(run("data", "get", "men"), "http://127.0.0.1:1/men.txt", cache)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(mirror))
    assert_refused(run("data", "get", "men"), "No such file", cache)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", "gopher://127.0.0.1")
    assert_refused(run("data", "get", "men"), "gopher", cache)


def test_unreadable_folders_and_changed_files(run, mirror, cache, tmp_path):
    path = touch(cache / "wordsim" / "men.txt")
    result = run("data", "get", "men")
    assert path.read_bytes() == CONTENT["men"]
    assert result.stderr == f"downloading {mirror}/men.txt (license: ours)\n"
    cache.rename(tmp_path / "elsewhere")
    cache.write_text("a file")
    assert_refused(run("data", "get", "men"), str(cache / "wordsim"), cache / "wordsim")


@pytest.fixture
def vectors(tmp_path):
    (path := tmp_path / "vectors.txt").write_text("4 2\ndog 1 0\ncat 0 1\nsun 1 1\nmoon 1 2\n")
    return path


def test_eval_sim_downloads_its_sets_once(run, server, vectors, cache):
    _, requested = server
    result = run("eval-sim", vectors, "--bootstrap", 0)
    told = [line for line in result.stderr.splitlines() if line.startswith("downloading ")]
    base = os.environ["TIEDTOOLS_MIRROR"]
    assert told == [f"downloading {base}{name}.txt (license: ours)" for name in CONTENT]
    assert result.exit_code == 0 and [line.split()[0] for line in result.stdout.splitlines()[2:4]] == list(CONTENT)
    again = run("eval-sim", vectors, "--bootstrap", 0)
    assert again.stdout == result.stdout and "downloading" not in again.stderr
    assert requested == ["/simlex.txt", "/men.txt"]


def test_eval_sim_downloads_all_sets_or_none(run, mirror, vectors, cache, monkeypatch):
    (mirror / "men.txt").unlink()
    advice = "check the connection, or set TIEDTOOLS_MIRROR, or give a file of word pairs (--set)"
    assert_refused(run("eval-sim", vectors), advice, cache)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", "http://127.0.0.1:1")
    result = run("eval-sim", vectors)
    assert_refused(result, "no similarity set found, and http://127.0.0.1:1/simlex.txt: cannot be downloaded: ", cache)
    assert result.stderr.count("\n") == 1 and advice in result.stderr
