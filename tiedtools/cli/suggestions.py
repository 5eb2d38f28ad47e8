"""Suggest a command or option for an unknown name, by names in other programs or by spelling."""

import re
from collections.abc import Collection

from tiedtools.base.aliases import closest

# Suggestion -> other names for it. A sentence is shown unchanged.
COMMANDS = {
    "Use w2v (word vectors), lm (language models), or nmt (translation models).": "train fit learn",
    "Use tiedtools COMMAND --help.": "help man usage",
    "phrases": "word2phrase collocations", "w2v": "word2vec fasttext gensim cbow embeddings",
    "w2v --cbow 0": "skipgram skip-gram", "lm": "language-model rnn", "lm --cell gru": "gru", "lm --cell rhn": "rhn",
    "nn": "neighbors neighbours nearest most-similar distance knn", "analogy": "analogies word-analogy",
    "eval-analogy": "compute-accuracy evaluate-word-analogies",
    "eval-sim": "evaluate eval evaluate-word-pairs similarity", "ppl": "perplexity score test query ngram",
    "predict": "next complete", "generate": "sample gen", "docvec": "doc2vec print-sentence-vectors sentence-vectors",
    "convert --words FILE": "print-word-vectors", "convert": "export save", "vocab": "vocabulary count ngram-count",
    "data get": "download get",
}  # fmt: skip


def hint(typed: str, names: Collection[str], table: dict[str, str]) -> str:
    """Return " " and a sentence that suggests one of `names` (without dashes) for an unknown name, or ""."""
    name = re.sub("(?<=[a-z])(?=[A-Z])", "-", typed.strip("-"))
    close = closest(name, names, table)
    close = "--" * (typed.startswith("-") and close in names) + close
    return f" {close}" if close.endswith(".") else f" Did you mean {close!r}?" if close else ""
