"""Small language models whose word vectors are composed from subwords, and the composition in plain NumPy."""

import itertools

import numpy as np

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.text.subwords import Subwords
from tiedtools.text.vocab import Vocab

V, T, B = 61, 5, 3
WORDS = ["</s>", "<unk>", *(a + b for a in ("cat", "dog", "owl", "mat") for b in ("s", "ly", "-box", "ing", ""))]
LAYERS = {"morphs": "emb hw1 hw2", "syllables": "emb proj hw1 hw2", "chars": "emb cnn hw1 hw2"}
FILTERS = [2, 3, 1, 4]
# widths of composed vectors and of the hidden layers, which differ for some, so that there is an L
SIZES = {
    "morphs": dict(size=7),
    "syllables": dict(size=9, subword_dim=4, hidden=6),
    "chars": dict(hidden=8, subword_dim=3, filters=",".join(map(str, FILTERS))),
}


class Made:
    """Stand-in for Subwords: random units of V words; the last word has none, and word 3 the greatest number."""

    def __init__(self, V=V, S=13, longest=6, seed=4):
        rng = np.random.default_rng(seed)
        self.units = ["", *(f"u{k}" for k in range(S))]
        self.rows = np.zeros((V, longest), np.int32)
        for k, row in enumerate(self.rows):
            n = longest if k == 3 else rng.integers(1, longest)
            row[:n] = rng.integers(1, S + 1, n)
        self.rows[-1] = 0

    def table(self, words):
        return self.rows[[int(word.strip("</sw>") or 0) for word in words]]


def vocab(V=V, **options):
    return Vocab(["</s>", *(f"w{k}" for k in range(1, V))], np.arange(V, 0, -1), Made(V, **options))


def combinations(kind):
    """Return all values of `reuse` of a kind of subwords."""
    layers = LAYERS[kind].split()
    lists = (some for n in range(1, len(layers)) for some in itertools.combinations(layers, n))
    return ["plain", "none", "all", *map(",".join, lists)]


def model(kind, reuse="all", values=None, **options):
    options = {"init": 0.5, "dtype": "float64", **SIZES[kind], "subwords": kind, "reuse": reuse, **options}
    return LstmLM(vocab(), LstmConfig(**options), values)


def lettered(reuse="all", **options):
    """Return a small CharCNN, with real Subwords."""
    vocab = Vocab(WORDS, np.arange(len(WORDS), 0, -1), Subwords.learn("chars", WORDS))
    small = dict(hidden=6, filters="2,3", subword_dim=4, batch=3, steps=5, init=0.3)
    return LstmLM(vocab, LstmConfig(subwords="chars", reuse=reuse, **small, **options))


def composed(p, side, config, rows):
    """Return the composed vectors of words with these units, padded with 0, from parameters `p` by name."""
    E = np.concatenate([np.zeros((1, config.subword_dim)), p[f"{side}.emb.E"]])[rows]  # [V, L, d]
    if config.subwords == "morphs":
        x = E.sum(1)
        if f"{side}.proj.W" in p:
            x = x @ p[f"{side}.proj.W"]
    elif config.subwords == "syllables":
        x = E.reshape(len(E), -1) @ p[f"{side}.proj.W"]
    else:
        x = np.concatenate([convolved(E, p, side, width) for width in range(1, len(config.widths) + 1)], 1)
    for k in range(config.highways):
        scores = x @ p[f"{side}.hw{k + 1}.W"] + p[f"{side}.hw{k + 1}.b"]
        gate, new = 1 / (1 + np.exp(-scores[:, : x.shape[1]])), np.maximum(scores[:, x.shape[1] :], 0)
        x = gate * new + (1 - gate) * x
    return x


def convolved(E, p, side, width):
    """Return the maximum over all windows, including those of padding."""
    windows = np.stack([E[:, k : k + width].reshape(len(E), -1) for k in range(E.shape[1] - width + 1)])
    return np.tanh(windows @ p[f"{side}.cnn.W{width}"] + p[f"{side}.cnn.b{width}"]).max(0)
