"""Test subwords: the inventory of a vocabulary, segmentations given by the user, and storing them in a model file."""

import io
import json
import lzma
import sys

import numpy as np
import pytest
from common import refused

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.text import morphs
from tiedtools.text.subwords import BEGIN, KINDS, STOP, Subwords

WORDS = ["</s>", "the", "<unk>", "unlocked", "walked", "walking", "well-known", "é", "N"]
GIVEN = "the the\nunlocked un lock ed\nwalked\twalk ed\nwalking walk ing\nwell-known well known\né é\n\n"
GIVEN += "N N\nlocker lock er\n"


@pytest.fixture
def file(tmp_path):
    """Write a segmentation file and return its path."""

    def write(content=GIVEN):
        (tmp_path / "given").write_bytes(content.encode() if isinstance(content, str) else content)
        return str(tmp_path / "given")

    return write


def stored(subwords, words):
    """Return the subwords after writing them to a model file and reading them."""
    header, arrays = subwords.state()
    file = io.BytesIO()
    modelfile.save(file, "test", {"subwords": header}, words, arrays)
    with np.load(io.BytesIO(file.getvalue())) as read:
        config = json.loads(read["header"].tobytes())["config"]
        return Subwords.from_state(config["subwords"], {name: read[name] for name in arrays}, words)


def test_characters_and_given_units(file, tmp_path):
    made = Subwords.learn("chars", WORDS)
    assert made.units[:6] == ["", BEGIN, "</s>", STOP, "t", "h"]
    assert made.segment("</s>") == ["</s>"] and made.segment("<unk>") == list("<unk>")
    assert made.spelled("the") == [BEGIN, "t", "h", "e", STOP]
    assert made.table(["hex"]).tolist() == [[1, 5, 6, 3]] and made.unknown("hex") == (["x"], False)
    table = made.table(WORDS)
    assert table.dtype == np.int32 and table.shape == (len(WORDS), len("well-known") + 2)
    assert table[0].tolist() == [1, 2, 3] + [0] * 9 and not (table == 2)[1:].any()
    assert made.segment("e\u0301") == ["e", "\u0301"] and made.segment("é") == ["é"]
    made = Subwords.learn("chars", WORDS, atomic_unk=True)
    assert made.spelled("<unk>") == [BEGIN, "<unk>", STOP] and "<" not in made.units
    assert made.unknown("<") == (["<"], True) and (stored(made, WORDS).table(WORDS) == made.table(WORDS)).all()
    made = Subwords.learn("morphs", WORDS, segmentation=file())
    assert made.units == ["", "</s>", "the", "<unk>", "un", "lock", "ed", "walk", "ing", "well", "known", "é", "N"]
    assert made.table(["walked", "unlocked"]).tolist() == [[7, 6, 0], [4, 5, 6]]
    assert made.table([]).shape == (0, 0)
    assert Subwords.learn("morphs", WORDS, segmentation=file(GIVEN + "<unk> < unk >\n")).segment("<unk>")[1] == "unk"
    refused(lambda: Subwords.learn("letters", WORDS), "`kind='letters'` is not one of morphs,", kind=Contradiction)
    analyses = [(1, ["walk", "ed"]), (5, ["un", "lock"]), (2, ["walk", "ing"]), (1, ["known"])]
    with open(tmp_path / "morphs", "wb") as file:
        morphs.write(file, analyses)
    made = Subwords.learn("morphs", WORDS, segmentation=str(tmp_path / "morphs"))
    assert made.segmenter.counts == morphs.Lexicon.of(analyses).counts
    assert made.segment("unlocked") == ["un", "lock", "ed"] and "l" in made.units


@pytest.mark.parametrize("kind", ["morphs", "syllables"])
def test_given_segmentations(file, kind):
    """New words are segmented into the vocabulary's subwords, unless the file has them; neither library is needed."""
    made = Subwords.learn(kind, WORDS, segmentation=file())
    for subwords in made, stored(made, WORDS):
        assert subwords.segment("well-known") == ["well", "known"]
        assert subwords.segment("locking") == ["lock", "ing"]
        assert subwords.segment("locker") == ["lock", "er"]
        assert subwords.table(["locker", "unx", "xyz"]).tolist() == [[5], [4], [0]]
        assert [subwords.unknown(word)[0] for word in ("locker", "unx", "xyz")] == [["er"], ["x"], list("xyz")]


@pytest.mark.parametrize("content, problem", [
    (GIVEN.replace("walked\t", "walker "), "no line for the word 'walked' of the vocabulary; add lines `word sub sub`"),
    ("", "no line for the word 'the' and 6 more of the 8 words of the vocabulary"),
    (GIVEN + "N\n", ":10: no subwords of 'N'; give `word sub sub` in each line"),
    (GIVEN + "the t he\n", ":10: duplicate word 'the'; remove one line"),
    (GIVEN.encode() + b"\xff x\n", ":10: not UTF-8"),
    (b"# Output from Morfessor Baseline 2.0.6, 2026-01-01 00:00:00\n1 walk ed\n", ":2: expected `count morph + mo"),
])  # fmt: skip
def test_wrong_segmentation_files(file, content, problem):
    path = file(content)
    with pytest.raises(TiedtoolsError) as error:
        Subwords.learn("morphs", WORDS, segmentation=path)
    assert str(error.value).startswith(path) and problem in str(error.value)


def test_learned_morphs_and_syllables(libraries):
    made = Subwords.learn("morphs", WORDS * 2, seed=2)
    assert made.segmenter.counts == morphs.Lexicon.of(morphs.learn(WORDS[1:], 2)).counts
    assert "-" in made.segment("well-known") and "".join(made.segment("well-known")) == "well-known"
    atomic = Subwords.learn("morphs", WORDS, atomic_unk=True)
    assert atomic.segment("<unk>") == ["<unk>"] and atomic.segmenter.words == len(WORDS) - 2
    made = Subwords.learn("syllables", ["</s>", "<unk>", "hyphenation", "-"], "en_US")
    assert made.units == ["", "</s>", "<unk>", "hy", "phen", "ation", "-"]
    assert made.table(["hyphen"]).tolist() == [[3, 4]] and not made.unknown("hyphen")[0]
    refused(lambda: Subwords.learn("syllables", WORDS, "tlh"), "`language='tlh'`", kind=Contradiction)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_model_needs_no_library_for_its_words(libraries, monkeypatch, kind):
    """Morphs and characters of new words need none either."""
    made = Subwords.learn(kind, WORDS)
    expected = {word: made.segment(word) for word in [*WORDS, "unwalking", "knowing"]}
    for name in "morfessor", "pyphen":
        monkeypatch.setitem(sys.modules, name, None)
    again = stored(made, WORDS)
    assert again.units == made.units and (again.table(WORDS) == made.table(WORDS)).all()
    assert all(again.segment(word) == expected[word] for word in WORDS)
    if kind == "syllables":
        refused(lambda: again.segment("unwalking"), "syllables need Pyphen: pip install pyphen==")
    else:
        assert all(again.segment(word) == expected[word] for word in expected)


DAMAGES = {
    "kind": lambda header, arrays: header.update(kind="letters"),
    "kind missing": lambda header, arrays: header.pop("kind"),
    "number of units": lambda header, arrays: header.update(units=3),
    "words counted": lambda header, arrays: header.update(counted=-1),
    "words counted, type": lambda header, arrays: header.update(counted=1.5),
    "known missing": lambda header, arrays: arrays.pop("known"),
    "known cut": lambda header, arrays: arrays.update(known=arrays["known"][:9]),
    "known of another type": lambda header, arrays: arrays.update(known=arrays["known"].astype(float)),
    "an empty line": lambda header, arrays: arrays["known"].__setitem__(slice(None), ord("\n")),
    "others without text": lambda header, arrays: arrays.update(others=np.frombuffer(b"\xff\n", np.uint8)),
    "morphs missing": lambda header, arrays: arrays.pop("morphs"),
    "morphs cut": lambda header, arrays: arrays.update(morphs=arrays["morphs"][:-9]),
    "a morph twice": lambda header, arrays: arrays.update(morphs=np.frombuffer(b"A\n" * 11, np.uint8)),
    "no count": lambda header, arrays: arrays["morph_counts"].__setitem__(0, 0),
    "a negative count": lambda header, arrays: arrays["morph_counts"].__setitem__(0, -1),
    "counts of another type": lambda header, arrays: arrays.update(morph_counts=arrays["morph_counts"] / 2),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_state(file, damage):
    header, arrays = Subwords.learn("morphs", WORDS, segmentation=file()).state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    Subwords.from_state(dict(header), dict(arrays), WORDS)
    DAMAGES[damage](header, arrays)
    with pytest.raises((*modelfile.WRONG, Contradiction)):
        Subwords.from_state(header, arrays, WORDS)


def vocabulary(path):
    """Return `</s>` and the words of a compressed text by first occurrence."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return ["</s>", *dict.fromkeys(word for line in file for word in line.split())]


# Assylbekov and Takhanov 2018, section 5; without the empty syllables that their code counts.
PAPER = {
    "ptb/ptb.train.txt.xz": {"words": 10_000, "syllables": (5_900, 7), "morphs": (3_400, None), "chars": (48, 21)},
    "wikitext-2/wiki.train.tokens.xz": {"words": 33_278, "syllables": (19_500, 8), "morphs": (8_800, None)},
}


@pytest.mark.parametrize("text, kind", [(text, kind) for text in PAPER for kind in PAPER[text] if kind != "words"])
def test_inventories_of_the_paper(libraries, measured_data, text, kind):
    words = vocabulary(measured_data / text)
    assert len(words) == PAPER[text]["words"]
    made = Subwords.learn(kind, words)
    number, longest = PAPER[text][kind]
    assert len(made.units) == pytest.approx(number, rel=0.02 if kind == "morphs" else 0.006, abs=5)
    assert longest is None or made.table(words).shape[1] == longest


def test_new_words_of_the_paper(libraries, measured_data):
    """Of WikiText-2's test words that are not in Penn Treebank, 3,659 have unknown characters, as in the paper."""
    words = vocabulary(measured_data / "ptb/ptb.train.txt.xz")
    made = Subwords.learn("chars", words)
    new = set(vocabulary(measured_data / "wikitext-2/wiki.test.tokens.xz")) - set(words)
    assert sum(bool(made.unknown(word)[0]) for word in new) == 3659
