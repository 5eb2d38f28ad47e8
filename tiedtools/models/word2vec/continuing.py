"""Training that continues from the vectors of an earlier model, or from any word vectors."""

from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.files import digests, modelfile
from tiedtools.models.word2vec.config import Config, Continuation
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors.vectors import Vectors

# Settings of a model that continued training keeps.
KEPT = "size architecture tying window negative sample ns_exponent fixed_window fit_pmi shift cbow_grad".split()
KEPT += ["cbow_sum", "negated", "skip_input"]


class Source(NamedTuple):
    """Vectors to continue from: path, Vocab with counts (0 if unknown), parameters by name, settings of training."""

    path: str
    vocab: Vocab
    arrays: dict[str, np.ndarray]
    settings: dict[str, Any]


def read_source(path: str) -> Source:
    """Read a model of word2vec with all its parameters, or any file of word vectors as input vectors.

    Raises TiedtoolsError for unreadable files, checkpoints, and models with hierarchical softmax.
    """
    if modelfile.is_model(path) and not modelfile.is_rnnlm(path) and modelfile.kind(path) == Word2Vec.kind:
        model = Word2Vec.load(path)
        if model.config.hs:
            raise TiedtoolsError(f"{path}: a model with hierarchical softmax cannot be continued; read {path}:in")
        return Source(path, model.vocab, model.arrays, {name: getattr(model.config, name) for name in KEPT})
    vectors = Vectors.read(path)
    rows = [row for row in sorted(vectors.index.values()) if vectors.words[row] != END]
    words = [END, *(vectors.words[row] for row in rows)]
    end = vectors.matrix[[vectors.index[END]]] if END in vectors.index else np.zeros((1, vectors.dim), np.float32)
    vocab = Vocab(words, np.zeros(len(words), np.int64))
    return Source(path, vocab, dict(emb_in=np.concatenate([end, vectors.matrix[rows]])), dict(size=vectors.dim))


def settings_of_source(path: str) -> dict[str, Any]:
    """Return the settings of training in a file to continue from, without reading its vectors if it is a model."""
    if modelfile.is_model(path) and not modelfile.is_rnnlm(path):
        header, _ = modelfile.read(path, {"header"})
        if header.get("kind") == Word2Vec.kind:
            stored = header["config"] | dict(tokenize=(header.get("settings") or {}).get("tokenize"))
            return {name: stored[name] for name in (*KEPT, "tokenize") if stored.get(name) is not None}
    return read_source(path).settings


def check(source: Source, config: Config, continuation: Continuation) -> None:
    """Raise Contradiction or TiedtoolsError if a training with this configuration cannot continue from the source."""
    size, freeze = source.arrays["emb_in"].shape[1], continuation.freeze
    if size != config.size:
        raise TiedtoolsError(f"{source.path}: has vectors of {size} dimensions, not {config.size}; use `size={size}`")
    if source.settings.get("tying", config.tying) != config.tying:
        raise Contradiction(
            f"`tying={config.tying}` differs from that of {source.path}, {source.settings['tying']}; omit it, or"
            f" continue from its input vectors, {source.path}:in"
        )
    if config.hs:
        raise Contradiction("`hs` and `init_from` exclude each other: the tree depends on the vocabulary")
    if freeze in ("in", "out") and config.tying != "untied":
        raise Contradiction(
            f"`freeze={freeze}` needs untied vectors: a tied model has one matrix; use `freeze=old`, or align vectors"
        )


def start_from(model: Word2Vec, source: Source, continuation: Continuation) -> None:
    """Copy the parameters of a Source into a new Word2Vec, whose vocabulary has all its words, and freeze rows.

    Without output vectors in the source, those of its words are 0, as at the start of every training.
    """
    index = {word: row for row, word in enumerate(model.vocab.words)}
    rows = np.array([index[word] for word in source.vocab.words])
    for name, array in source.arrays.items():
        if name != "proj":
            model.arrays[name][rows] = array
        elif model.proj.size:
            model.proj[:] = array
    frozen = np.zeros(len(index), np.uint8)
    frozen[rows if continuation.freeze == "old" else slice(None)] = 1
    sides = {"in": "i", "out": "o", "old": "io", None: ""}[continuation.freeze]
    frozen_in, frozen_out = (frozen if side in sides else frozen[:0] for side in "io")
    model.frozen = frozen_in, frozen_out
    model.continued = dict(init=digests.of_file(source.path.rpartition(":")[0] or source.path)["sha256"])
    model.continued |= dict(freeze=continuation.freeze, grow=continuation.grow)


def log_start(source: Source, text: Any) -> None:
    """Log how many words are known and new, and what is missing in the source."""
    known, new = len(source.vocab), len(text.vocab) - len(source.vocab)
    seen = np.count_nonzero(text.counts[1:])
    log.info(f"{source.path}: {known:,} words, {seen - new:,} of them in the text, and {new:,} new words")
    if "emb_out" not in source.arrays and "tying" not in source.settings:
        log.info(f"{source.path}: has input vectors only; output vectors start at 0, and counts are those of the text")
    if seen == new:
        log.warning(f"{source.path}: none of its words is in the text; are language and case the same?")
