"""Cases for the fuzzer: models of translation, and attention weights."""

import io
import itertools
import json

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.pictures import read_attention
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.interpreter import Interpreter
from tiedtools.models.translation.model import Translator
from tiedtools.runs.session import is_sane
from tiedtools.text.vocab import Vocab

SOURCE = ["</s>", "<unk>", "the", "caf\u00e9", "c@@", "at"]
TARGET = ["</s>", "<unk>", "le", "ch@@", "at"]
CODES = "#version: 0.2\na t</w>\nt h\nth e</w>\nc h\n"
WEIGHTS = dict(line=1, source=["the", "</s>"], target=["le", "chat", "</s>"], weights=[[0.8, 0.2], [0.5, 0.5], [0, 1]])
LINES = b"".join(json.dumps(WEIGHTS | {"line": k}).encode() + b"\n" for k in (1, 1, 2))


def vocab(words):
    return Vocab(words, np.arange(len(words), 0, -1))


def model(tie, codes=""):
    """Return the bytes of a model file."""
    source, target = map(vocab, (SOURCE, TARGET))
    config = TranslationConfig(tie=tie, size=4, hidden=3)
    file = io.BytesIO()
    Translator(target if tie == "all" else source, target, config, codes=codes).save(file)
    return file.getvalue()


def translate(path, files, rng):
    """Translate a line with the model, unless huge weights make it report that it cannot."""
    model = Translator.load(str(path), 1)
    for vocab in model.source_vocab, model.target_vocab:
        assert len(set(vocab.words)) == len(vocab) and vocab.words[0] == "</s>"
    assert np.isfinite(model.params.values).all()
    lines = enumerate([["the", "cat", "odd"], []], 1)
    try:
        found = list(Interpreter(model, align=True, beam=2, max_length=3).translations(lines))
    except TiedtoolsError as error:
        assert "NaN" in str(error)
        return
    for best in itertools.chain(*found):
        assert best.logprob <= 1e-5 or not is_sane(model.params.values)


def attention(path, files, rng):
    source, target, weights = read_attention(str(path), 2)
    assert weights.shape == (len(target), len(source)) and np.isfinite(weights).all()


def cases():
    return {
        "model-nmt": ("m.npz", model("none"), translate),
        "model-nmt-tied": ("m.npz", model("all", CODES), translate),
        "attention": ("w.json", LINES, attention),
    }
