"""Training of translation models from text files."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.models.translation import bleu
from tiedtools.models.translation.config import VECTORS, BitextReading, TranslationConfig
from tiedtools.models.translation.interpreter import text_bleu
from tiedtools.models.translation.model import Translator
from tiedtools.runs.trainer import BITS, Trainer, refuse_twice
from tiedtools.text.bitext import Bitext, Pair
from tiedtools.text.sources import counted
from tiedtools.training.batches import Lines, by_length
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training

POSITIONS = 1 << 15  # maximum positions in a batch of the validation text
TIED = {"none": "untied", "decoder": "decoder tied", "all": "three-way tied"}


def evaluate(model: Translator, pair: Pair, batch: int, between: Callable[[], object] = lambda: None) -> np.ndarray:
    """Return the log probabilities of the target words of a text, a bitext.Pair, float64 [words], in any order."""
    source, target, logprobs = Lines(pair.source), Lines(pair.target), []
    for rows in by_length(np.maximum(source.lengths, target.lengths), batch, POSITIONS):
        words = target.padded(rows)
        logprobs.append(model.score(source.padded(rows), words)[words >= 0])
        between()
    return np.concatenate(logprobs)


class TranslationTrainer(Trainer):
    """Trains a Translator; `texts` are two lists of paths, for source and target.

    schedule  a schedules.Training
    bleu      validate by BLEU as well; see config.BitextReading
    reading   other keyword arguments of Bitext.read; valid_source and valid_target are lists of paths or None

    Raises Contradiction if the validation text has only one side.
    """

    Model = Translator
    sides, readers = VECTORS, BitextReading
    advice = "lower `size`, `hidden`, `batch`, `max_length`, `bpe` or `max_vocab`, or use `tie=decoder` or `tie=all`"

    def __init__(
        self, config: TranslationConfig, schedule: Training, *texts_and_files: Any, bleu: bool = True, **options: Any
    ) -> None:
        super().__init__(config, *texts_and_files, **options)
        self.schedule, self.bleu, self.width = schedule, bleu, config.size
        sides = [self.reading.get(f"valid_{side}") for side in ("source", "target")]
        if (sides[0] is None) != (sides[1] is None):
            raise Contradiction("a validation text has two sides: give both `valid_source` and `valid_target`")
        self.validates = sides[0] is not None
        if self.validates and bleu and schedule.schedule == "halving":
            raise Contradiction("`schedule=halving` reverts to the lowest-loss model; use `bleu=False`")
        refuse_twice(self.files.write, config.tie != "none")

    def settings(self) -> dict[str, Any]:
        return super().settings() | dict(bleu=self.bleu)

    def read(self) -> tuple[Bitext, dict[str, int]]:
        if self.validates and self.bleu:
            bleu.bleu(["a"], [["a"]])  # fails now, not after an epoch, if sacrebleu is missing
        reading = self.raw_reading(unit="line")
        field = reading.pop("target_field", None) or self.reading.get("field")
        targets = self.texts[1], self.reading.get("valid_target")
        target, reading["valid_target"] = (self.raw(side, unit="line", field=field, phrases=None) for side in targets)
        source = self.raw(self.texts[0], unit="line")
        text = Bitext.read(source, target, joint=self.config.tie == "all", **reading)
        tokens = dict(source=text.train.source.size, target=text.train.target.size)
        if text.valid is not None:
            tokens |= dict(valid_source=text.valid.source.size, valid_target=text.valid.target.size)
        vocabs = f"vocabularies of {len(text.source_vocab):,} and {len(text.vocab):,} words"
        if self.config.tie == "all":
            vocabs = f"joint vocabulary of {len(text.vocab):,} words"
        sides = f"{tokens['source']:,} and {tokens['target']:,} tokens including line ends"
        log.info(f"text: {counted(text.train.lines, 'sentence pair')}, {sides}; {vocabs}")
        return text, tokens

    def memory(self, text: Bitext) -> int:
        vocabs = text.source_vocab, text.target_vocab
        tokens = sum(side.size for pair in (text.train, text.valid) for side in pair or ())
        copies = self.copies(max(map(len, vocabs)))
        longest = max(int(Lines(side).lengths.max()) for side in text.train) - 1  # without `</s>`
        config = dataclasses.replace(self.config, max_length=min(longest, self.config.max_length))
        return self.Model.memory(vocabs, config) + 12 * tokens + copies  # batches: 12 bytes per token

    def make(self, text: Bitext) -> Translator:
        return self.Model(text.source_vocab, text.target_vocab, self.config, codes=text.codes)

    def named(self, model: Translator) -> str:
        c = self.config
        return f"translation{BITS[c.precision]}, {TIED[c.tie]}, GRU of {c.hidden} units, embeddings of {c.size}"

    def begin(self, model: Translator, text: Bitext, resume: bool) -> Fit:
        files, valid, measure = self.files, text.valid, None
        if valid is not None and self.bleu:
            measure = lambda model, poll: text_bleu(model, valid.source, text.references or [], poll)
        saving = files.checkpoint, files.checkpoint_minutes, resume
        return Fit(model, text.train, valid, self.schedule, *saving, validate=evaluate, measure=measure)

    def finish(self, run: Fit) -> dict[str, Any]:
        return dict(best_epoch=run.best_epoch)
