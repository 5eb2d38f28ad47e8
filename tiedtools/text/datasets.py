"""Locate and download public test sets and texts by name."""

import csv
import dataclasses
import difflib
import hashlib
import os
import pkgutil
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tiedtools.base.errors import NotFound, TiedtoolsError, reason, unreadable
from tiedtools.base.messages import log
from tiedtools.files.output import open_output

TIMEOUT = 30  # seconds without data


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A downloadable file of a named data set.

    file     path within the data folder: GROUP/FILE
    url      address whose contents do not change
    sha256   hash of the download or, with sections, of the file
    size     size of the download in bytes; None: unknown
    license  license as far as known
    member   name of the file within the download, if that is an archive
    sections replacement for {} in the URL -> title: the file has the downloads, each below a line `: TITLE`
    """

    file: str
    url: str
    sha256: str
    size: int | None
    license: str
    member: str | None = None
    sections: dict[str, str] | None = None


# Relations of the Bigger Analogy Test Set (Gladkova et al. 2016), named as its files.
RELATIONS = {
    "I": "noun - plural_reg, noun - plural_irreg, adj - comparative, adj - superlative, verb_inf - 3pSg,"
    " verb_inf - Ving, verb_inf - Ved, verb_Ving - 3pSg, verb_Ving - Ved, verb_3pSg - Ved",
    "D": "noun+less_reg, un+adj_reg, adj+ly_reg, over+adj_reg, adj+ness_reg, re+verb_reg, verb+able_reg,"
    " verb+er_irreg, verb+tion_irreg, verb+ment_irreg",
    "E": "country - capital, country - language, UK_city - county, name - nationality, name - occupation,"
    " animal - young, animal - sound, animal - shelter, things - color, male - female",
    "L": "hypernyms - animals, hypernyms - misc, hyponyms - misc, meronyms - substance, meronyms - member,"
    " meronyms - part, synonyms - intensity, synonyms - exact, antonyms - gradable, antonyms - binary",
}
BATS = {f"{c}{k}": f"{c}{k:02} {name}" for c, names in RELATIONS.items() for k, name in enumerate(names.split(", "), 1)}


def read_table() -> dict[str, Dataset]:
    """Read datasets.tsv, the table of data sets: a dict of name -> Dataset."""
    table = {}
    lines = (pkgutil.get_data(__name__, "datasets.tsv") or b"").decode().splitlines()  # also from a zip file
    for row in csv.DictReader(lines, delimiter="\t"):
        name, size, member = row.pop("name"), row.pop("size"), row.pop("member")
        sections = BATS if "{}" in row["url"] else None
        table[name] = Dataset(**row, size=int(size) if size else None, member=member or None, sections=sections)
    return table


DATASETS = read_table()
SIMILARITY = ["simlex", "men", "rw", "verb143", "mturk771", "simverb", "ws353-sim", "ws353-rel", "mturk287"]


def groups() -> dict[str, list[str]]:
    """Return {group: names}: `wordsim` has the similarity sets; group PREFIX has all names that begin with PREFIX-."""
    prefixes = dict.fromkeys(name.partition("-")[0] for name in DATASETS if "-" in name and "google-" not in name)
    members = {prefix: [name for name in DATASETS if name.startswith(f"{prefix}-")] for prefix in prefixes}
    return {"wordsim": SIMILARITY, **members}


def expand(names: Iterable[str]) -> list[str]:
    """Replace groups by their members and drop duplicates. Raises TiedtoolsError for an unknown name."""
    expanded = dict.fromkeys(n for name in names for n in groups().get(name, [name]))
    for name in expanded:
        if name not in DATASETS:
            single = [name for name in DATASETS if name.partition("-")[0] not in groups()]
            known = ", ".join([*single, *(f"{group} (all of it)" for group in groups())])
            close = difflib.get_close_matches(name, [*DATASETS, *groups()], 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"choose one of {known}: see `tiedtools data list`"
            raise TiedtoolsError(f"no data set named {name!r}; {remedy}")
    return list(expanded)


def cache_folder() -> Path:
    """Return the download folder: TIEDTOOLS_CACHE, or `tiedtools` in the user's cache folder."""
    if folder := os.environ.get("TIEDTOOLS_CACHE"):
        return Path(folder)
    # Not Path.home, which raises for a user without a passwd entry.
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/tiedtools"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tiedtools")


def find(name: str, folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a named data set, or None if no folder has it.

    Searches `folder`, TIEDTOOLS_DATA, and the download folder: each for GROUP/FILE, FILE, then compressed versions.
    """
    file = Path(DATASETS[name].file)
    folders = [Path(f) for f in (folder, os.environ.get("TIEDTOOLS_DATA"), cache_folder()) if f]
    endings = ("", ".xz", ".gz", ".bz2", ".zst")
    candidates = (f / f"{part}{ending}" for f in folders for ending in endings for part in (file, file.name))
    return next((path for path in candidates if path.is_file()), None)


def locate(names: Sequence[str], folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
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
        if path.is_dir():
            raise TiedtoolsError(f"{name}: is a directory; name a file")
        if not path.exists():
            raise NotFound(f"{name}: no such file or data set; `tiedtools data list` lists the data sets")
        located[name] = path
    return located


def download(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
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
        if not data.member:
            return target
        with zipfile.ZipFile(file) as archive:
            if new or not target.is_file() or zlib.crc32(target.read_bytes()) != archive.getinfo(data.member).CRC:
                with archive.open(data.member) as source, open_output(str(target)) as output:
                    shutil.copyfileobj(source, output)
        return target
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise unreadable(str(file), error) from None


def download_all(names: Iterable[str]) -> dict[str, Any]:
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
        remedy = "or give a file of word pairs (`sets`)"
        raise TiedtoolsError(f"no similarity set found, and {error}, {remedy}") from None
    return paths


def fetch(url: str, path: Path, data: Dataset) -> None:
    """Download `url`, or copy a local path, to `path`, and verify it. Raises TiedtoolsError."""
    digest = hashlib.sha256()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TiedtoolsError(f"{path.parent}: cannot be created: {reason(error)}") from None
    with open_output(str(path)) as file:
        for block in contents(url, data):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != data.sha256:
            raise TiedtoolsError(f"{url}: does not match the known hash; try again, or set TIEDTOOLS_MIRROR")


def contents(url: str, data: Dataset) -> Iterator[bytes]:
    """Yield the contents of a Dataset's file in blocks of bytes."""
    if not data.sections:
        yield from read_blocks(url, data.license)
    for part, title in (data.sections or {}).items():
        lines = b"".join(read_blocks(url.format(part), data.license)).replace(b"\r", b"").strip()
        yield b": %b\n%b\n" % (title.encode(), lines)


def read_blocks(url: str, license: str) -> Iterator[bytes]:
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
        remedy = "check the connection, or set TIEDTOOLS_MIRROR"
        raise TiedtoolsError(f"{url}: cannot be downloaded: {why}; {remedy}") from None
