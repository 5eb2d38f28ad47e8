"""Suggest a command or option for an unknown name, by names in other programs or by spelling."""

import difflib
import re
from collections.abc import Iterable

# Suggestion -> other names for it. A sentence is shown unchanged.
COMMANDS = {
    "Use w2v (word vectors), lm (language models), or nmt (translation models).": "train fit learn",
    "Use tiedtools COMMAND --help.": "help man usage",
    "phrases": "word2phrase collocations",
    "w2v": "word2vec fasttext gensim cbow embeddings",
    "w2v --cbow 0": "skipgram skip-gram",
    "lm": "language-model rnn",
    "lm --cell gru": "gru",
    "lm --cell rhn": "rhn",
    "nn": "neighbors neighbours nearest most-similar distance knn",
    "analogy": "analogies word-analogy",
    "eval-analogy": "compute-accuracy evaluate-word-analogies",
    "eval-sim": "evaluate eval evaluate-word-pairs similarity",
    "ppl": "perplexity score test query ngram",
    "predict": "next complete",
    "generate": "sample gen",
    "docvec": "doc2vec print-sentence-vectors sentence-vectors",
    "convert --words FILE": "print-word-vectors",
    "convert": "export save",
    "vocab": "vocabulary count ngram-count",
    "data get": "download get",
}
OPTIONS = {
    "Join phrases in the text with `tiedtools phrases` first.": "phrases bigrams",
    "Only `tiedtools lstm --subwords` and `lm --subwords` learn vectors of subwords.": "minn maxn bucket",
    "--size": "vector-size dim dims dimension embedding-size embedding-dim emsize d",
    "--hidden": "nhid hidden-size",
    "--layers": "nlayers num-layers",
    "--steps": "bptt seq-len",
    "--window": "ws window-size",
    "--epochs": "epoch iter iterations niter",
    "--lr": "learning-rate alpha rate",
    "--min-alpha": "min-learning-rate",
    "--negative": "neg negatives negative-samples",
    "--hs": "loss hierarchical-softmax",
    "--sample": "t subsample",
    "--cbow 0": "sg skipgram skip-gram",
    "--cbow-sum": "cbow-mean",
    "--fixed-window": "shrink-windows",
    "--min-count": "min-freq",
    "--max-vocab": "max-final-vocab max-vocab-size vocab-size",
    "--read-vocab": "vocab vocabulary vocab-file",
    "--threads": "workers thread jobs j",
    "--batch": "batch-size",
    "--train": "input corpus corpus-file i",
    "--valid": "validation dev",
    "--output": "o out",
    "--save-model": "save model m",
    "--tie": "tied tie-weights",
    "--top": "topn n k number",
    "--restrict": "restrict-vocab limit",
}


def hint(typed: str, names: Iterable[str], table: dict[str, str]) -> str:
    """Return " " and a sentence that suggests one of `names` (without dashes) for an unknown name, or ""."""
    dashes, name = "--" * typed.startswith("-"), re.sub("(?<=[a-z])(?=[A-Z])", "-", typed.strip("-"))
    name = name.lower().replace("_", "-")
    available = [key for key in table if key.endswith(".") or key.split()[0].strip("-") in names]
    aliases = {other: key for key in available for other in table[key].split()}
    for close in [name] if name in aliases else difflib.get_close_matches(name, [*names, *aliases], 1):
        suggestion = dashes + close if close in names else aliases[close]
        return f" {suggestion}" if suggestion.endswith(".") else f" Did you mean {suggestion!r}?"
    return ""
