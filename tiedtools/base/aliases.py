"""Names of other programs for settings and methods: accepted from Python, or answered by the name to use."""

import difflib
from collections.abc import Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tiedtools.base.errors import Mistyped, Renamed

NOT = {0: True, 1: False}  # as True == 1, also of True and False
# Option -> (its setting, which has another name, {value of the option: value of the setting}). Python takes them, too.
SHORTCUTS: dict[str, tuple[str, dict[Any, Any]]] = {
    "tie": ("tying", {True: "tied", False: "untied"}),
    "tie_signs": ("tying", {True: "signs"}),
    "tie_linear": ("tying", {True: "linear"}),
    "no_output_bias": ("output_bias", {True: False}),
    "cbow": ("architecture", {1: "cbow", 0: "skipgram"}),
}
NAMES = {"vector_size": "size", "workers": "threads", "iter": "epochs", "alpha": "lr", "learning_rate": "lr"}
ALIASES: dict[str, tuple[str, dict[Any, Any]]] = {  # accepted name -> (setting, {value: value of the setting})
    **{name: (setting, {}) for name, setting in NAMES.items()},
    **SHORTCUTS,
    "sg": ("architecture", {0: "cbow", 1: "skipgram"}),
    "architecture": ("architecture", {"sg": "skipgram", "skip-gram": "skipgram"}),
    "hs": ("hs", {0: False, 1: True}),
    "cbow_mean": ("cbow_sum", NOT),
    "shrink_windows": ("fixed_window", NOT),
    "tying": ("tying", {"tied+L": "linear"}),
}
UNAVAILABLE = {  # setting of gensim -> what to do
    "callbacks": "give functions to `fit` as `on_epoch` and `on_timer`",
    "compute_loss": "omit it; after `fit`, `history` has the loss of each epoch",
    "max_final_vocab": "set `max_vocab`, larger by 1 for `</s>`",
    **dict.fromkeys(["batch_words", "comment", "hashfxn", "null_word", "sorted_vocab"], "omit it"),
    "trim_rule": "list the words to keep and their counts in a file, `read_vocab` of `fit`",
}
METHODS = {  # method of gensim's models -> what to do
    "build_vocab": "`fit(text)`, which counts words first; `read_vocab` of `fit` reads a vocabulary",
    "get_latest_training_loss": '`history[-1]["loss"]`',
    **{name: f"`wv.{name}`" for name in ("most_similar", "similarity", "doesnt_match", "save_word2vec_format")},
    "predict_output_word": '`word_vectors("out")`, the output vectors',
    "train": '`fit(text)`; `fit(text, init_from="model.npz", grow=True)` continues from a model that `save` wrote',
}
OPTIONS = {  # option -> names that are not accepted, but suggest it. A sentence is shown unchanged.
    "Learn phrases with `tiedtools phrases` first, and give the list with --phrases.": "bigrams",
    "Models with a compression layer are not available.": "compression",
    "--min-n": "minn", "--max-n": "maxn", "--buckets": "bucket", "--init-from": "pretrainedvectors inputmodel",
    "--size": "vector-size dim dims dimension embedding-size embedding-dim emsize d",
    "--hidden": "nhid hidden-size", "--layers": "nlayers num-layers", "--steps": "bptt seq-len",
    "--window": "ws window-size", "--epochs": "epoch iter iterations niter", "--lr": "learning-rate alpha rate",
    "--min-alpha": "min-learning-rate", "--negative": "neg negatives negative-samples",
    "--hs": "loss hierarchical-softmax", "--sample": "t subsample", "--cbow 0": "sg skipgram skip-gram",
    "--cbow-sum": "cbow-mean", "--fixed-window": "shrink-windows", "--min-count": "min-freq",
    "--max-vocab": "max-final-vocab max-vocab-size vocab-size", "--read-vocab": "vocab vocabulary vocab-file",
    "--threads": "workers thread jobs j", "--batch": "batch-size", "--train": "input corpus corpus-file i",
    "--valid": "validation dev", "--output": "o out", "--save-model": "save model m", "--tie": "tied tie-weights tying",
    "--debug": "verbose verbosity", "--top": "topn n k number", "--restrict": "restrict-vocab limit",
}  # fmt: skip

COMMANDS = {  # command -> names that suggest it, likewise
    "Use w2v (word vectors), lm (language models), or nmt (translation models).": "train fit learn",
    "Use tiedtools COMMAND --help.": "help man usage",
    "phrases": "word2phrase collocations", "w2v": "word2vec gensim cbow embeddings", "w2v --cbow 0": "skip-gram",
    "w2v --preset fasttext": "fasttext skipgram", "convert --quantize": "quantize", "lm": "language-model rnn",
    "lm --cell gru": "gru", "lm --cell rhn": "rhn",
    "nn": "neighbors neighbours nearest most-similar distance knn", "analogy": "analogies word-analogy",
    "eval-analogy": "compute-accuracy evaluate-word-analogies",
    "eval-sim": "evaluate eval evaluate-word-pairs similarity", "ppl": "perplexity score test query ngram",
    "predict": "next complete", "generate": "sample gen", "docvec": "doc2vec print-sentence-vectors sentence-vectors",
    "convert --words FILE": "print-word-vectors", "convert": "export save", "vocab": "vocabulary count ngram-count",
    "data get": "download get",
}  # fmt: skip


def translated(settings: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return settings under their own names and values; `known` are the names of the settings of a model.

    Raises Mistyped if a setting is given under two names.
    """
    result, names = dict[str, Any](), dict[str, str]()
    for name, value in settings.items():
        setting, values = ALIASES.get(name, (name, {}))
        setting, values = (setting, values) if setting in known else (name, {})
        if value is False and True in values and False not in values:
            continue  # a flag that is not given
        if setting in result or setting != name and setting in settings:
            other = names.get(setting, setting)
            what = f"`{name}` and `{other}` both set" if other != setting else f"`{name}` is another name of"
            raise Mistyped(f"{what} `{setting}`{', which is also set' * (other == setting)}; omit one of them")
        names[setting] = name
        result[setting] = values.get(value, value) if isinstance(value, Hashable) else value
    return result


def closest(name: str, names: Collection[str], table: Mapping[str, str]) -> str:
    """Return the name, or the key of `table`, that an unknown name means, by another program or by spelling; or ""."""
    name = name.lower().replace("_", "-")
    available = [key for key in table if key.endswith(".") or key.split()[0].strip("-") in names]
    others = {other: key for key in available for other in table[key].split()}
    for close in [name] if name in others else difflib.get_close_matches(name, [*names, *others], 1):
        return close if close in names else others[close]
    return ""


def remedy(name: str, known: Collection[str]) -> str:
    """Return what to do about an unknown setting."""
    if name in UNAVAILABLE:
        return UNAVAILABLE[name]
    close = closest(name, [other.replace("_", "-") for other in known], OPTIONS)
    if close.endswith("."):
        return close
    close = close.strip("-").replace("-", "_")
    return f"did you mean `{close}`?" if close else f"choose from {', '.join(sorted(known))}"


class Renaming:
    """Mixin whose missing attributes, if another library has them, raise an error that says what to use.

    instead  name -> what to use
    """

    instead: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            kind = type(self).__name__
            if name in self.instead:
                raise Renamed(f"{kind} has no `{name}`; use {self.instead[name]}")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
