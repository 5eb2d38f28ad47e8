"""Test model files of Mikolov's rnnlm against a plain writer of the format, and errors for invalid files."""

import dataclasses
import io
import struct

import numpy as np
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.program import holds, read, write
from tiedtools.text.vocab import Vocab

WORDS = ["</s>", "the", "caf\u00e9", "a:b", "x\u00a0y", "rare", "once"]
COUNTS = [30, 40, 9, 9, 4, 1, 1]
CLASSES = [0, 0, 1, 1, 1, 2, 2]
HEADER = {
    "version": 10,
    "file format": 0,
    "training data file": "some/train",
    "validation data file": "",
    "last probability of validation data": -1234.5,
    "number of finished iterations": 3,
    "current position in training data": 70,
    "current probability of training data": -5.25,
    "save after processing # words": 0,
    "# of training words": 94,
    "input layer size": 10,
    "hidden layer size": 3,
    "compression layer size": 0,
    "output layer size": 10,
    "direct connections": 8,
    "direct order": 4,
    "bptt": 5,
    "bptt block": 12,
    "vocabulary size": 7,
    "class size": 3,
    "old classes": 1,
    "independent sentences mode": 1,
    "starting learning rate": 0.1,
    "current learning rate": 0.05,
    "learning rate decrease": 1,
}
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
        path = tmp_path / "model"
        path.write_bytes(data)
        return path

    return stored


@pytest.mark.parametrize("binary", [False, True])
def test_every_number_is_read_to_its_position(stored, binary):
    model = read(stored(content(binary)))
    assert type(model) is Rnnlm
    assert model.vocab.words == WORDS and model.vocab.counts.tolist() == COUNTS
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


def test_layout_written_by_rnnlm(stored):
    """Four decimals, blank lines, no validation text, and nothing after `Direct connections:`."""
    data = content(direct_connections=0).decode().replace("current position", "\ncurrent position")
    data = data[: data.index("Direct connections") + len("Direct connections:\n")]
    model = read(stored(data.encode()))
    assert model.config.direct == 0 and model.params["word_out"][6, 2] == OUT[20]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("direct", [0, 10])
def test_round_trip(stored, binary, direct):
    config = RnnlmConfig(hidden=5, classes=4, direct=direct, bptt=2, independent=binary, threads=1)
    model = Rnnlm(Vocab(WORDS, np.array(COUNTS)), config)
    model.params.values[:] *= np.float32(1e-7)
    model.progress = {
        "iter": 2,
        "position": 0,
        "alpha": 0.1 / 2**12,
        "halving": 1,
        "llogp": -77.25,
        "train": "t",
        "valid": "a b",
    }
    file = io.BytesIO()
    write(file, model, binary)
    again = read(stored(file.getvalue()), threads=1)
    assert again.params.values.tobytes() == model.params.values.tobytes()
    assert again.config == dataclasses.replace(config, classes=len(model.starts) - 1)
    assert again.starts.tolist() == model.starts.tolist() and again.vocab.words == WORDS
    assert again.progress.pop("alpha") == pytest.approx(model.progress.pop("alpha"), rel=1e-8)
    assert again.progress == model.progress


def test_a_model_without_progress_is_written_as_untrained(stored):
    file = io.BytesIO()
    write(file, Rnnlm(Vocab(WORDS, np.array(COUNTS)), RnnlmConfig(hidden=2)))
    begun = {"iter": 0, "position": 0, "alpha": 0.1, "halving": 0, "llogp": -1e8, "train": "-", "valid": "-"}
    assert read(stored(file.getvalue())).progress == begun


def test_header_lines_are_in_the_order_of_rnnlm():
    """rnnlm reads the value after each colon and ignores the label."""
    file = io.BytesIO()
    write(file, Rnnlm(Vocab(WORDS, np.array(COUNTS)), RnnlmConfig(hidden=2)))
    lines = file.getvalue().decode().split("\nVocabulary:")[0].splitlines()
    assert [line.partition(":")[0] for line in lines if line] == list(HEADER)


def test_configurations_the_format_cannot_hold():
    paper = RnnlmConfig(doc_dim=2, sentences=True)
    assert holds(RnnlmConfig()) and holds(RnnlmConfig(independent=True)) and not holds(paper)
    assert not holds(RnnlmConfig(independent=True, learn_start=True))
    with pytest.raises(ValueError, match="document vectors"):
        write(io.BytesIO(), Rnnlm(Vocab(WORDS, np.array(COUNTS)), paper))


def test_empty_classes_count_in_the_softmax(stored):
    """As in rnnlm, if there are more classes than the vocabulary fills."""
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
    "text among numbers": (content().replace(b"connections:\n", b"connections:\nabc\n"), "text that is not a number"),
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


def test_empty_classes_are_reported(stored, messages):
    """rnnlm has as many classes as requested; empty classes take probability from all words."""
    model = read(stored(content()), 1)
    assert messages() == ""
    path = stored(content(class_size=5, output_layer_size=12).replace(b"\nDirect", b"1\n" * 6 + b"\nDirect"))
    wider = read(path, 1)
    told = f"{path}: 2 of 5 classes have no words but, as in rnnlm, get probability"
    assert messages().startswith(told)
    logs, whole = (m.predict(np.zeros((1, 1), np.int32), m.start(1))[0] for m in (wider, model))
    assert np.exp(logs).sum() < 0.99 and np.exp(whole).sum() == pytest.approx(1)
