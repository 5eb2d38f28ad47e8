"""Translation models from Python: training, translation, and scoring."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tiedtools.api.estimator import BATCH, COUNT, OF_FILES, Estimator, refuse_idle
from tiedtools.base.settings import Range, checked, documented
from tiedtools.evaluation.lexicon import lines
from tiedtools.models.translation.config import DEFAULTS, KINDS, SITES, VECTORS, configure
from tiedtools.network.config import documented_defaults
from tiedtools.runs.progress import Callback, Progress
from tiedtools.text.sentences import sources

if TYPE_CHECKING:
    from tiedtools.models.translation.interpreter import Interpreter, Translation


@documented(*KINDS, **DEFAULTS, **documented_defaults(SITES))
class Translator(Estimator):
    """A translation model: attention over a bidirectional GRU encoder, with untied or tied embeddings.

    The settings are the options of `tiedtools nmt`, with underscores.

    Raises Contradiction for settings that are unknown, of a wrong type, out of range, or contradictory.

    >>> model = Translator(tie="all", bpe=10_000).fit("train.en", "train.de", "valid.en", "valid.de")
    >>> list(model.translate("test.en"))
    """

    sides = VECTORS

    def __init__(self, **settings: Any) -> None:
        super().__init__(configure, settings)

    def trainer(
        self, source: Any, target: Any, valid_source: Any = None, valid_target: Any = None,
        no_memory_check: bool = False, **outputs: Any
    ) -> Any:  # fmt: skip
        """Return the Trainer that `fit` runs; arguments as for `fit`."""
        from tiedtools.models.translation.trainer import TranslationTrainer

        config, training, reading = self.configured
        valid = {"valid_source": valid_source, "valid_target": valid_target}
        reading = reading | {name: sources(text) for name, text in valid.items() if text is not None}
        reading |= dict(no_memory_check=no_memory_check)
        return TranslationTrainer(config, training, [sources(source), sources(target)], *self.files(outputs), **reading)

    def fit(
        self, source: Any, target: Any, valid_source: Any = None, valid_target: Any = None, *,
        progress: bool | Progress | None = None, on_epoch: Callback | None = None, on_timer: Callback | None = None,
        timer_seconds: float = 10.0, no_memory_check: bool = False, **outputs: Any
    ) -> Translator:  # fmt: skip
        """Train a new model on a text and its translation, line by line, and return this object.

        A model that is already trained is replaced, and a warning says so; `checkpoint` and `resume` continue a run.

        source, target              each a path, a list of paths, an open file, or an iterable of sentences (lists of
                                    words), read once
        valid_source, valid_target  validation text, likewise; without it, the result is the model of the last epoch

        The other arguments and the errors are as for LanguageModel.fit. `on_epoch` also receives valid_bleu.
        """
        trainer = self.trainer(source, target, valid_source, valid_target, no_memory_check, **outputs)
        refuse_idle(outputs, **OF_FILES, write="output")
        return self.run(trainer, progress, on_epoch, on_timer, timer_seconds)

    def interpreter(self, batch: int, normalize: bool, align: bool = False, **search: Any) -> Interpreter:
        """Return the Interpreter of the model; arguments as for `translations`."""
        from tiedtools.models.translation.interpreter import Interpreter

        return Interpreter(self.model, checked("batch", batch, int, BATCH), normalize, align, **search)

    def translations(
        self, sentences: Any, *, beam: int = 5, normalize: bool = False, max_length: int | None = None,
        no_unk: bool = False, align: bool = False, batch: int = 64
    ) -> Iterator[list[Translation]]:  # fmt: skip
        """Yield the translations that beam search finds for each sentence, best first, in order.

        sentences   a source as for `fit`; of a field of records: (text.split() for text in documents(path, field))
        beam        beam size; 1: greedy search
        normalize   rank by log probability per word or symbol, `</s>` included
        max_length  maximum length of a translation in words or symbols; None: 200, or twice the length of the longest
                    sentence translated at the same time if that is more
        no_unk      never write `<unk>`
        align       also return attention weights: `weights` [T, S] of the symbols `target` and `source`
        batch       number of sentences translated at a time; 1: each as soon as it is read

        A Translation has `text`, `logprob` (base 10; per symbol if `normalize`), `source`, `target`, and `weights`.
        """
        limits = checked("beam", beam, int, Range(1, 1000)), checked("max_length", max_length, int | None, COUNT)
        search = dict(zip(("beam", "max_length"), limits), banned=1 if no_unk else None)
        lines_read = itertools.chain.from_iterable(lines(text) for text in self.raw(sentences, unit="line"))
        return self.interpreter(batch, normalize, align, **search).translations(lines_read)

    def translate(self, sentences: Any, **options: Any) -> Iterator[str]:
        """Yield the best translation of each sentence, words separated by spaces; arguments as for `translations`."""
        return (best.text for best, *_ in self.translations(sentences, **options))

    def score(self, source: Any, target: Any, *, normalize: bool = False, batch: int = 64) -> np.ndarray:
        """Return the log10 probability of each sentence of `target` as a translation of `source`, float64 [n].

        normalize  return log probabilities per word or symbol, `</s>` included

        Raises TiedtoolsError if the numbers of sentences differ.
        """
        from tiedtools.models.translation.interpreter import side_by_side

        read = lambda side, **how: itertools.chain.from_iterable(map(lines, self.raw(side, unit="line", **how)))
        pairs = side_by_side(read(source), read(target, phrases=None), ("source", "target"))
        return np.fromiter((t.logprob for t in self.interpreter(batch, normalize).scores(pairs)), np.float64)
