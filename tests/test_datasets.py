"""Finding and downloading the published sets, and `tiedtools data`. Nothing here leaves the machine."""

import functools
import hashlib
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tiedtools import datasets
from tiedtools.errors import TiedtoolsError

NAMES = ["simlex", "men", "rw", "verb143", "mturk771"]
CONTENT = {"simlex": b"dog\tcat\t1\n", "men": b"sun\tmoon\t2\n"}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache, and no settings from the machine."""
    for name in ("TIEDTOOLS_DATA", "TIEDTOOLS_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIEDTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    """A folder that holds two sets of our own, whose hashes take the place of the published ones."""
    pytest.importorskip("pooch")
    folder = tmp_path / "mirror"
    folder.mkdir()
    sets = {}
    for name, content in CONTENT.items():
        (folder / f"{name}.txt").write_bytes(content)
        sets[name] = (f"{name}.txt", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(datasets, "WORDSIM", sets)
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(folder))
    return folder


@pytest.fixture
def server(mirror, monkeypatch):
    """The mirror served on 127.0.0.1; yields (folder, the list of requested paths)."""
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


def test_places_are_tried_in_order(monkeypatch, tmp_path, cache):
    assert datasets.find("men", tmp_path) is None
    file = "EN-MEN-TR-3k.txt"
    monkeypatch.setenv("TIEDTOOLS_DATA", str(tmp_path / "env"))
    given = tmp_path / "given"
    places = [given / "wordsim" / file, given / file, tmp_path / "env" / "wordsim" / file, tmp_path / "env" / file]
    for place in reversed([*places, cache / file]):
        touch(place)
        assert datasets.find("men", given) == place
    assert datasets.find("men") == places[2]
    assert datasets.find("simlex", given) is None


def test_cache_is_the_folder_that_pooch_names(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("TIEDTOOLS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert datasets.cache_folder() == pooch.os_cache("tiedtools")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert datasets.cache_folder() == tmp_path / "tiedtools" == pooch.os_cache("tiedtools")


def test_cache_on_macos(monkeypatch, tmp_path):
    monkeypatch.delenv("TIEDTOOLS_CACHE")
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "Library" / "Caches" / "tiedtools"


def test_pinned_hashes_are_those_of_the_files(measured_data):
    assert list(datasets.WORDSIM) == NAMES
    for file, sha256 in datasets.WORDSIM.values():
        assert hashlib.sha256((measured_data / "wordsim" / file).read_bytes()).hexdigest() == sha256


def test_names_expand(run):
    assert datasets.expand(["men", "wordsim", "men"]) == ["men", "simlex", "rw", "verb143", "mturk771"]
    with pytest.raises(TiedtoolsError, match="no data set named 'ptb'; there are wordsim"):
        datasets.expand(["men", "ptb"])


def test_list_and_path(run, tmp_path, cache):
    place = touch(tmp_path / "wordsim" / "EN-RW-STANFORD.txt")
    downloaded = touch(cache / "EN-MEN-TR-3k.txt")
    lines = [line.split("\t") for line in run("data", "list", "--data", tmp_path).stdout.splitlines()]
    assert [(name, where) for name, _, where in lines] == list(zip(NAMES, ["-", str(downloaded), str(place), "-", "-"]))
    assert run("data", "path", "rw", "men", "--data", tmp_path).stdout == f"{place}\n{downloaded}\n"
    missing = run("data", "path", "wordsim", "--data", tmp_path)
    assert missing.exit_code == 1 and missing.stdout == ""
    assert "similarity set 'simlex' not found" in missing.stderr and missing.stderr.count("\n") == 1


def test_get_downloads_once(run, server, cache):
    _, requested = server
    result = run("data", "get", "wordsim")
    assert result.exit_code == 0
    assert result.stdout == f"{cache / 'simlex.txt'}\n{cache / 'men.txt'}\n"
    assert {name: (cache / f"{name}.txt").read_bytes() for name in CONTENT} == CONTENT
    assert run("data", "get", "men").stdout == f"{cache / 'men.txt'}\n"
    assert requested == ["/simlex.txt", "/men.txt"]
    assert (cache / "men.txt").stat().st_mode & 0o777 == 0o644
    assert datasets.find("men") == cache / "men.txt"


def test_get_to_a_folder(run, server, tmp_path, cache):
    place = tmp_path / "new" / "folder"
    assert run("data", "get", "men", "--to", place).stdout == f"{place / 'men.txt'}\n"
    assert (place / "men.txt").read_bytes() == CONTENT["men"] and not cache.exists()
    assert run("data", "path", "men", "--data", place).stdout == f"{place / 'men.txt'}\n"


def test_get_from_a_local_mirror(run, mirror, cache):
    assert run("data", "get", "simlex").stdout == f"{cache / 'simlex.txt'}\n"
    assert (cache / "simlex.txt").read_bytes() == CONTENT["simlex"]


def assert_refused(result, message, cache):
    assert result.exit_code == 1 and result.stdout == ""
    told = [line for line in result.stderr.splitlines() if line.startswith("tiedtools: ")]
    assert len(told) == 1 and message in told[0] and "Traceback" not in result.stderr
    assert not cache.exists() or not list(cache.iterdir())


def test_a_wrong_hash_leaves_nothing(run, server, mirror, cache, monkeypatch):
    (mirror / "men.txt").write_bytes(b"sun\tmoon\t3\n")
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


def test_without_pooch_the_way_out_is_told_and_cached_files_are_found(run, monkeypatch, cache):
    monkeypatch.setitem(sys.modules, "pooch", None)
    result = run("data", "get", "men")
    assert result.exit_code == 1
    assert result.stderr == 'tiedtools: downloading needs pooch: pip install "tiedtools[data]"\n'
    place = touch(cache / "EN-MEN-TR-3k.txt")
    assert run("data", "path", "men").stdout == f"{place}\n"


def test_errors_take_one_line(run, tmp_path):
    file = touch(tmp_path / "file")
    for args, status in (
        (["get", "ptb"], 1), (["get"], 2), (["path"], 2), (["get", "men", "--to", file], 2), (["fetch"], 2),
        (["list", "--data", "nowhere"], 2), (["path", "men", "--data", "nowhere"], 2)):  # fmt: skip
        result = run("data", *args)
        assert result.exit_code == status and result.stdout == "" and result.stderr.count("\n") == 1
