"""What all training has in common that continues from an earlier model or from earlier vectors."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.base.settings import Continuation
from tiedtools.files import digests
from tiedtools.text.sources import counted
from tiedtools.text.vocab import END, UNK, Vocab


class Source(NamedTuple):
    """What to continue from: path, Vocab with counts (0 if unknown), parameters by name, settings of training.

    rows  function that returns the rows of buckets of n-grams, float32 [n, m], or None
    """

    path: str
    vocab: Vocab
    arrays: dict[str, np.ndarray]
    settings: dict[str, Any]
    rows: Any = None


def require_same(source: Source, settings: dict[str, Any], names: Iterable[str], remedy: str = "") -> None:
    """Raise Contradiction if `settings` has another value than the Source for one of these names.

    remedy  what to do; by default, use the setting of the Source
    """
    for name in names:
        now = settings.get(name, source.settings.get(name))
        was = source.settings.get(name, now)
        if was != now:
            if was is None or name == "tying" and source.settings.get("subwords"):  # `reuse` ties subwords
                raise Contradiction(f"`{name}={now}` does not apply to {source.path}; {remedy or 'omit it'}")
            raise Contradiction(f"`{name}={now}` differs from that of {source.path}; {remedy or f'use `{name}={was}`'}")


def rows_of(known: Vocab, vocab: Vocab) -> np.ndarray:
    """Return the IDs in `vocab` of all words of the Vocab `known`, which it must have."""
    index = {word: row for row, word in enumerate(vocab.words)}
    return np.array([index[word] for word in known.words])


def identity(path: str, continuation: Continuation) -> dict[str, Any]:
    """Return the options that must match for a run that continues from the file `path` to resume."""
    return dict(init_from=digests.of_file(path)["sha256"], freeze=continuation.freeze, grow=continuation.grow)


def log_start(source: Source, vocab: Vocab, counts: Any) -> None:
    """Log how many words are known and new, and what is missing in the source. counts: of the text, int64 [V]."""
    known, new = len(source.vocab), len(vocab) - len(source.vocab)
    occurs = counts[rows_of(source.vocab, vocab)] > 0
    seen = sum(there for word, there in zip(source.vocab.words, occurs.tolist()) if word not in (END, UNK))
    log.info(f"{source.path}: {counted(known, 'word')}, {seen:,} of them in the text, and {counted(new, 'new word')}")
    if "tying" not in source.settings:
        log.info(f"{source.path}: has only input vectors: untied output vectors start at 0, and counts are of the text")
    if not seen:
        log.warning(f"{source.path}: none of its words is in the text; are language and case the same?")
