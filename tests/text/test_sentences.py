"""Sources other than paths: sentences and open files."""

import gzip
import io
import pathlib

import pytest
from refusals import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text.encoding import encode
from tiedtools.text.sentences import LONGEST_WORD, sources, words_of
from tiedtools.text.sources import BLOCK

SENTENCES = [["the", "cat", "sat"], ["the", "döner", "sat"], []] * 3
TEXT = "the cat sat\nthe döner sat\n\n" * 3


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "text"
    path.write_text(TEXT)
    return path


def read(source):
    text = encode(sources(source), 1)
    return text.vocab.words, text.ids.tolist()


@pytest.mark.parametrize("make", [
    lambda path: path, lambda path: [path], open, lambda path: open(path, "rb"), lambda path: io.StringIO(TEXT),
    lambda path: io.BytesIO(TEXT.encode()), lambda path: io.BytesIO(gzip.compress(TEXT.encode())),
    lambda path: SENTENCES, lambda path: (tuple(sentence) for sentence in SENTENCES), lambda path: map(iter, SENTENCES),
], ids='path,paths,file,binary file,text stream,bytes,gzip,lists,generator,iterators'.split(','))  # fmt: skip
def test_every_kind_of_source_reads_the_same(path, make):
    assert read(make(path)) == read(str(path))


def test_several_paths_are_read_in_order(path):
    words, ids = read([str(path), path])
    assert (words, ids) == (read(path)[0], read(path)[1] * 2)


def test_an_open_file_is_read_from_where_it_stands(path):
    with open(path) as file:
        file.readline()
        assert read(file) == read(SENTENCES[1:])
        assert not file.closed


def test_a_generator_is_read_piece_by_piece():
    """No more than a block is taken from it before the first words are used."""
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield ["word"] * 1000

    (source,) = sources(endless())
    assert len(source.read(BLOCK)) == BLOCK
    assert 5000 * taken == pytest.approx(BLOCK, rel=0.01)


def test_a_sentence_longer_than_a_block():
    assert len(read([["a", "b"] * BLOCK])[1]) == 2 * BLOCK + 1


@pytest.mark.parametrize("source, problem", [
    (5, "expected a path, a file, or an iterable of sentences, found int"), (None, "found NoneType"),
    (b"path", "found bytes"), ([], "sentences: no words"), ([[]], "sentences: no words"),
    (["the cat", "sat"], "the cat: no such file; a list of strings is a list of paths: split sentences"),
    ([1, 2], "sentences:1: a sentence is a list of words, not int 1"),
    ([["a"], "b c"], "sentences:2: a sentence is a list of words, not str 'b c'; split it into words"),
    ((line for line in ["a b"]), "sentences:1: a sentence is a list of words, not str"),
    ([["a", 1]], "sentences:1: a word is a str, not int 1"), ([[b"a"]], "sentences:1: a word is a str, not bytes"),
    ([["a b"]], "'a b' is empty or contains a blank"), ([["a", ""]], "'' is empty or contains a blank"),
    ([["a\0"]], "contains a blank or a zero byte"), ([["\udcff"]], "is not valid Unicode"),
    ([["x" * 30_000_000]], f"a word of more than {LONGEST_WORD:,} bytes"),
], ids=lambda value: str(value)[:20] if isinstance(value, str) else None)  # fmt: skip
def test_other_sources_are_refused(source, problem):
    with pytest.raises(TiedtoolsError, match=problem) as raised:
        read(source)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300


def test_errors_of_the_source_itself_pass():
    def failing():
        yield ["a"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read(failing())


def test_words_of():
    assert words_of(" the  cat\n") == ["the", "cat"] == words_of(iter(["the", "cat"]))
    refused(lambda: words_of([1]), "a word is a str")
    assert isinstance(sources(pathlib.Path("a"))[0], str)
