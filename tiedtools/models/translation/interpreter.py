"""Translate lines with a translation model, and score existing translations, in batches of similar length."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.evaluation.lexicon import NEWLINE, Lexicon
from tiedtools.evaluation.perplexity import LN10, reject_nan
from tiedtools.models.translation import beam
from tiedtools.models.translation.bleu import bleu
from tiedtools.text.bitext import LONGEST, Segmenter
from tiedtools.text.sources import counted
from tiedtools.text.vocab import END
from tiedtools.training.batches import GROUP, Lines, by_length

BATCH = 64  # lines decoded together
Numbered = tuple[int, list[str]]  # number and words of a line
POSITIONS = 1 << 14  # positions of source or target in a batch, padding included; bounds memory


class Translation(NamedTuple):
    """A translation of a line.

    text     words separated by spaces
    logprob  base-10 log probability, `</s>` included; per symbol if normalized
    source   symbols of the line as the model reads it, with `</s>`: list of S str
    target   symbols of the translation, with `</s>`: list of T str
    weights  attention weights, float [T, S], or None
    """

    text: str
    logprob: float
    source: list[str]
    target: list[str]
    weights: Any = None

    def alignment(self) -> dict[str, Any]:
        """Return the symbols and the attention weights, with 4 decimals, as a JSON-serializable dict."""
        return dict(source=self.source, target=self.target, weights=self.weights.astype(float).round(4).tolist())


class Interpreter:
    """Translates and scores lines with a model; see beam.py for the model's methods.

    batch      lines decoded together; 1: each line as soon as it is read
    normalize  rank and score translations by log probability per symbol, `</s>` included
    align      return attention weights
    searching  keyword arguments of beam.search

    Words outside the vocabularies are read as `<unk>`. Only the first LONGEST symbols of a source line are read.
    """

    def __init__(
        self, model: Any, batch: int = BATCH, normalize: bool = False, align: bool = False, **searching: Any
    ) -> None:
        self.model, self.batch, self.normalize, self.align, self.searching = model, batch, normalize, align, searching
        self.segmenter = Segmenter(model.codes)
        self.source, self.target = Lexicon(model.source_vocab), Lexicon(model.target_vocab)

    @property
    def empty(self) -> Translation:
        """The translation of an empty line."""
        return Translation("", 0.0, [END], [END], np.ones((1, 1)) if self.align else None)

    def ids(self, words: list[str], lexicon: Lexicon) -> np.ndarray:
        """Return the ids of the words of a line, int32, with `</s>`."""
        return lexicon.ids(lexicon.codes([*self.segmenter.symbols(words), NEWLINE]))

    def read(self, number: int, words: list[str]) -> np.ndarray:
        """Return the ids of a source line; log a warning if it is too long."""
        ids = self.ids(words, self.source)
        if len(ids) > LONGEST + 1:
            log.warning(f"line {number:,}: has {len(ids) - 1:,} words or symbols; only the first {LONGEST:,} are read")
            ids = np.append(ids[:LONGEST], np.int32(0))
        return ids

    def translations(self, lines: Iterable[Numbered]) -> Iterator[list[Translation]]:
        """Yield the translations of each line, best first, in the order of the lines.

        The only translation of an empty line is empty, with score 0.
        """
        options = dict(self.searching, normalize=self.normalize, align=self.align)
        for chunk in self.chunks(lines):
            sources = [self.read(number, words) for number, words in chunk]
            for source, hypotheses in zip(sources, decode(self.model, sources, self.batch, **options)):
                yield [self.translation(source, h) for h in hypotheses] or [self.empty]

    def scores(self, pairs: Iterable[tuple[int, list[str], list[str]]]) -> Iterator[Translation]:
        """Yield the scored Translation of each of `pairs`, (number, words, translated words)."""
        for chunk in self.chunks(pairs):
            sources = [self.read(number, words) for number, words, _ in chunk]
            targets = [self.ids(words, self.target) for *_, words in chunk]
            yield from self.score(sources, targets)

    def score(self, sources: list[np.ndarray], targets: list[np.ndarray]) -> list[Translation]:
        """Return the scored Translations for the ids of source lines and of their translations."""
        translations: list[Any] = [None] * len(sources)
        for rows in by_length([max(len(s), len(t)) for s, t in zip(sources, targets)], self.batch, POSITIONS):
            batch = [targets[k] for k in rows]
            logprobs, weights = beam.force(self.model, stack([sources[k] for k in rows]), stack(batch), self.align)
            sums = reject_nan(logprobs).sum(0, dtype=float)
            for b, (k, ids) in enumerate(zip(rows, batch)):
                attention = weights[: len(ids), b] if self.align else None
                hypothesis = beam.Hypothesis(ids[:-1], float(sums[b]), attention)
                empty = len(sources[k]) == len(ids) == 1
                translations[k] = self.empty if empty else self.translation(sources[k], hypothesis)
        return translations

    def chunks(self, lines: Iterable[Any]) -> Iterator[list[Any]]:
        """Yield lists of lines, each to be sorted by length and cut into batches."""
        lines = iter(lines)
        while chunk := list(itertools.islice(lines, GROUP * self.batch if self.batch > 1 else 1)):
            yield chunk

    def translation(self, source: np.ndarray, hypothesis: beam.Hypothesis) -> Translation:
        """Return the Translation for a Hypothesis and the ids of its source line."""
        inputs = [self.source.words[k] for k in source]
        words = [self.target.words[k] for k in hypothesis.ids]
        weights = None if hypothesis.weights is None else hypothesis.weights[:, : len(source)]
        score = hypothesis.score(self.normalize) / LN10
        return Translation(self.segmenter.restore(words), score, inputs, [*words, END], weights)


def decode(
    model: Any, sources: list[np.ndarray], batch: int = BATCH, between: Callable[[], object] = lambda: None,
    **options: Any,
) -> list[list[Any]]:  # fmt: skip
    """Return the hypotheses of beam.search for each source, in order, none for an empty line.

    sources  list of int32 ids with `</s>`; between: called after each batch
    """
    results: list[Any] = [[] for _ in sources]
    full = np.flatnonzero([len(ids) > 1 for ids in sources])
    for order in by_length([len(sources[k]) for k in full], batch, POSITIONS):
        rows = full[order]
        for k, hypotheses in zip(rows, beam.search(model, stack([sources[k] for k in rows]), **options)):
            results[k] = hypotheses
        between()
    return results


def stack(lines: list[np.ndarray]) -> np.ndarray:
    """Return lines of ids with `</s>` as int32 [S, B], padded with -1."""
    return Lines(np.concatenate(lines)).padded(np.arange(len(lines)))


def text_bleu(
    model: Any, ids: np.ndarray, references: list[str], between: Callable[[], object] = lambda: None
) -> float:
    """Return the BLEU, in percent, of the greedy translations of a text.

    ids         int32 ids of the source, 0 at the end of each line; empty lines are translated as empty lines
    references  one per line
    """
    sources, words = np.split(ids, np.flatnonzero(ids == 0)[:-1] + 1), model.target_vocab.words
    found = decode(model, sources, between=between, beam=1)
    best = [[words[word] for hypothesis in hypotheses[:1] for word in hypothesis.ids] for hypotheses in found]
    return bleu([*map(Segmenter(model.codes).restore, best)], [references]).score


def side_by_side(
    sources: Iterable[Numbered], targets: Iterable[Numbered], names: Sequence[str]
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (number, words, words) from two texts.

    Raises TiedtoolsError if one text has fewer lines; `names`: the names of both texts.
    """
    for number, (source, target) in enumerate(itertools.zip_longest(sources, targets), 1):
        if source is None or target is None:
            short, long = names if source is None else names[::-1]
            what = f"has {counted(number - 1, 'line')}, fewer than {long}"
            raise TiedtoolsError(f"{short}: {what}; line N must be the translation of line N")
        yield number, source[1], target[1]
