"""Test properties for arbitrary words, texts, and numbers: files round-trip, and texts yield their words."""

import collections
import io
import json
import math
import re
from unittest import mock

import numpy as np
import plainreaders as plain
import pytest
from common import refused
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tiedtools.evaluation import lexicon, similarity
from tiedtools.files import modelfile
from tiedtools.models.rnnlm import program
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.text import counting, morphs, sources
from tiedtools.text.counting import WordTable
from tiedtools.text.encoding import encode
from tiedtools.text.subwords import Characters, Subwords, Syllables
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

quickly = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
BLANKS = "\t\n\v\f\r "
TRIMMED = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
)
characters = st.characters(exclude_categories=["Cs"], exclude_characters=BLANKS + "\0")
odd = st.sampled_from("\u00a0\u0085\u2028\u3000\ufeff\u200b\x1c\x1f\x7f,#:%_-3é")
word = st.text(characters | odd, min_size=1, max_size=12) | st.sampled_from(
    ["</s>", "<unk>", "3", "1e5", "nan", "x" * 70]
)
words = st.lists(word, min_size=1, max_size=8, unique=True)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Texts with repeated words.
token = st.sampled_from(["a", "b", "longer-than-eight", "longer-than-eighT"]) | word
corpus = st.lists(token | st.sampled_from([" ", "\n", "\t", "\r\n", "\n\n", "\v", "\f "]), max_size=40).map(
    lambda parts: "".join(part if set(part) <= set(BLANKS) else f"{part} " for part in parts)
)


@st.composite
def vectors(draw):
    named = draw(words)
    return Vectors(named, draw(arrays.arrays(np.float32, (len(named), draw(st.integers(1, 4))), elements=floats)))


@pytest.mark.parametrize("name", ["v.bin", "v.bin.gz", "v.npy", "v.safetensors"])
@given(vectors())
@quickly
def test_binary_vectors_round_trip_exactly(tmp_path, name, written):
    written.write(tmp_path / name)
    found = Vectors.read(tmp_path / name, {"bin": "binary"}.get(name.split(".")[1]))
    assert found.words == written.words and found.matrix.tobytes() == written.matrix.tobytes()


@pytest.mark.parametrize("format", ["text", "glove", "tsv"])
@given(vectors())
@quickly
def test_text_vectors_round_trip_to_six_decimals(tmp_path, format, written):
    """Exactly, where six decimals would be 0, and in vectors that are small as a whole."""
    path = tmp_path / f"v.{format}"
    written.write(path, format)
    found = Vectors.read(path, format)
    rounded = np.array([[np.float32(f"{x:.6f}") for x in row] for row in written.matrix.tolist()])
    small = abs(written.matrix).max(1, keepdims=True) < 1e-3
    expected = np.where((rounded == 0) | small, written.matrix, rounded)
    words = written.words
    if format == "tsv":  # words that JavaScript's `trim` empties are written by code point
        words = [word if word.strip(TRIMMED) else " ".join(f"U+{ord(c):04X}" for c in word) for word in words]
    assert found.words == words and np.array_equal(found.matrix, expected)


@given(st.lists(st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True)))
@quickly
def test_numbers_are_read_as_python_reads_them(tmp_path, numbers):
    assume(numbers)
    with np.errstate(over="ignore"):
        expected = np.array([float(number) for number in numbers], np.float32)
    (tmp_path / "v").write_text(f"1 {len(numbers)}\nw {' '.join(numbers)}\n")
    if np.isfinite(expected).all():
        assert Vectors.read(tmp_path / "v", "text").matrix.tobytes() == expected.tobytes()
    else:
        refused(lambda: Vectors.read(tmp_path / "v", "text"), "not a finite float32")


@given(corpus, st.integers(1, 30), st.sampled_from(["", ".gz", ".xz"]))
@quickly
def test_block_size_does_not_change_a_text(tmp_path, data, block, ending):
    expected = plain.tokens(data.encode())
    path = tmp_path / f"t{ending}"
    with text_file(path) as file:
        file.write(data.encode())
    with mock.patch.object(sources, "BLOCK", block), mock.patch.object(counting, "BLOCK", block):
        if set(expected) <= {"</s>"}:
            refused(lambda: encode([str(path)]), "no words")
            return
        found = encode([str(path)])
        scored = [token for piece in lexicon.pieces(str(path)) for token in piece]
    assert [found.vocab.words[k] for k in found.ids] == expected
    counts = collections.Counter(expected)
    order = sorted(counts.keys() - {"</s>"}, key=lambda token: (-counts[token], expected.index(token)))
    assert found.vocab.words == ["</s>", *order] and found.vocab.counts.tolist() == [
        counts[w] for w in found.vocab.words
    ]
    if not data.rstrip("\t\v\f\r ").endswith("\n"):
        assert scored.pop() == "\n"  # a last line without a newline is a line
    assert ["</s>" if token == "\n" else token for token in scored] == expected


def text_file(path):
    import bz2
    import gzip
    import lzma

    return {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)(path, "wb")


@given(
    st.binary(max_size=60) | corpus.map(lambda data: data.encode("utf-16")),
    st.sampled_from(["strict", "replace", "ignore"]),
)
@quickly
def test_arbitrary_bytes_are_decoded_or_rejected(tmp_path, data, errors):
    (path := tmp_path / "t").write_bytes(data)
    try:
        expected = plain.tokens(data, errors)
        good = "\0" not in "".join(expected) and set(expected) - {"</s>"}
    except UnicodeDecodeError:
        good = False
    if good:
        found = encode([str(path)], errors=errors)
        assert [found.vocab.words[k] for k in found.ids] == expected
    else:
        refused(lambda: encode([str(path)], errors=errors), f"{path}")


@given(corpus, st.lists(st.integers(1, 200), max_size=4))
@quickly
def test_word_ids_do_not_depend_on_blocks(data, cuts):
    """The table is filled block by block; blocks end between words."""
    whole, parts = WordTable(), WordTable()
    data = f"{data} ".encode()
    cuts = sorted(k for k in {*cuts, len(data)} if k <= len(data) and data[k - 1 : k].isspace())
    expected = [k for ids in whole.encode(data) for k in ids.tolist()]
    found = [k for i, j in zip([0, *cuts], cuts) for ids in parts.encode(data[i:j]) for k in ids.tolist()]
    assert found == expected and parts.words == whole.words


@given(corpus, st.integers(1, 3), st.none() | st.integers(2, 6))
@quickly
def test_vocabularies_round_trip_and_are_truncated_alike(tmp_path, data, min_count, max_vocab):
    table = WordTable()
    for _ in table.encode(f"{data} ".encode()):
        pass
    everything, _ = table.vocab(1, None)
    assume(everything.total)
    (tmp_path / "v").write_bytes(io_bytes(everything.write))
    found, expected = Vocab.read(str(tmp_path / "v"), min_count, max_vocab), table.vocab(min_count, max_vocab)[0]
    assert found.words == expected.words and found.counts.tolist() == expected.counts.tolist()


def io_bytes(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


numbers = st.one_of(
    arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    for dtype in (np.float32, np.float64, np.int64, np.uint8)
)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")), min_size=1),
    st.dictionaries(st.sampled_from(["emb_in", "proj.W", "state_0", "b"]), numbers),
    st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.integers() | st.text() | floats),
)
@quickly
def test_model_files_round_trip(tmp_path, named, parts, config):
    (tmp_path / "m").write_bytes(io_bytes(lambda file: modelfile.save(file, "kind", config, named, parts)))
    header, found_words, found = modelfile.load(tmp_path / "m")
    assert (header["kind"], header["config"], found_words) == ("kind", config, named)
    assert found.keys() == parts.keys() and modelfile.kind(tmp_path / "m") == "kind"
    for name, array in parts.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes() and found[name].flags.writeable


@given(words.filter(lambda words: "</s>" not in words), st.booleans(), st.data())
@quickly
def test_rnnlm_files_round_trip(tmp_path, named, binary, data):
    vocab = Vocab(["</s>", *named], np.arange(len(named) + 1, 0, -1))
    model = Rnnlm(vocab, RnnlmConfig(hidden=2, classes=3, direct=data.draw(st.sampled_from([0, 2, 5]))))
    values = arrays.arrays(np.float32, len(model.params.values), elements=floats)
    model.params.values[:] = data.draw(values)
    (tmp_path / "m").write_bytes(io_bytes(lambda file: program.write(file, model, binary)))
    found = program.read(tmp_path / "m", 1)
    assert found.vocab.words == vocab.words and found.vocab.counts.tolist() == vocab.counts.tolist()
    assert found.starts.tolist() == model.starts.tolist()
    for (name, ours), (_, theirs) in zip(model.params.owners(), found.params.owners()):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


pair = st.tuples(word, word, st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(pair.filter(lambda triple: not triple[0].startswith("#")), min_size=1), st.sampled_from("\t, "))
@quickly
def test_similarity_sets_round_trip(tmp_path, triples, separator):
    assume(separator == "\t" or not any("," in a + b or (a + b).count(";") > 1 for a, b, _ in triples))
    assume(not any(word.startswith('"') for a, b, _ in triples for word in (a, b)))
    assume(not all(re.fullmatch(".+-[jnv]", word) for a, b, _ in triples for word in (a, b)))
    assume(not triples[0][0].startswith("\ufeff"))
    lines = [f"{a}{separator}{b}{separator}{score!r}\n" for a, b, score in triples]
    (tmp_path / "s").write_text("".join(lines), encoding="utf-8")
    found = similarity.read_set(tmp_path / "s")
    expected = sorted((*sorted((a, b)), score) for a, b, score in triples)
    assert list(zip(found.pairs, found.scores.tolist())) == [((a, b), score) for a, b, score in expected]
    assert all(map(math.isfinite, found.scores))


analyses = st.lists(
    st.tuples(st.integers(1, 10**9 - 1), st.lists(word | st.just("+"), min_size=2, max_size=4)),
    min_size=1,
    max_size=6,
    unique_by=lambda analysis: "".join(analysis[1]),
)


@given(analyses)
@quickly
def test_analyses_round_trip_and_segment_their_words(tmp_path, written):
    with open(tmp_path / "morphs", "wb") as file:
        morphs.write(file, written)
    assert morphs.read(str(tmp_path / "morphs")) == written
    lexicon = morphs.Lexicon.of(written)
    for _, found in written:
        assert "".join(lexicon.segment("".join(found))) == "".join(found)


@pytest.mark.parametrize("language", ["en_US", "de_DE", "ru_RU", "cs_CZ", "el"])
@given(words)
@quickly
def test_syllables_join_to_the_word_without_hyphens(language, drawn):
    pytest.importorskip("pyphen", reason='needs Pyphen: pip install "tiedtools[subwords]"')
    syllables = Syllables(language)
    for drawn_word in drawn:
        found = syllables.segment(drawn_word)
        assert all(found) and "".join(found) == (drawn_word.replace("-", "") or drawn_word)


@given(words, words, st.booleans())
@quickly
def test_state_of_subwords_restores_them(drawn, new, atomic_unk):
    vocabulary = list(dict.fromkeys(["</s>", *drawn]))
    for segmenter in Characters(), morphs.Lexicon.of((1, [w[: len(w) // 2 + 1], w[-1]]) for w in drawn):
        kind = "chars" if isinstance(segmenter, Characters) else "morphs"
        made = Subwords(kind, vocabulary, segmenter, atomic_unk=atomic_unk)
        header, stored = made.state()
        stored = {name: array.copy() for name, array in stored.items()}
        again = Subwords.from_state(json.loads(json.dumps(header)), stored, vocabulary)
        assert again.units == made.units
        for each in [*vocabulary, *new, "<unk>"]:
            assert again.segment(each) == made.segment(each) and "".join(made.segment(each)) == each
            assert again.unknown(each) == made.unknown(each)
        table = made.table(vocabulary)
        assert [[made.units[k] for k in row if k] for row in table.tolist()] == [*map(made.spelled, vocabulary)]
        assert (table > 0).any(0).all() and set(table[table > 0].tolist()) == set(range(1, len(made.units)))


@given(corpus, st.sampled_from(["@@", "▁", "\u00a0", "|"]))
@quickly
def test_text_of_subwords_is_reversible(tmp_path, run, data, separator):
    (tmp_path / "t").write_bytes(data.encode())
    result = run("segment", "--chars", "--separator", separator, tmp_path / "t")
    lines = [re.findall(f"[^{BLANKS}]+", line) for line in data.removesuffix("\n").split("\n")] if data else []
    if any(w.endswith(separator) for line in lines for w in line) and len(separator) == 1:
        assert result.exit_code == 1 and "ends in the separator" in result.stderr
    else:
        joined = result.stdout_bytes.decode().replace(f"{separator} ", "")
        assert joined == "".join(f"{' '.join(line)}\n" for line in lines)
