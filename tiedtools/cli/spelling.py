"""Spell settings as options: `drop_out=.5` is --drop-out .5; suggest a command or an option for an unknown name."""

import re
from collections.abc import Collection
from typing import Any

from tiedtools.base.aliases import closest

# Option -> (its setting, which has another name, {value of the option: value of the setting}).
SHORTCUTS: dict[str, tuple[str, dict[Any, Any]]] = {
    "tie": ("tying", {True: "tied", False: "untied"}),
    "tie_signs": ("tying", {True: "signs"}),
    "tie_linear": ("tying", {True: "linear"}),
    "no_output_bias": ("output_bias", {True: False}),
    "cbow": ("architecture", {1: "cbow", 0: "skipgram"}),
}


TYPED = {  # (setting, value) -> the same as typed on the command line
    (setting, str(meant)): f"--{'no-' * (value is False)}{name.replace('_', '-')}{f' {value}' * (type(value) is int)}"
    for name, (setting, values) in SHORTCUTS.items()
    for value, meant in values.items()
}
PHRASES = {("tying", "untied"): "neither --tie nor --tie-linear", ("output_bias", "True"): "an output bias"}
# Settings translated for every command, even one without these options.
OF_OTHERS = "resume", "save_model", "checkpoint", "log_json", "errors"


def spelled(message: str, command: Any) -> str:
    """Return `message` with backticked names of the click command's parameters replaced by their options."""
    names = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("-")}

    def translate(match: re.Match[str]) -> str:
        name, value = match[1], match[2] and match[2].strip("'")
        if name not in names and name not in OF_OTHERS:
            return (TYPED | PHRASES).get((name, value), match[0])
        return as_option(name, value, names.get(name))

    return re.sub(r"`(\w+)(?:=([^`]*))?`", translate, message)


def as_option(name: str, value: Any = None, option: str | None = None) -> str:
    """Return a setting as typed, with its value unless that is None; `option`: its option if it has another name."""
    return (option or f"--{name.replace('_', '-')}") + ("" if value is None else f" {value}")


def as_options(settings: dict[str, Any]) -> str:
    """Return settings, a dict by name, as typed on the command line."""
    typed = lambda name, value: (
        TYPED.get((name, value)) or as_option(name, f"{value:g}" if type(value) is float else value)
    )
    return " ".join(
        as_option(name if value else f"no_{name}") if isinstance(value, bool) else typed(name, value)
        for name, value in settings.items()
    )


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
