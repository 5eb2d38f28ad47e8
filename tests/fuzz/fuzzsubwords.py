"""Cases for the fuzzer: files of morphs and of segmentations."""

import codecs

from fuzzmutations import PACK, decompressed

from tiedtools.text import morphs
from tiedtools.text.subwords import Subwords

MORPHS = "# Output from Morfessor Baseline 2.0.6\n1 caf\u00e9 + s\n3 un + lock + ed\n1 a\u00a0b\n".encode()
GIVEN = "the the\ncaf\u00e9\tca f\u00e9\na\u00a0b a \u00a0b\nunlocked un lock ed\n".encode()
WORDS = ["</s>", "the", "caf\u00e9", "a\u00a0b"]


def lines(path, files):
    """Return the lines of a file, split by the standard library."""
    data = decompressed(files[path.name]).removeprefix(codecs.BOM_UTF8)
    return [line.decode() for line in data.split(b"\n")]


def analyses(path, files, rng):
    found = morphs.read(str(path))
    expected = [
        line.removesuffix("\r").partition(" ") for line in lines(path, files) if line[:1] not in ("#", "", "\r")
    ]
    assert found == [(int(count), rest.rstrip("\r").split(" + ")) for count, _, rest in expected]
    lexicon = morphs.Lexicon.of(found)
    assert all("".join(lexicon.segment("".join(each))) == "".join(each) for _, each in found)


def segmentation(path, files, rng):
    found = Subwords.learn("morphs", WORDS, segmentation=str(path))
    fields = [[part.decode() for part in line.encode().split()] for line in lines(path, files)]
    given = {word: subwords for word, *subwords in filter(None, fields)}
    assert all(found.segment(word) == given[word] for word in given)
    assert set(WORDS[1:]) <= given.keys() and found.units[0] == "" and len(set(found.units)) == len(found.units)


def cases():
    return {
        "morphs": ("m.txt", MORPHS, analyses),
        "morphs-xz": ("m.xz", PACK["xz"](MORPHS), analyses),
        "segmentation": ("s.txt", GIVEN, segmentation),
    }
