"""Training that continues from the vectors of an earlier model, or from any word vectors."""

import os
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.settings import SPLIT, Continuation
from tiedtools.files import modelfile
from tiedtools.files.output import is_special
from tiedtools.models.continuing import Source, identity, require_same, rows_of
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import counted
from tiedtools.text.vocab import END, Vocab
from tiedtools.vectors.counts import settings
from tiedtools.vectors.fasttext import Dense, FastText
from tiedtools.vectors.ngrams import Ngrams
from tiedtools.vectors.vectors import Vectors, files_read

NEGATIVE_SAMPLING = 2  # fastText's number
BLOCK = 4096  # rows copied at a time
# Settings of a model that continued training keeps: its shape, those that follow from others, and others.
SHAPE, OF_NGRAMS = ("size", "subwords"), ("min_n", "max_n", "buckets")
IMPLIED = "shift", "cbow_grad", "skip_input"
KEPT = *SHAPE, *OF_NGRAMS, *IMPLIED, *"architecture tying window negative sample ns_exponent fixed_window".split()
KEPT += "fit_pmi", "cbow_sum", "negated"


def read_source(path: str, tell: bool = True) -> Source:
    """Read a model of word2vec or fastText with all its parameters, or any file of word vectors as input vectors.

    tell  log how many words are left out

    Raises TiedtoolsError for unreadable files and checkpoints.
    """
    if modelfile.is_model(path) and modelfile.kind(path) == Word2Vec.kind:
        model = Word2Vec.load(path)
        arrays, rows = dict(model.arrays), None
        if model.ngrams:
            every = arrays["emb_in"]
            V = len(model.vocab)
            arrays["emb_in"], rows = every[:V], lambda buckets: every[model.ngrams.table[V + buckets]]
        return Source(path, model.vocab, arrays, {name: getattr(model.config, name) for name in KEPT}, rows)
    vectors = Vectors.read(path, skip_bad=None)
    every = zip(vectors.index, vectors.index.values())  # not a look-up for each word of a fastText model
    rows = sorted(row for word, row in every if word != END and WORD.fullmatch(word))
    if tell and (left_out := len(vectors.index) - len(rows) - (END in vectors.index)):
        log.warning(f"{path}: {counted(left_out, 'word')} with spaces left out, since no text has them")
    if isinstance(vectors.matrix, FastText):
        end = [vectors.index[END]] if END in vectors.index else []
        return read_fasttext(path, vectors.matrix, end + rows)
    words = [END, *(vectors.words[row] for row in rows)]
    end = vectors.matrix[[vectors.index[END]]] if END in vectors.index else np.zeros((1, vectors.dim), np.float32)
    vocab = Vocab(words, np.zeros(len(words), np.int64))
    return Source(path, vocab, dict(emb_in=np.concatenate([end, vectors.matrix[rows]])), dict(size=vectors.dim))


def read_fasttext(path: str, model: FastText, order: list[int]) -> Source:
    """Return a model of fastText as a Source. Raises TiedtoolsError unless it has all parameters of word vectors.

    order  rows of the words to continue with, of `</s>` first
    """
    h = model.header
    if model.supervised or h.pruned >= 0 or not (isinstance(model.inputs, Dense) and isinstance(model.outputs, Dense)):
        raise TiedtoolsError(f"{path}: a classifier, or a pruned or quantized model, cannot be continued; give another")
    if h.loss != NEGATIVE_SAMPLING:
        raise TiedtoolsError(f"{path}: only models with negative sampling can be continued; give another")
    words, counts = [model.words[row] for row in order], model.counts()[order]
    arrays = dict(emb_in=model.inputs[: h.nwords][order], emb_out=model.outputs[:][order])
    if words[:1] != [END]:
        words, counts = [END, *words], np.append(0, counts)
        arrays = {name: np.vstack([np.zeros_like(array[:1]), array]) for name, array in arrays.items()}
    used = dict(size=h.dim, architecture="cbow" if h.model == 1 else "skipgram", tying="untied", window=h.ws)
    used |= dict(negative=h.neg, sample=h.t, ns_exponent=0.5, subwords="ngrams", buckets=h.bucket)
    used |= dict(max_n=model.maxn, min_n=max(h.minn, 1) if model.maxn else 3)
    return Source(path, Vocab(words, counts), arrays, used, lambda buckets: model.inputs[h.nwords + buckets])


def settings_of_source(path: str) -> dict[str, Any]:
    """Return the settings of training in a file to continue from, without reading its vectors if it is a model.

    Raises TiedtoolsError for models with hierarchical softmax.
    """
    if path == "-" or is_special(path) and not os.path.isdir(path):
        raise Contradiction("`init_from` is read twice: give a file, not standard input or a pipe")
    split = {name: value for name in SPLIT if (value := settings(path).get(name))}
    if modelfile.is_model(path) and modelfile.kind(path) == Word2Vec.kind:
        config = modelfile.read_header(path)["config"]
        if config.get("hs"):
            raise TiedtoolsError(f"{path}: a model with hierarchical softmax cannot be continued; read {path}:in")
        kept = {name: config[name] for name in KEPT if config.get(name) is not None}
        # Values that follow from others are not kept, since the others may change.
        implied = Config(**{name: value for name, value in kept.items() if name not in IMPLIED})
        return {name: x for name, x in kept.items() if name not in IMPLIED or x != getattr(implied, name)} | split
    return read_source(path, tell=False).settings | split


def check(source: Source, config: Config, continuation: Continuation) -> None:
    """Raise Contradiction if a training with this configuration cannot continue from the source."""
    if config.subwords and not source.rows:
        remedy = "omit `subwords` and `preset`, or continue from a model of n-grams"
        raise Contradiction(f"`init_from={source.path}` has no n-grams; {remedy}")
    values = vars(config)
    require_same(source, values, SHAPE + OF_NGRAMS * bool(config.subwords))
    inputs = f"{source.path}:in" if modelfile.is_model(source.path) else "as written by `tiedtools convert`"
    remedy = f"omit `tying={config.tying}`, or continue from its input vectors, {inputs}"
    require_same(source, values, ("tying",), remedy)
    if config.tying == "signs":
        require_same(source, values, ("negated",))
    if config.hs:
        raise Contradiction("`hs` and `init_from` exclude each other: the tree depends on the vocabulary")
    if (freeze := continuation.freeze) in ("in", "out") and config.tying != "untied":
        problem = f"`freeze={freeze}` needs untied vectors: a tied model has one matrix"
        raise Contradiction(f"{problem}; use `freeze=old`, or align vectors")
    if freeze == "out" and "emb_out" not in source.arrays:
        problem = f"`freeze=out`: {source.path} has only input vectors, and output vectors of 0 teach nothing"
        raise Contradiction(f"{problem}; omit it, or continue from a model")
    if freeze == "old" and not continuation.grow:
        raise Contradiction("`freeze=old` leaves nothing to train without `grow`; add it")


def start_from(model: Word2Vec, source: Source, continuation: Continuation) -> None:
    """Copy the parameters of a Source into a new Word2Vec, whose vocabulary has all its words, and freeze rows.

    Without output vectors in the source, those of its words are 0, as at the start of every training.
    """
    rows = known = rows_of(source.vocab, model.vocab)
    for name, array in source.arrays.items():
        if name != "proj":
            model.arrays[name][rows] = array
        elif model.proj.size:
            model.proj[:] = array
    if model.ngrams:
        known = copy_ngrams(model, source, rows)
    frozen = np.zeros(len(model.emb_in), np.uint8)
    frozen[known if continuation.freeze == "old" else slice(None)] = 1
    sides = {"in": "i", "out": "o", "old": "io", None: ""}[continuation.freeze]
    frozen_in, frozen_out = (frozen if side in sides else frozen[:0] for side in "io")
    if not model.tied:  # output vectors that the source lacks are 0: frozen, they would teach new words nothing
        frozen_out = frozen_out[: len(model.emb_out) if "emb_out" in source.arrays else 0]
    model.frozen = frozen_in, frozen_out
    model.continued = identity(files_read(source.path)[0], continuation)


def copy_ngrams(model: Word2Vec, source: Source, words: np.ndarray) -> np.ndarray:
    """Copy the rows of words, which have the rows `words` in a model, and n-grams of a Source; return all their rows.

    Rows that share one in the model get their mean, so that the vectors of all words stay the same.
    """
    n, ngrams = len(words), model.ngrams
    assert ngrams is not None  # called only for models with `subwords`
    buckets = np.flatnonzero(Ngrams(source.vocab.words, *ngrams.settings).table[n:] >= 0)
    rows = np.append(words, ngrams.table[ngrams.V + buckets])
    order = np.argsort(rows, kind="stable")
    targets, starts = np.unique(rows[order], return_index=True)
    bounds = np.append(starts, len(order))
    for k in range(0, len(targets), BLOCK):
        first, *_, stop = bounds[k : k + BLOCK + 1]
        some = order[first:stop]
        values = np.empty((len(some), model.config.size))
        values[some < n] = source.arrays["emb_in"][some[some < n]]
        values[some >= n] = source.rows(buckets[some[some >= n] - n])
        counts = np.diff(bounds[k : k + BLOCK + 1])
        model.emb_in[targets[k : k + BLOCK]] = np.add.reduceat(values, starts[k : k + BLOCK] - first) / counts[:, None]
    return targets
