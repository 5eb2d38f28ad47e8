"""Common base of the language-model trainers: texts, the training loop, and the final test."""

from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import finite, in_digits, log, perplexity
from tiedtools.base.settings import LmReading
from tiedtools.runs.trainer import Trainer
from tiedtools.text.lmtext import LmText
from tiedtools.text.vocab import UNK
from tiedtools.training import scoring
from tiedtools.training.fit import Fit, Hooks
from tiedtools.training.schedules import Training


class LmTrainer(Trainer):
    """Trains a language model; `reading` holds keyword arguments of LmText.read.

    schedule  a schedules.Training

    A subclass defines:

    Batches   class of the model's batches, with memory(config, words)
    hooks     the fit.Hooks
    samples   number of dropout-mask samples to average over in the test; 0: no dropout
    """

    Batches: Any
    hooks = Hooks()
    readers = LmReading
    samples = 0

    def __init__(self, config: Any, schedule: Training, *texts_and_files: Any, **options: Any) -> None:
        super().__init__(config, *texts_and_files, **options)
        self.schedule = schedule

    @staticmethod
    def read_source(path: str) -> Any:
        """Return the Source in a file to continue from."""
        raise Contradiction("`init_from` is for models of `tiedtools lm`; use `tiedtools rnnlm -rnnlm FILE`")

    def read(self) -> tuple[LmText, dict[str, int]]:
        text = self.text = LmText.read(self.raw(self.texts), **self.raw_reading())
        texts = {"train": text.train, "valid": text.valid, "test": text.test}
        tokens = {name: ids.size for name, ids in texts.items() if ids is not None}
        sizes = ", ".join(f"{name} {size:,}" for name, size in tokens.items())
        words, unknown = f"vocabulary of {len(text.vocab):,} words", ""
        if UNK in text.vocab.words:
            name, ids = ("train", text.train) if text.valid is None else ("valid", text.valid)
            share = (ids == text.vocab.words.index(UNK)).mean()
            unknown = f"; perplexity counts `{UNK}`, {share:.1%} of {name}, as a word"
        log.info(f"text: {sizes} tokens including line ends; {words}{unknown}")
        return text, tokens

    def memory(self, text: LmText) -> int:
        batches = self.Batches.memory(self.config, text.train.size)
        return super().memory(text) + batches + scoring.memory(text.valid, text.test)

    def begin(self, model: Any, text: LmText, resume: bool) -> Fit:
        files = self.files
        saving = files.checkpoint, files.checkpoint_minutes, resume
        return Fit(model, text.train, text.valid, self.schedule, *saving, self.hooks)

    def finish(self, run: Fit) -> dict[str, Any]:
        test, ppl = self.text.test, None
        if test is not None:
            loss = -float(scoring.evaluate(run.model, test, 1, samples=self.samples).mean())
            ppl = perplexity(loss)
            log.info(f"test ppl {in_digits(ppl)} on {(test >= 0).sum():,} tokens, model of epoch {run.best_epoch}")
        return finite(dict(best_epoch=run.best_epoch, test_ppl=ppl))
