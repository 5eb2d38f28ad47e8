"""The names of gensim's KeyedVectors, for Vectors."""

import operator
import os
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from tiedtools.base.aliases import Renaming
from tiedtools.base.errors import Contradiction, Mistyped, TiedtoolsError, library, quoted
from tiedtools.base.settings import Range, checked, one_of
from tiedtools.text.sources import Path, counted
from tiedtools.vectors.counts import word_counts
from tiedtools.vectors.norms import unit

Ranked = list[tuple[str, float]]  # words and scores, best first


def same_as(name: str) -> Any:
    """Return a property that is the attribute or method `name`."""
    return property(operator.attrgetter(name), doc=f"The same as `{name}`.")


def listed(words: Iterable[Any]) -> list[Any]:
    """Return an iterable of words as a list. Raises TypeError for a string, whose items are letters."""
    if isinstance(words, str):
        raise Mistyped(f"{quoted(words)} is a single word; give a list of words")
    return list(words)


class GensimNames(Renaming):
    """Mixin of Vectors: methods of gensim's KeyedVectors that Vectors has under other names, or only here.

    A term is a word or a vector (E,). All methods raise KeyError for an unknown word unless they say otherwise.
    """

    instead: ClassVar = {
        **dict.fromkeys(("fill_norms", "init_sims"), "`get_normed_vectors()`; there is nothing to prepare"),
        "add_vector": "`joined(Vectors([word], [vector]))`, which returns both",
        "add_vectors": "`joined(Vectors(words, matrix))`, which returns both",
        "evaluate_word_analogies": '`tiedtools.evaluate_analogies(vectors, "questions-words.txt")`',
        "evaluate_word_pairs": '`tiedtools.evaluate_similarity(vectors, "pairs.tsv")`',
        "most_similar_cosmul": '`analogy("man", "king", "woman", method="mul")`',
        "save": '`write("vectors.npy")`, which `tiedtools.load` reads',
        "vectors_norm": "`get_normed_vectors()`", "word_vec": "`get_vector(word)`", "index2entity": "`words`",
        "words_closer_than": "`closer_than(a, b)`", "vectors_for_all": "`restrict(words)`",
        "vocab": "`index`, a dict: word -> row, and `counts`", "wmdistance": "`to_gensim().wmdistance(...)`",
    }  # fmt: skip
    index_to_key = index2word = same_as("words")
    key_to_index = same_as("index")
    vectors = same_as("matrix")
    vector_size = same_as("dim")
    has_index_for = same_as("__contains__")

    def to_gensim(self: Any) -> Any:
        """Return gensim KeyedVectors with a copy of these vectors. Raises TiedtoolsError if gensim is not installed."""
        keyed = library("gensim.models", "conversion needs gensim").KeyedVectors(self.dim)
        rows = list(self.index.values())
        keyed.add_vectors(list(self.index), self.matrix[rows])
        if self.counts is not None:
            keyed.expandos["count"] = np.asarray(self.counts)[rows]
        return keyed

    @classmethod
    def from_gensim(cls: Any, source: Any) -> Any:
        """Return a copy of the vectors of gensim KeyedVectors, or of a gensim model that has them as `wv`.

        Raises TiedtoolsError for anything else.
        """
        keyed = getattr(source, "wv", source)
        if not hasattr(keyed, "index_to_key"):
            raise TiedtoolsError(f"expected gensim KeyedVectors, or a model with `wv`, found {type(source).__name__}")
        vectors = cls(list(keyed.index_to_key), np.array(keyed.vectors, np.float32))
        if "count" in getattr(keyed, "expandos", {}):
            vectors.counts = np.array(keyed.expandos["count"], np.int64)
        return vectors

    def get_index(self: Any, key: str, default: int | None = None) -> int:
        """Return the row of a word; of an unknown one, the default, if there is one."""
        return default if default is not None and key not in self.index else self.row(key)

    def get_vector(self: Any, key: str, norm: bool = False) -> np.ndarray:
        """Return the vector (E,) of a word; norm: at length 1."""
        return unit(self[[key]])[0] if norm else self[key]

    def get_normed_vectors(self: Any) -> np.ndarray:
        """Return the matrix with rows of length 1, float32 (V, E)."""
        return unit(self.matrix)

    def get_vecattr(self: Any, key: str, attr: str = "count") -> int:
        """Return the count of a word. Raises TiedtoolsError for another attribute, and if counts are unknown."""
        if attr != "count" or self.counts is None:
            raise TiedtoolsError(f"no {attr} is known for these vectors; models and manifests have counts")
        return int(self.counts[self.row(key)])

    def similar_by_vector(self: Any, vector: Any, topn: int = 10, restrict_vocab: int | None = None) -> Ranked:
        """List the `topn` words nearest to a term; see `most_similar`."""
        return self.most_similar([vector], topn=topn, restrict=restrict_vocab)

    similar_by_word = similar_by_key = similar_by_vector

    def distances(self: Any, word_or_vector: Any, other_words: Iterable[str] | None = ()) -> np.ndarray:
        """Return 1 - cosine of a term and each of the other words, or, without these, all words: float32 [n]."""
        words = [] if other_words is None else listed(other_words)
        return 1 - unit(self[words] if words else self.matrix) @ unit(self.vector_of(word_or_vector)[None])[0]

    def distance(self: Any, w1: Any, w2: str) -> float:
        """Return 1 - cosine of a term and a word."""
        return float(self.distances(w1, [w2])[0])

    def most_similar_to_given(self: Any, key1: Any, keys_list: Iterable[str]) -> str:
        """Return the word of a list that is nearest to a term. Raises ValueError if it is empty."""
        if not (keys := listed(keys_list)):
            raise Contradiction("the nearest of no words is undefined; give words that have vectors")
        return keys[int(np.argmin(self.distances(key1, keys)))]

    def closer_than(self: Any, key1: str, key2: str) -> list[Any]:
        """List the words nearer to `key1` than `key2` is, by row, without `key1`."""
        distances, others = self.distances(key1), {*self.index.values()} - {self.row(key1)}  # without repeated words
        return [self.words[row] for row in np.flatnonzero(distances < distances[self.row(key2)]) if row in others]

    def rank(self: Any, key1: str, key2: str) -> int:
        """Return the rank of `key2` among the neighbors of `key1`, from 1."""
        return len(self.closer_than(key1, key2)) + 1

    def get_mean_vector(
        self: Any, keys: Iterable[Any], weights: Any = None, pre_normalize: bool = True, post_normalize: bool = False,
        ignore_missing: bool = True
    ) -> np.ndarray:  # fmt: skip
        """Return the weighted mean (E,) of terms: the sum of weight times vector over the sum of absolute weights.

        pre_normalize, post_normalize  scale the vector of each word, or the mean, to length 1
        ignore_missing                 leave unknown words out instead of raising KeyError

        Raises ValueError if no term is left, or the number of weights differs.
        """
        keys = listed(keys)
        factors = np.ones(len(keys), np.float32) if weights is None else np.asarray(weights, np.float32)
        if factors.shape != (len(keys),):
            what = f"{counted(factors.size, 'weight')} for {counted(len(keys), 'word')}"
            raise Contradiction(f"{what}; give a weight per word")
        known = [k for k, key in enumerate(keys) if not (ignore_missing and isinstance(key, str)) or key in self.index]
        if not known:
            raise Contradiction("the mean of no words is undefined; give words that have vectors")
        rows = np.stack([self.vector_of(keys[k]) for k in known])
        words = np.array([isinstance(keys[k], str) for k in known]) & bool(pre_normalize)
        rows[words] = unit(rows[words])
        mean = factors[known] @ rows / (np.abs(factors[known]).sum() or 1)
        return unit(mean[None])[0] if post_normalize else mean

    def n_similarity(self: Any, ws1: Iterable[Any], ws2: Iterable[Any]) -> float:
        """Return the cosine of the mean vectors of two lists of words; unknown words are left out."""
        a, b = (self.get_mean_vector(words, pre_normalize=False, post_normalize=True) for words in (ws1, ws2))
        return float(a @ b)

    def doesnt_match(self: Any, words: Iterable[str]) -> str:
        """Return the word that is farthest from the mean of the words' unit vectors."""
        words = listed(words)
        return words[int(np.argmax(self.distances(self.get_mean_vector(words, ignore_missing=False), words)))]

    def save_word2vec_format(self: Any, fname: Path, fvocab: None = None, binary: bool = False) -> None:
        """Write word2vec's text or binary format, as `write` does. Raises TypeError for `fvocab`."""
        if fvocab is not None:
            raise Mistyped("`fvocab` is not written; omit it, and write `words` and `counts`")
        self.write(fname, "binary" if binary else "text")

    @classmethod
    def load(
        cls: Any, path: Path, format: str | None = None, errors: str = "strict", skip_bad: bool | None = False,
        mmap: str | None = None,
    ) -> Any:  # fmt: skip
        """Read Vectors, as `read` does; `mmap` is ignored: .npy and .safetensors files are mapped."""
        return cls.read(path, format, errors, skip_bad)

    @classmethod
    def load_word2vec_format(
        cls: Any, fname: Path, fvocab: Path | None = None, binary: bool = False, encoding: str = "utf8",
        unicode_errors: str = "strict", limit: int | None = None, *, no_header: bool = False
    ) -> Any:  # fmt: skip
        """Read word2vec's text or binary format, and return at most the first `limit` vectors (0: all).

        fvocab     file of the counts of the words, as word2vec writes it
        no_header  whether the first line of the text is a vector, as in GloVe's files
        """
        one_of("encoding", encoding.lower().replace("_", "-"), ("utf8", "utf-8"))
        if binary and no_header:
            raise Contradiction("`no_header` is for text; omit `binary`")
        vectors = cls.read(fname, "binary" if binary else "glove" if no_header else "text", unicode_errors)
        if fvocab is not None:
            vectors.counts = word_counts(os.fspath(fname), vectors.words, os.fspath(fvocab))
        return vectors[: checked("limit", limit, int | None, Range(0)) or None]
