"""The published similarity sets: where they lie on this machine, and how they get there."""

import os
import shutil
import sys
from pathlib import Path

from tiedtools.errors import TiedtoolsError

# M. Faruqui's collection, pinned, so that everybody scores the same pairs.
SOURCE = (
    "https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/"
    "94b3dd9fdbac7ed08dbee7179cd5ee464acf0594/data/word-sim"
)

# name: (file, SHA-256)
WORDSIM = {
    "simlex": ("EN-SIMLEX-999.txt", "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685"),
    "men": ("EN-MEN-TR-3k.txt", "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a"),
    "rw": ("EN-RW-STANFORD.txt", "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f"),
    "verb143": ("EN-VERB-143.txt", "7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001"),
    "mturk771": ("EN-MTurk-771.txt", "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5"),
}


def expand(names):
    """Names of sets, `wordsim` replaced by all five and repeats dropped; TiedtoolsError for any other name."""
    wanted = dict.fromkeys(n for name in names for n in (WORDSIM if name == "wordsim" else [name]))
    for name in wanted:
        if name not in WORDSIM:
            raise TiedtoolsError(f"no data set named {name!r}; there are wordsim (all of) {', '.join(WORDSIM)}")
    return list(wanted)


def cache_folder():
    """Where downloads go: TIEDTOOLS_CACHE, or the folder that pooch.os_cache would name, found without pooch."""
    if folder := os.environ.get("TIEDTOOLS_CACHE"):
        return Path(folder)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tiedtools"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiedtools"


def find(name, folder=None):
    """Path of a named set, or None. Looks in `folder`, then TIEDTOOLS_DATA (each wordsim/FILE, then FILE), then
    among the downloads."""
    file = WORDSIM[name][0]
    folders = [Path(f) for f in (folder, os.environ.get("TIEDTOOLS_DATA")) if f]
    places = [place for f in folders for place in (f / "wordsim" / file, f / file)] + [cache_folder() / file]
    return next((place for place in places if place.is_file()), None)


def locate(wanted, folder=None):
    """{name: path} of the sets in `wanted`, each a name or a path; of every named set that is found when it is empty.

    Raises TiedtoolsError, saying how to get them, for a set that is not there and when none is.
    """
    advice = "`tiedtools data get wordsim` downloads them, --data or TIEDTOOLS_DATA names their folder"
    if not wanted:
        found = {name: path for name in WORDSIM if (path := find(name, folder))}
        if not found:
            raise TiedtoolsError(f"no similarity set found: {advice}")
        return found
    located = {}
    for name in wanted:
        path = find(name, folder) if name in WORDSIM else Path(name)
        if path is None:
            raise TiedtoolsError(f"similarity set {name!r} not found: {advice}")
        if not path.exists() or path.is_dir():
            raise TiedtoolsError(f"{name}: no such file, nor one of the sets {', '.join(WORDSIM)}")
        located[name] = path
    return located


def share(path, action, _):
    """Let others read what was fetched: pooch leaves it to its owner alone."""
    if action != "fetch":
        os.chmod(path, 0o644)
    return path


def download(name, folder=None):
    """Put a named set into `folder` (None: the cache) unless it is there unchanged; returns its path.

    TIEDTOOLS_MIRROR, a base URL or a local folder, takes the place of the pinned source; the SHA-256 is checked all
    the same, before the file gets its name. Raises TiedtoolsError, also when pooch is not installed.
    """
    try:
        import pooch
    except ImportError:
        raise TiedtoolsError('downloading needs pooch: pip install "tiedtools[data]"') from None
    file, sha256 = WORDSIM[name]
    base = os.environ.get("TIEDTOOLS_MIRROR") or SOURCE
    url = f"{base.rstrip('/')}/{file}"
    copy = None if "://" in base else lambda url, output, pooch: shutil.copyfile(url, output)
    try:
        return Path(pooch.retrieve(url, f"sha256:{sha256}", file, folder or cache_folder(), share, copy))
    except (OSError, ValueError) as error:  # requests' exceptions are OSErrors, a wrong hash is a ValueError
        raise TiedtoolsError(f"{url}: cannot be downloaded: {error}") from None
