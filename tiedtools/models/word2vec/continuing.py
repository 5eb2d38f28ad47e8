"""Training that continues from the vectors of an earlier model, or from any word vectors."""

from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.settings import Continuation
from tiedtools.files import modelfile
from tiedtools.models.continuing import SPLIT, Source, identity, require_same, rows_of
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors.counts import settings
from tiedtools.vectors.vectors import Vectors

# Settings of a model that continued training keeps.
KEPT = "size architecture tying window negative sample ns_exponent fixed_window fit_pmi shift cbow_grad".split()
KEPT += ["cbow_sum", "negated", "skip_input"]


def read_source(path: str) -> Source:
    """Read a model of word2vec with all its parameters, or any file of word vectors as input vectors.

    Raises TiedtoolsError for unreadable files, checkpoints, and models with hierarchical softmax.
    """
    if modelfile.is_model(path) and modelfile.kind(path) == Word2Vec.kind:
        model = Word2Vec.load(path)
        if model.config.hs:
            raise TiedtoolsError(f"{path}: a model with hierarchical softmax cannot be continued; read {path}:in")
        return Source(path, model.vocab, model.arrays, {name: getattr(model.config, name) for name in KEPT})
    vectors = Vectors.read(path, skip_bad=None)
    rows = [row for row in sorted(vectors.index.values()) if vectors.words[row] != END]
    words = [END, *(vectors.words[row] for row in rows)]
    end = vectors.matrix[[vectors.index[END]]] if END in vectors.index else np.zeros((1, vectors.dim), np.float32)
    vocab = Vocab(words, np.zeros(len(words), np.int64))
    return Source(path, vocab, dict(emb_in=np.concatenate([end, vectors.matrix[rows]])), dict(size=vectors.dim))


def settings_of_source(path: str) -> dict[str, Any]:
    """Return the settings of training in a file to continue from, without reading its vectors if it is a model."""
    split = {name: value for name in SPLIT if (value := settings(path).get(name))}
    if modelfile.is_model(path) and modelfile.kind(path) == Word2Vec.kind:
        config = modelfile.read(path, {"header"})[0]["config"]
        return {name: config[name] for name in KEPT if config.get(name) is not None} | split
    return read_source(path).settings | split


def check(source: Source, config: Config, continuation: Continuation) -> None:
    """Raise Contradiction if a training with this configuration cannot continue from the source."""
    require_same(source, config, ["size"])
    require_same(source, config, ["tying"], f", or continue from its input vectors, {source.path}:in")
    if config.hs:
        raise Contradiction("`hs` and `init_from` exclude each other: the tree depends on the vocabulary")
    if (freeze := continuation.freeze) in ("in", "out") and config.tying != "untied":
        raise Contradiction(
            f"`freeze={freeze}` needs untied vectors: a tied model has one matrix; use `freeze=old`, or align vectors"
        )


def start_from(model: Word2Vec, source: Source, continuation: Continuation) -> None:
    """Copy the parameters of a Source into a new Word2Vec, whose vocabulary has all its words, and freeze rows.

    Without output vectors in the source, those of its words are 0, as at the start of every training.
    """
    rows = rows_of(source.vocab, model.vocab)
    for name, array in source.arrays.items():
        if name != "proj":
            model.arrays[name][rows] = array
        elif model.proj.size:
            model.proj[:] = array
    frozen = np.zeros(len(model.vocab), np.uint8)
    frozen[rows if continuation.freeze == "old" else slice(None)] = 1
    sides = {"in": "i", "out": "o", "old": "io", None: ""}[continuation.freeze]
    frozen_in, frozen_out = (frozen if side in sides else frozen[:0] for side in "io")
    model.frozen = frozen_in, frozen_out
    model.continued = identity(source.path.rpartition(":")[0] or source.path, continuation)
