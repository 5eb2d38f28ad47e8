"""The parameters of word2vec with untied and tied embeddings."""

import dataclasses
import math
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import aligned, imagining
from tiedtools.kernels.base.features import FAST_BFLOAT16, FAST_DOTS
from tiedtools.models.word2vec import pieces, tables, workspaces
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.run import Run
from tiedtools.runs.progress import Listener
from tiedtools.runs.trainer import refuse_twice
from tiedtools.text.encoding import EncodedText
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.fasttextwriter import write_model
from tiedtools.vectors.ngrams import Buckets, Composed, Ngrams
from tiedtools.vectors.vectors import Vectors

INIT_ROWS = 4096  # rows initialized at a time


def require_vectors(config: Config, which: str) -> None:
    """Raise Contradiction unless the vectors `which` are worth writing; see Word2Vec.vectors."""
    if which != "in" and not config.negative:
        raise Contradiction(f"`write={which}`: hierarchical softmax has no output word vectors; use `write=in`")
    refuse_twice(which, config.tying == "tied")
    if which in ("sum", "concat") and config.tying == "signs":
        effect = "their sum cancels dimensions and their concatenation repeats them; use `write=in`"
        raise Contradiction(f"`write={which}`: input and output vectors differ only in signs, so that {effect}")


def resolved(config: Config) -> Config:
    """Return the configuration with None replaced by the precision that is fast on this CPU."""
    fast = "bfloat16" if (FAST_BFLOAT16 if config.tying == "linear" else FAST_DOTS) else "float32"
    return config if config.precision else dataclasses.replace(config, precision=fast)


def ngrams_of(vocab: Vocab, config: Config) -> Ngrams | None:
    """Return the n-grams of a vocabulary, which keeps the last; None without `subwords`."""
    if not config.subwords:
        return None
    settings = config.min_n, config.max_n, config.buckets
    if vocab.subwords is None or vocab.subwords.settings != settings:
        vocab.subwords = Ngrams(vocab.words, *settings)
    return vocab.subwords


class Word2Vec(modelfile.Stored):
    """Parameters of a word2vec model over a Vocab of V words, with m = config.size.

    emb_in   float32 [V, m], input embeddings
    emb_out  float32 [rows, m], output embeddings: emb_in itself if tied; otherwise V rows of words if there is negative
             sampling, then V - 1 rows of inner nodes of the Huffman tree if there is hierarchical softmax
    proj     float32 [m, m], L of tied+L, between h and the output rows; [0, 0] in other models
    occurrences  int64 [V], of the words in the text that is trained on; before, the counts of the vocabulary
    ngrams   the rows of words and their n-grams, an Ngrams, with `subwords`; else None. Then emb_in, and emb_out if it
             is tied, have a row per word and per bucket of n-grams that occurs

    Kernels work on `padded`, the same three arrays with zero-padded rows, as arrays.aligned makes them.
    """

    kind = "word2vec"
    KERNELS = 35
    frozen = workspaces.NONE_FROZEN, workspaces.NONE_FROZEN  # uint8 [rows] each: rows of emb_in, emb_out never changed
    continued: Mapping[str, Any] = MappingProxyType({})  # settings of continued training
    sizes = numbers = None  # see w2vtypes.Stores

    def __init__(self, vocab: Vocab, config: Config, drawn: bool = True) -> None:
        """Create the parameters, random if `drawn` is true, otherwise all 0."""
        config = resolved(config)
        self.vocab, self.config, self.occurrences = vocab, config, vocab.counts
        V, m = len(vocab), config.size
        self.ngrams = ngrams_of(vocab, config)
        emb_in = aligned(len(self.ngrams or vocab), m)
        self.first_node = V if config.negative else 0
        emb_out = emb_in if self.tied else aligned(self.first_node + (V - 1 if config.hs else 0), m)
        proj = aligned(emb_in.shape[1], m) if config.tying == "linear" else np.zeros((0, 0), np.float32)
        self.padded = emb_in, emb_out, proj
        self.emb_in, self.emb_out, self.proj = emb_in[:, :m], emb_out[:, :m], proj[:m, :m]
        if drawn:
            self.draw()

    def draw(self) -> None:
        config, emb_in, reach = self.config, self.emb_in, np.float32(2 * self.config.init_range)

        def rng(row: int) -> np.random.Generator:  # of the numbers from a row on, two in each draw of 64 bits
            return np.random.Generator(np.random.PCG64(config.seed).advance((row * config.size + 1) // 2))

        def fill(row: int) -> None:
            rows = emb_in[row : row + INIT_ROWS]
            rows[:] = (rng(row).random(rows.shape, np.float32) - np.float32(0.5)) * reach
            if self.ngrams:  # the mean of several
                rows /= np.sqrt(self.ngrams.sizes[row : row + INIT_ROWS, None], dtype=np.float32)

        with ThreadPoolExecutor(config.threads) as pool:
            list(pool.map(fill, range(0, len(emb_in), INIT_ROWS)))
        if self.proj.size:
            self.proj[:] = self.initial_proj(rng(len(emb_in)))

    @classmethod
    def warm_up(cls, config: Config) -> None:
        """Compile the kernels with a small model, so that later memory checks include the memory compilation takes."""
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(bytes(4))
            config = dataclasses.replace(config, size=16, shared_negatives=None, threads=min(config.threads, 2))
            small = cls(Vocab.made_up(), config)
            Run(small, EncodedText(small.vocab, file, 1, 1)).compile()

    @classmethod
    def memory(cls, vocab: Vocab, config: Config) -> int:
        """Return the bytes needed for a model and its training."""
        with imagining() as sizes:
            pieces.threads_of(cls(vocab, config, drawn=False), longest=0, path=0)
        return sum(sizes) + tables.memory(len(vocab), config)

    def initial_proj(self, rng: np.random.Generator) -> np.ndarray:
        m, start = self.config.size, self.config.init_linear
        if start == "identity":
            return np.eye(m)
        if start == "orthogonal":
            return np.linalg.qr(rng.standard_normal((m, m)))[0]
        return rng.uniform(-1, 1, (m, m)) / np.sqrt(m)

    @property
    def uniform_loss(self) -> float:
        """Loss of one prediction, in nats, if all vectors are 0; a Huffman path counts as a path in a balanced tree."""
        c: Any = self.config
        sampling = math.log1p(math.exp(-c.shift)) + c.negative * math.log1p(math.exp(c.shift))
        return sampling * (c.negative > 0) + math.log(len(self.vocab)) * c.hs

    @property
    def tied(self) -> bool:
        return self.config.tying != "untied"

    @property
    def n_params(self) -> int:
        """Number of trained parameters; a shared matrix counts once."""
        return self.emb_in.size + self.proj.size + (0 if self.tied else self.emb_out.size)

    def vectors(self, which: str = "in") -> Vectors:
        """Return the word Vectors to write.

        which  "in": emb_in; "out": the words' rows of emb_out; "sum" or "concat": their sum or concatenation, of
               emb_in L and emb_out if there is an L

        Raises Contradiction for vectors that the model does not have, or that repeat or cancel its dimensions.
        """
        require_vectors(self.config, which)
        emb_in: Any = self.emb_in if self.ngrams is None else self.composed
        if which == "in" or which == "out" and self.tied:
            return Vectors(self.vocab.words, emb_in)
        emb_in = np.asarray(emb_in)
        mapped = emb_in if which == "out" or self.linear is None else emb_in @ self.linear
        return Vectors.of(self.vocab.words, which, mapped, emb_in if self.tied else self.emb_out[: len(self.vocab)])

    @property
    def composed(self) -> Composed | None:
        """The input vectors of words as an array, if they are composed from rows of n-grams; else None."""
        if not self.ngrams:
            return None
        return Composed(self.vocab.words, self.padded[0], self.ngrams, self.config.size)

    @property
    def linear(self) -> np.ndarray | None:
        """L or the diagonal matrix of signs, float32 [m, m]; None without one."""
        if self.config.negations:
            return np.diag(np.where(np.arange(self.config.size) < self.config.negations, -1, 1).astype(np.float32))
        return self.proj if self.proj.size else None

    @property
    def arrays(self) -> Arrays:
        """Dict of all parameters by name; a shared matrix appears once."""
        arrays = dict(emb_in=self.emb_in)
        if not self.tied:
            arrays["emb_out"] = self.emb_out
        if self.proj.size:
            arrays["proj"] = self.proj
        return arrays

    def save(self, file: BinaryIO) -> None:
        """Write all parameters, the vocabulary, and the configuration as a model file."""
        arrays = dict(self.arrays, counts=self.vocab.counts)
        if self.linear is not None:
            arrays["proj"] = self.linear  # fixed signs, too: for readers of vectors
        modelfile.save(file, self.kind, dataclasses.asdict(self.config), self.vocab.words, arrays, self.settings)

    def save_fasttext(self, file: BinaryIO) -> None:
        """Write a model of fastText: all rows of words and n-grams, zeros for other buckets, and output vectors.

        Output vectors of a tied model are those that give the same scores, with L or signs in them, but without the
        shift, for which the format has no place.
        """
        c, vectors = self.config, self.composed
        assert vectors is not None  # only models with `subwords` are written
        outputs: Any = self.emb_out[: len(self.vocab)]
        if self.tied:
            outputs = vectors if self.linear is None else np.asarray(vectors) @ self.linear.T
        settings = dict(ws=c.window, epoch=c.epochs, neg=c.negative, model=1 if c.cbow else 2, t=c.sample)
        settings["min_count"] = (self.settings or {}).get("min_count", 5)
        inputs = Buckets(vectors)
        write_model(file, self.vocab.words, inputs, self.vocab.counts, outputs, **settings, **inputs.settings)

    @classmethod
    def of_file(cls, config: dict[str, Any], words: list[str], arrays: Arrays) -> "Word2Vec":
        if config["shared_negatives"] is not None:
            config["shared_negatives"] = tuple(config["shared_negatives"])  # JSON has lists
        if config["deterministic"] and (config["exact"] or config["hs"]):
            config["threads"] = 1  # the only number of threads that Config accepts
        vocab = Vocab(words, arrays.pop("counts")).check()
        return cls.of(vocab, modelfile.configured(Config, config), arrays)

    @classmethod
    def of(cls, vocab: Vocab, config: Config, arrays: Arrays) -> "Word2Vec":
        """Return the model with the parameters `arrays`, by name. Raises KeyError or ValueError if they do not fit."""
        with imagining():  # a false size must not allocate memory
            shapes = {name: array.shape for name, array in cls(vocab, config, drawn=False).arrays.items()}
        for name, shape in shapes.items():
            if arrays[name].shape != shape or arrays[name].dtype != np.float32:
                raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}, expected {shape}")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has values that are nan or infinite")
        model = cls(vocab, config, drawn=False)
        for name, array in model.arrays.items():
            array[:] = arrays[name]
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.vocab, self.config, self.arrays), {"settings": self.settings}

    def train(self, text: EncodedText, progress: Listener | None = None) -> None:
        """Train for config.epochs epochs on an EncodedText, reporting to a Progress. Raises as Run.go."""
        Run(self, text).go(progress)
