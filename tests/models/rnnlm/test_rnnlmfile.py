"""Test model files of rnnlm and of tiedtools, and configurations."""

import dataclasses
import io
import struct

import numpy as np
import pytest
import rnnlmreference as reference
from benchmarks.rnnlmlimits import expected_class_size
from common import MODEL_DAMAGES, refused, rewrite, save
from modelsizes import rnnlm_operations, rnnlm_params
from rnnlmcase import CONFIGS, DOC, every_config, model, score, text

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.rnnlm.config import RnnlmConfig, configure
from tiedtools.models.rnnlm.model import Rnnlm, word_classes
from tiedtools.models.rnnlm.program import holds, read, write
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.counts import word_counts

WORDS = ["</s>", "the", "caf\u00e9", "a:b", "x\u00a0y", "rare", "once"]
COUNTS = [30, 40, 9, 9, 4, 1, 1]
CLASSES = [0, 0, 1, 1, 1, 2, 2]
HEADER = {
    "version": 10, "file format": 0, "training data file": "some/train", "validation data file": "",
    "last probability of validation data": -1234.5, "number of finished iterations": 3,
    "current position in training data": 70, "current probability of training data": -5.25,
    "save after processing # words": 0, "# of training words": 94, "input layer size": 10, "hidden layer size": 3,
    "compression layer size": 0, "output layer size": 10, "direct connections": 8, "direct order": 4, "bptt": 5,
    "bptt block": 12, "vocabulary size": 7, "class size": 3, "old classes": 1, "independent sentences mode": 1,
    "starting learning rate": 0.1, "current learning rate": 0.05, "learning rate decrease": 1,
}  # fmt: skip
RNG = np.random.default_rng(1)
HIDDEN, INTO, OUT, DIRECT = (RNG.standard_normal(n).astype(np.float32) for n in (3, 3 * 10, 10 * 3, 8))
INTO[:3] = 1e-30, -0.0, 123456.7


def in_text(label, numbers):
    return f"\n{label}:\n" + "".join(f"{float(x)!r}\n" for x in numbers)


def content(binary=False, vocab=None, left_out=(), **header):
    """Return the bytes of a file in the format; header: labels with _ for a space."""
    fields = {**HEADER, "file format": int(binary), **{label.replace("_", " "): x for label, x in header.items()}}
    text = (
        "".join(f"{label}: {value}\n" for label, value in fields.items() if label not in left_out) + "\n\nVocabulary:\n"
    )
    vocab = vocab or list(zip(COUNTS, WORDS, CLASSES))
    text += "".join(f"{k:6d}\t{count:10d}\t{word}\t{label}\n" for k, (count, word, label) in enumerate(vocab))
    if binary:
        return text.encode() + b"".join(struct.pack("<f", x) for array in (HIDDEN, INTO, OUT, DIRECT) for x in array)
    text += in_text("Hidden layer activation", HIDDEN) + in_text("Weights 0->1", INTO)
    text += "\n" + in_text("Weights 1->2", OUT) + in_text("Direct connections", DIRECT)
    return text.encode()


@pytest.fixture
def stored(tmp_path):
    """Write a file and return its path."""

    def stored(data):
        (path := tmp_path / "model").write_bytes(data)
        return path

    return stored


@pytest.mark.parametrize("binary", [False, True])
def test_every_number_is_read_to_its_position(stored, binary):
    model = read(path := stored(content(binary)))
    assert type(model) is Rnnlm and model.vocab.words == WORDS
    assert model.vocab.counts.tolist() == word_counts(str(path), WORDS).tolist() == COUNTS
    assert model.starts.tolist() == [0, 2, 5, 7] and model.class_of.tolist() == CLASSES
    assert model.config == RnnlmConfig(
        hidden=3, classes=3, old_classes=True, independent=True, bptt=4, bptt_block=12, direct=8, direct_order=4,
        threads=available_cores(),
    )  # fmt: skip
    paths = {"train": "some/train", "valid": ""}
    assert model.progress == {"iter": 3, "position": 70, "alpha": 0.05, "halving": 1, "llogp": -1234.5, **paths}
    # rnnlm stores the weight from unit a to unit b at [b, a]; the input is V words and M units of the previous step.
    p = model.params
    for b in range(3):
        for a in range(7):
            assert p["emb_in"][a, b] == INTO[10 * b + a] and p["word_out"][a, b] == OUT[3 * a + b]
        for a in range(3):
            assert p["hid"][a, b] == INTO[10 * b + 7 + a] and p["class_hid"][b, a] == OUT[3 * (7 + a) + b]
    assert p["start_hid"].tolist() == HIDDEN.tolist() and p["direct"].tolist() == DIRECT.tolist()
    assert load_language_model(stored(content(binary))).params.values.tobytes() == p.values.tobytes()
    assert read(stored(content()), threads=1).config.threads == 1


@pytest.mark.parametrize("bptt, means", [(0, 0), (1, 0), (2, 1)])
def test_bptt_in_the_file_is_larger_by_1(stored, bptt, means):
    assert read(stored(content(bptt=bptt))).config.bptt == means


def test_layout_of_the_file(stored):
    """Four decimals, blank lines, no validation text, and nothing after `Direct connections:`."""
    data = content(direct_connections=0).decode().replace("current position", "\ncurrent position")
    data = data[: data.index("Direct connections") + len("Direct connections:\n")]
    model = read(stored(data.encode()))
    assert model.config.direct == 0 and model.params["word_out"][6, 2] == OUT[20]
    # rnnlm reads the value after each colon and ignores the label.
    file = io.BytesIO()
    write(file, Rnnlm(Vocab(WORDS, np.array(COUNTS)), RnnlmConfig(hidden=2)))
    lines = file.getvalue().decode().split("\nVocabulary:")[0].splitlines()
    assert [line.partition(":")[0] for line in lines if line] == list(HEADER)
    begun = {"iter": 0, "position": 0, "alpha": 0.1, "halving": 0, "llogp": -1e8, "train": "-", "valid": "-"}
    assert read(stored(file.getvalue())).progress == begun
    paper = RnnlmConfig(doc_dim=2, sentences=True)
    assert holds(RnnlmConfig()) and holds(RnnlmConfig(independent=True)) and not holds(paper)
    assert not holds(RnnlmConfig(independent=True, learn_start=True))
    with pytest.raises(ValueError, match="document vectors"):
        write(io.BytesIO(), Rnnlm(Vocab(WORDS, np.array(COUNTS)), paper))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("direct", [0, 10])
def test_round_trip(stored, binary, direct):
    config = RnnlmConfig(hidden=5, classes=4, direct=direct, bptt=2, independent=binary, threads=1)
    model = Rnnlm(Vocab(WORDS, np.array(COUNTS)), config)
    model.params.values[:] *= np.float32(1e-7)
    model.progress = {
        "iter": 2, "position": 0, "alpha": 0.1 / 2**12, "halving": 1, "llogp": -77.25, "train": "t", "valid": "a b",
    }  # fmt: skip
    file = io.BytesIO()
    write(file, model, binary)
    again = read(stored(file.getvalue()), threads=1)
    assert again.params.values.tobytes() == model.params.values.tobytes()
    assert again.config == dataclasses.replace(config, classes=len(model.starts) - 1)
    assert again.starts.tolist() == model.starts.tolist() and again.vocab.words == WORDS
    assert again.progress.pop("alpha") == pytest.approx(model.progress.pop("alpha"), rel=1e-8)
    assert again.progress == model.progress


def test_empty_classes(stored, messages):
    """rnnlm has as many classes as requested; empty classes take probability from all words."""
    model = read(stored(content()), 1)
    assert messages() == ""
    path = stored(content(class_size=5, output_layer_size=12).replace(b"\nDirect", b"1\n" * 6 + b"\nDirect"))
    wider = read(path, 1)
    told = f"{path}: classes without words, 2 of 5, get probability, as in rnnlm, so that the probabilities of all"
    assert messages().startswith(told)
    logs, whole = (m.predict(np.zeros((1, 1), np.int32), m.start(1))[0] for m in (wider, model))
    assert np.exp(logs).sum() < 0.99 and np.exp(whole).sum() == pytest.approx(1)
    # As in rnnlm, if there are more classes than the vocabulary fills.
    data = content(class_size=5, output_layer_size=12).decode()
    data = data.replace("\nDirect", "0.5\n0.25\n" * 3 + "\nDirect")
    model = read(stored(data.encode()), threads=1)
    assert model.starts.tolist() == [0, 2, 5, 7, 7, 7] and model.params["class_hid"][2, 4] == 0.25
    state = model.start(1)
    logprobs, _ = model.predict(np.ones((1, 1), np.int32), state)
    each = [
        model.score(np.ones((1, 1), np.int32), np.full((1, 1), word, np.int32), state)[0][0, 0] for word in range(7)
    ]
    np.testing.assert_allclose(logprobs[0], each, atol=1e-5)
    assert np.exp(each).sum() < 0.95


BAD_VOCAB = [*zip(COUNTS, WORDS, CLASSES)]
DAMAGES = {
    "unsupported version": (content(version=9), "file version 9, expected 10"),
    "compression": (content(compression_layer_size=4), "compression layer"),
    "no header": (b"version: 10\n", "missing line 'Vocabulary:'"),
    "missing line": (content(left_out=["class size"]), "missing line 'class size'"),
    "not a number": (content(hidden_layer_size="three"), "'three'"),
    "inconsistent sizes": (content(hidden_layer_size=4), "inconsistent sizes in the header"),
    "huge layer": (content(hidden_layer_size=10**5, input_layer_size=10**5 + 7), "too short for"),
    "huge vocabulary": (
        content(vocabulary_size=10**15, input_layer_size=10**15 + 3, output_layer_size=10**15 + 3), "vocabulary entry 7"
    ),
    "negative size": (content(direct_connections=-8), "inconsistent sizes in the header"),
    "direct order too large": (content(direct_order=99), "or corrupt .`direct_order=99` must be from"),
    "first word": (content(vocab=[(1, "x", 0), *BAD_VOCAB[1:]]), "vocabulary entry 0 is 'x'"),
    "bad word": (content(vocab=[*BAD_VOCAB[:5], (1, "two\tx", 2), BAD_VOCAB[6]]), "vocabulary entry 5: expected ID"),
    "bad count": (content(vocab=[*BAD_VOCAB[:5], (2**70, "two", 2), BAD_VOCAB[6]]), "vocabulary entry 5: expected ID"),
    "not UTF-8": (content().replace("\u00e9".encode(), b"\xe9"), "vocabulary entry 2: expected ID"),
    "class not contiguous": (content(vocab=[*BAD_VOCAB[:6], (1, "once", 1)]), "not contiguous in the vocabulary"),
    "class skipped": (content(vocab=[*BAD_VOCAB[:6], (1, "once", 3)]), "not contiguous in the vocabulary"),
    "too many classes": (content(class_size=2, output_layer_size=9), "not contiguous in the vocabulary"),
    "garbage": (content().replace(b"\nWeights 1->2", b"abc\nWeights 1->2"), "'Weights 1->2:'"),
    "joined lines": (content().replace(b"\n\nDirect", b"Direct"), "missing line 'Direct connections:'"),
    "text among numbers": (content().replace(b"connections:\n", b"connections:\nabc\n"), "text that is not a number"),
    "no exponent": (content().replace(b"\n\nDirect", b"e\n\nDirect"), "'Weights 1->2' contains text that is not a"),
    "too few numbers": (content()[: content().index(b"Direct")] + b"Direct connections:\n1" + b"\n" * 40, "found 1"),
    "extra number": (content() + b"1\n", "extra data after"),
    "duplicate word": (content(vocab=[*BAD_VOCAB[:6], (1, "the", 2)]), "one comes twice"),
    "negative count": (content(vocab=[*BAD_VOCAB[:6], (-1, "once", 2)]), "counts are negative"),
    "underscore": (content(direct_connections="0_8"), "'0_8' is not an integer"),
    "unknown format": (content(file_format=2), "file format 2, expected 0"),
    "bptt too large": (content(bptt=10**6), "`bptt=999999` must be from 0 to 10,000"),
    "negative epochs": (content(number_of_finished_iterations=-1), "inconsistent training progress"),
    "nan learning rate": (content(current_learning_rate="nan"), "alpha is nan"),
    "negative learning rate": (content(current_learning_rate=-0.1), "inconsistent training progress"),
    "nan": (
        content().replace(b"connections:\n", b"connections:\nnan\n").rstrip()[: -len(repr(float(DIRECT[-1])))],
        "infinite",
    ),
    "infinite": (content(True)[:-4] + struct.pack("<f", np.inf), "infinite"),
    "extra bytes": (content(True) + b"\n", "extra data after"),
    "truncated": (content(True)[:-1], "too short for 71 numbers"),
    "truncated text": (content()[:-200], "'Weights 1->2': expected 30 numbers, found 29"),
}  # fmt: skip


@pytest.mark.parametrize("data, message", DAMAGES.values(), ids=DAMAGES)
def test_errors_name_the_corrupt_file(stored, data, message):
    path = stored(data)
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*({message})"):
        load_language_model(path)


def test_missing_file(tmp_path):
    for load in read, load_language_model:
        with pytest.raises(TiedtoolsError, match=f"^{tmp_path}/x: .*[Nn]o such file"):
            load(tmp_path / "x")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@every_config
def test_loading_restores_the_saved_model(options, path, dtype="float32"):
    m, ids = model(dtype=dtype, **options), text(100)
    m.learn(ids, 0.1)
    m.progress = {"iter": 3, "alpha": 0.05, "halving": 1, "llogp": -1234.5}
    save(m, path)
    assert type(load_language_model(path)) is Rnnlm
    loaded = Rnnlm.load(path, m.config.threads)
    assert loaded.config == m.config and loaded.vocab.words == m.vocab.words and loaded.progress == m.progress
    assert loaded.vocab.counts.tolist() == m.vocab.counts.tolist() and loaded.starts.tolist() == m.starts.tolist()
    assert loaded.params.values.tobytes() == m.params.values.tobytes()
    np.testing.assert_array_equal(score(loaded, ids), score(m, ids))
    np.testing.assert_array_equal(loaded.learn(ids, 0.1), m.learn(ids, 0.1))
    assert loaded.params.values.tobytes() == m.params.values.tobytes()


def test_classes_and_progress_are_saved(path):
    test_loading_restores_the_saved_model(DOC, path, "float64")
    m = model()
    odd = Rnnlm(m.vocab, m.config, starts=np.array([0, 5, 20, len(m.vocab)]))
    assert odd.params["class_hid"].shape == (5, 3)
    save(odd, path)
    assert Rnnlm.load(path).starts.tolist() == [0, 5, 20, len(m.vocab)]
    save(model(), path)
    assert Rnnlm.load(path).progress == {}
    save(model(threads=available_cores() + 1), path)
    assert Rnnlm.load(path).config.threads == available_cores() and Rnnlm.load(path, threads=2).config.threads == 2
    m = model(**CONFIGS["document"])
    E, W = m.params["emb_in"], m.params["word_out"][:, : m.config.hidden]
    expected = {"in": E, "out": W, "sum": E + W, "concat": np.hstack([E, W])}
    for which, matrix in expected.items():
        vectors = m.vectors(which)
        assert vectors.words == m.vocab.words
        np.testing.assert_array_equal(vectors.matrix, matrix.astype(np.float32))


MODEL_CHANGES = {
    **MODEL_DAMAGES,
    "array missing": lambda header, words, arrays: arrays.pop("hid"),
    "different hidden size": lambda header, words, arrays: header["config"].update(hidden=12),
    "different doc_dim": lambda header, words, arrays: header["config"].update(doc_dim=12),
    "class bounds beyond the vocabulary": lambda header, words, arrays: arrays["starts"].__setitem__(-1, 10**6),
    "decreasing class bounds": lambda header, words, arrays: arrays["starts"].__setitem__(1, 40),
    "non-integer class bounds": lambda header, words, arrays: arrays.update(starts=arrays["starts"] / 1),
    "progress of the wrong type": lambda header, words, arrays: header["config"].update(progress=dict(alpha=[1])),
    "negative epochs": lambda header, words, arrays: header["config"].update(progress=dict(iter=-1)),
    "negative position": lambda header, words, arrays: header["config"].update(progress=dict(position=-1)),
    "learning rate beyond float32": lambda header, words, arrays: header["config"].update(progress=dict(alpha=1e40)),
    "option beyond float32": lambda header, words, arrays: header["config"].update(doc_lr=1e39),
    "bptt too large": lambda header, words, arrays: header["config"].update(bptt=10**9),
    "options not a mapping": lambda header, words, arrays: header.update(config=[]),
    "different kind": lambda header, words, arrays: header.update(kind="word2vec"),
}


@pytest.mark.parametrize("change", MODEL_CHANGES.values(), ids=MODEL_CHANGES)
def test_errors_name_the_corrupt_model(change, path):
    save(model(**DOC), path)
    rewrite(path, change)
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*(corrupt|of kind)"):
        Rnnlm.load(path)


@pytest.mark.parametrize(
    "hidden, doc_dim, params, operations",
    [(100, 0, 0, 0), (120, 0, 666_960, 7_400), (100, 20, 332_300, 6_000), (135, 0, 1_167_705, 13_475)]
    + [(100, 35, 581_525, 10_500)],
)
def test_costs_above_the_baseline_match_table_1_of_rei(hidden, doc_dim, params, operations):
    baseline, more = RnnlmConfig(hidden=100), RnnlmConfig(hidden=hidden, doc_dim=doc_dim)
    assert rnnlm_params(more, 16_514) - rnnlm_params(baseline, 16_514) == params
    assert rnnlm_operations(more, 50) - rnnlm_operations(baseline, 50) == operations


def zipf(V, total):
    return np.maximum(total / np.arange(1, V + 1) / np.log(V), 1).astype(np.int64)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 1000])
def test_word_classes_match_reference(n, old):
    rng = np.random.default_rng(n)
    drawn = np.sort(rng.integers(1, 10**6, 200))[::-1]
    steep = np.array([900, 50, 20, 7, 5, 3, 2, 1, 1, 1])
    ends_first = np.concatenate([[40], zipf(300, 10**5)])  # </s> is first whatever its count
    for counts in drawn, zipf(300, 10**5), steep, ends_first:
        bounds, swept = word_classes(counts, n, old), reference.word_classes(counts, n, old)
        assert bounds.dtype == np.int64 and len(bounds) <= n + 1
        assert np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)).tolist() == swept
        assert (np.diff(bounds) > 0).all()


def test_word_classes_of_the_papers():
    """About 50 words for classes by square roots of counts; classes of equal counts would give V / C = 165."""
    counts = zipf(16_514, 10**7)
    assert 40 < expected_class_size(counts, word_classes(counts, 100)) < 65
    assert 150 < expected_class_size(counts, word_classes(counts, 100, old=True)) < 180
    counts = np.array([10, 6, 3, 1])
    assert expected_class_size(counts, np.array([0, 1, 4])) == pytest.approx(0.5 * 1 + 0.5 * 3)
    assert word_classes(np.array([5, 2, 2, 1]), 2, old=True).tolist() == [0, 2, 4]
    assert word_classes(np.array([6, 2, 1, 1]), 2, old=True).tolist() == [0, 1, 4]
    assert word_classes(np.array([16, 4, 4, 4]), 3).tolist() == [0, 1, 3, 4]
    assert word_classes(np.array([16, 4, 4, 4]), 3, old=True).tolist() == [0, 1, 2, 4]
    assert word_classes(np.array([5]), 100).tolist() == [0, 1]
    assert RnnlmConfig(sentences=True).independent and not RnnlmConfig().independent
    RnnlmConfig(sentences=True, learn_start=True, shuffle=True), RnnlmConfig(independent=True, shuffle=True)


@pytest.mark.parametrize("options, message", [
    (dict(direct=1e-6), "`direct` must be 0 or at least 2"), (dict(learn_start=True), "add `independent`"),
    (dict(shuffle=True, sentences=False), "add `independent`"), (dict(size=3, hidden=3), "the same"),
])  # fmt: skip
def test_invalid_combinations_are_rejected(options, message):
    refused(lambda: configure(**options), message)
