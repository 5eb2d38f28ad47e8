"""Test morphs, syllables, and byte pairs: the libraries, files of morphs, and what happens without a library."""

import gzip
import importlib.util
import io
import math
import pickle
import random
import re
import shlex
import sys

import pytest
from common import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text import morphs
from tiedtools.text.bitext import Segmenter, check_codes, learn
from tiedtools.text.morphs import Lexicon
from tiedtools.text.subwords import Syllables

ENDINGS = ["", "s", "ed", "ing", "er", "ers", "able", "ness", "-like"]
STEMS = ["walk", "talk", "read", "sing", "jump", "play", "lock", "work", "hear", "bäck", "koş"]
WORDS = [prefix + stem + ending for prefix in ["", "un", "re"] for stem in STEMS for ending in ENDINGS]


@pytest.fixture(scope="module")
def model():
    """A model of Morfessor, trained on WORDS."""
    morfessor = pytest.importorskip("morfessor", reason='needs Morfessor: pip install "tiedtools[subwords]"')
    made = morfessor.BaselineModel(forcesplit_list=["-"])
    made.load_data((1, word) for word in sorted(WORDS))
    random.seed(3)
    made.train_batch(finish_threshold=0.005)
    return made


def odd_words(n):
    rng = random.Random(5)
    parts = [*STEMS, *ENDINGS, "x", "Ω", "e\u0301", "-", "zzz", "un"]
    return ["".join(rng.choices(parts, k=rng.randint(1, 9))) or "x" for _ in range(n)]


def test_segments_as_morfessor_does(model):
    """The comparison includes the cost; Morfessor adds that of the end of the word."""
    analyses = [(count, found) for count, _, found in model.get_segmentations()]
    lexicon = Lexicon.of(analyses)
    assert lexicon.counts == dict(model.get_constructions()) and lexicon.words == len(WORDS)
    tested = [*WORDS, *odd_words(3000), "a" * 100, "walk" * 40]
    split = 0
    for tested_word in tested:
        theirs, cost = model.viterbi_segment(tested_word, addcount=0)
        ours = lexicon.segment(tested_word)
        assert ours == theirs, tested_word
        split += len(ours) > 1
        unknown = len(tested_word) * lexicon.total + 1
        end = lexicon.total - math.log(lexicon.words)
        assert sum(lexicon.costs.get(morph, unknown) for morph in ours) + end == pytest.approx(cost, rel=1e-12)
    assert split > len(tested) / 2
    learned = morphs.learn(WORDS, 3)
    assert learned == [(count, found) for count, _, found in model.get_segmentations()]
    assert {"-", "like"} <= set(Lexicon.of(learned).counts)
    long = "walk" * 2500
    watched = []
    learned = morphs.learn([*WORDS, long, "x" * 101], 3, lambda words, length: watched.append(length) or words)
    assert {*watched} == {len(WORDS)} and learned == morphs.learn(WORDS, 3)
    assert "".join(Lexicon.of(learned).segment(long)) == long


def test_learning_depends_on_the_set_of_words_and_the_seed(model, capfd, messages):
    shuffled = [*reversed(WORDS), *WORDS[:5]]
    random.seed(8)
    before = random.getstate()
    learned = [morphs.learn(words, seed) for words, seed in [(WORDS, 1), (shuffled, 1), (WORDS, 2), (WORDS, 4)]]
    assert random.getstate() == before
    assert learned[0] == learned[1] and (learned[0] != learned[2] or learned[0] != learned[3])
    assert capfd.readouterr() == ("", "")  # without the dots of Morfessor
    assert messages() == "learning morphs from 297 words\n" * 4
    assert Lexicon({}, 0).segment("héllo") == list("héllo") and Lexicon({}, 0).segment("") == []
    assert Lexicon.of([(1, ["a", "ba"]), (1, ["ab", "a"])]).segment("aba") == ["a", "ba"]


def test_files_are_exchanged_with_morfessor(model, tmp_path):
    """The word c++ contains the separator of morphs."""
    import morfessor

    reader = morfessor.MorfessorIO(encoding="utf-8")
    reader.write_segmentation_file(str(tmp_path / "theirs"), model.get_segmentations())
    assert morphs.read(str(tmp_path / "theirs")) == [(n, found) for n, _, found in model.get_segmentations()]
    analyses = [*morphs.read(str(tmp_path / "theirs")), (7, ["c", "+", "+"])]
    with open(tmp_path / "ours", "wb") as file:
        morphs.write(file, analyses)
    read = list(reader.read_segmentation_file(str(tmp_path / "ours")))
    assert read == [(n, "".join(found), tuple(found)) for n, found in analyses]


def test_files_of_morphs(tmp_path):
    path = tmp_path / "morphs.gz"
    path.write_bytes(gzip.compress("\ufeff# a comment\r\n\r\n3 un + lock\r\n1 #tag\n".encode()))
    assert morphs.read(str(path)) == [(3, ["un", "lock"]), (1, ["#tag"])]
    file = io.BytesIO()
    morphs.write(file, [(1, ["a"]), (1, ["b"])])
    lines = enumerate(file.getvalue().decode().splitlines(), 1)
    assert morphs.parse("file", lines) == [(1, ["a"]), (1, ["b"])]


@pytest.mark.parametrize("content, problem", [
    (b"", "is empty; give a file that `morfessor-train --save-segmentation`"), (b"# nothing\n", "is empty"),
    (b"1 un + lock\nwalk ing\n", ":2: expected `count morph + morph`"), (b"1 un lock\n", ":1: expected"),
    (b"1 un +  + lock\n", ":1: expected"), (b"0 un + lock\n", ":1: expected"), (b"-1 un + lock\n", ":1: expected"),
    (b"12345678901 un + lock\n", ":1: expected"), ("\u0663 un + lock\n".encode(), ":1: expected"),
    (b"corpusweight:\t1.0\n", ":1: expected"),
    (b"1 un + lock\n2 unlock\n", ":2: a second analysis of 'unlock'; remove one line"),
    (b"3 walk\n12 ing\n", "no word is split; is this a lexicon or a list of words?"),
    (b"1 un + lock\xff\n", ":1: not UTF-8"), (b"1 un + lo\0ck\n", ":1: a zero byte"),
])  # fmt: skip
def test_other_files_are_refused(tmp_path, content, problem):
    (path := tmp_path / "morphs").write_bytes(content)
    with pytest.raises(TiedtoolsError) as error:
        morphs.read(str(path))
    assert str(error.value).startswith(str(path)) and problem in str(error.value)


def test_other_files_of_morfessor_are_refused_and_converted(model, tmp_path, monkeypatch):
    import morfessor

    files = morfessor.MorfessorIO(encoding="utf-8")
    files.write_binary_model_file(str(tmp_path / "a model"), model)
    lexicon = "".join(f"{count} {morph}\n" for morph, count in model.get_constructions())
    (tmp_path / "lexicon").write_text(lexicon, "utf-8")  # as Morfessor writes it, in any locale
    refused(lambda: morphs.read(str(tmp_path / "a model")), "Python pickle; convert it with `morfessor", "' --save-seg")
    refused(lambda: morphs.read(str(tmp_path / "lexicon")), "is this a lexicon")
    # Run the command in the message: its output is what `read` accepts.
    import morfessor.cmd

    binary = tmp_path / "a model"
    morfessor.MorfessorIO().write_binary_model_file(str(binary), model)
    with pytest.raises(TiedtoolsError) as error:
        morphs.read(str(binary))
    program, *arguments = shlex.split(re.search("`(.*)`", str(error.value))[1].replace("FILE", str(tmp_path / "text")))
    assert program == "morfessor"
    morfessor.cmd.main(morfessor.cmd.get_default_argparser().parse_args(arguments))
    assert morphs.read(str(tmp_path / "text")) == [(n, found) for n, _, found in model.get_segmentations()]


@pytest.fixture
def pyphen():
    return pytest.importorskip("pyphen", reason='needs Pyphen: pip install "tiedtools[subwords]"')


SYLLABLES = [
    ("en_US", "hyphenation", "hy phen ation"), ("en_US", "dog", "dog"), ("en_US", "year-to-year", "year to year"),
    ("en_US", "dollar-denominated", "dol lar de nom i nat ed"),  # Pyphen's are empty around the hyphen
    ("en_US", "-", "-"), ("en_US", "--", "--"), ("en_US", "<unk>", "<unk>"), ("en-US", "Paper", "Pa per"),
    ("de_DE", "Straßenbahn", "Stra ßen bahn"), ("de", "e\u0301clair", "e\u0301clair"),
    ("hu_HU", "asszonnyal", "asz szony nyal"), ("en_US", "", ""),
]  # fmt: skip


def test_syllables_and_their_versions(pyphen):
    for language, word, syllables in SYLLABLES:
        assert Syllables(language).segment(word) == syllables.split()
    assert "".join(Syllables("en_US").segment("İİİİstanbulİ")) == "İİİİstanbulİ"
    again = pickle.loads(pickle.dumps(Syllables("hu_HU").load()))
    assert again.segment("asszonnyal") == ["asz", "szony", "nyal"]
    made = Syllables("de_DE").load()
    assert made.version == pyphen.__version__ and len(made.patterns) == 64
    assert Syllables("de_DE", "0.9", made.patterns).segment("Papier") == ["Pa", "pier"]  # the version had the same
    refused(lambda: Syllables("de_DE", "0.9", "0" * 64).segment("Papier"), "not those of version", "; pip install")


needs_subword_nmt = pytest.mark.skipif(importlib.util.find_spec("subword_nmt") is None, reason="needs subword-nmt")
COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}  # of Sennrich et al. 2016


@needs_subword_nmt
def test_symbols_of_words_and_their_restoration(monkeypatch):
    segmenter = Segmenter(learn(COUNTS, 10))
    assert segmenter.codes.splitlines()[:4] == ["#version: 0.2", "s t</w>", "e st</w>", "l o"]
    assert segmenter.symbols(["lowest", "new"]) == ["lo@@", "west", "ne@@", "w"]
    segmenter = Segmenter(learn(COUNTS, 3))
    words = "lowest <unk> w new caf\u00e9".split()
    assert "<unk>" in segmenter.symbols(words)
    assert segmenter.restore(segmenter.symbols(words)) == " ".join(words)
    assert segmenter.restore(["a@@", "b", "c@@"]) == "ab c" and segmenter.restore([]) == ""
    assert Segmenter(learn({"a</s>": 9, "b</s>": 9}, 9)).symbols(["c</s>"]) == ["c@@", "<@@", "/@@", "s@@", ">"]
    segmenter = Segmenter()
    assert segmenter.symbols(["a@@", "b"]) == ["a@@", "b"] and segmenter.restore(["a@@", "b"]) == "a@@ b"
    assert all(check_codes(codes) == codes for codes in ("", "#version: 0.2\n", learn(COUNTS, 3)))
    monkeypatch.setitem(sys.modules, "subword_nmt", None)
    refused(lambda: learn(COUNTS, 3), "tiedtools[nmt]")


@needs_subword_nmt
@pytest.mark.parametrize("counts", [{"a": 9}, {"ab": 1}, {"ab": 2}])
def test_too_few_pairs(counts, capsys):
    assert learn(counts, 100).count("\n") == 1 + (counts == {"ab": 2})
    assert "%" not in capsys.readouterr().err  # subword-nmt's progress


@needs_subword_nmt
@pytest.mark.parametrize("codes", ["a b\n", "#version: 0.2\na b c\n", "#version: 0.1\na b\n"])
def test_other_codes_are_refused(codes):
    with pytest.raises(ValueError, match="not those of subword-nmt"):
        check_codes(codes)
