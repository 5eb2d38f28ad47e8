"""What `tiedtools lstm` and `tiedtools rnnlm` share: texts, the training loop, a test at the end."""

from typing import Any

import click

from tiedtools import interrupts
from tiedtools.cli.options import given
from tiedtools.cli.report import LmReport
from tiedtools.cli.trainer import Trainer
from tiedtools.figures import finite, in_digits, perplexity
from tiedtools.messages import log
from tiedtools.text.lmtext import LmText
from tiedtools.training import fit

READING = "valid", "test", "valid_share", "min_count", "max_vocab", "read_vocab", "errors"


class LmTrainer(Trainer):
    """Trains a language model; the options are those of LM_TEXT, too.

    Feed      what the model's `feed` gives: memory(config, words)
    reading   arguments of LmText.read
    between   as for fit.Fit
    samples   of dropout masks, to test with
    """

    Feed: Any
    between: Any = None
    samples = 0

    def __init__(self, ctx):
        super().__init__(ctx)
        if self.options["valid"] is not None and "valid_share" in given(ctx):
            raise click.UsageError("-valid and --valid-share are two ways to validate: choose one")
        self.reading = {name: self.options[name] for name in READING}

    @property
    def inputs(self):
        paths = (self.reading[name] for name in ("valid", "test", "read_vocab"))
        return [*self.texts, *(path for path in paths if path is not None)]

    def read(self):
        text = self.text = LmText.read(self.texts, **self.reading)
        tokens = {"train": text.train, "valid": text.valid, "test": text.test}
        tokens = {name: ids.size for name, ids in tokens.items() if ids is not None}
        told = ", ".join(f"{name} {size:,}" for name, size in tokens.items())
        log.info(f"text: {told} tokens with line ends; vocabulary of {len(text.vocab):,} words")
        return text, tokens

    def memory(self, text):
        feeding = self.Feed.memory(self.config, text.train.size)
        return super().memory(text) + feeding + fit.memory(text.valid, text.test)

    def begin(self, model, text, resume):
        checkpoint = self.options["checkpoint"]
        return fit.Fit(model, text.train, text.valid, self.schedule, checkpoint, resume, self.between)

    def report(self, figures):
        return LmReport(self.options["debug"], figures)

    def finish(self, run, report):
        model, test, ppl, figures = run.model, self.text.test, None, {}
        if test is not None:
            interrupts.check()  # a signal has come while outputs were written
            loss = -float(fit.evaluate(model, test, 1, samples=self.samples).mean())
            ppl = perplexity(loss)
            figures = finite(dict(test_ppl=ppl))
            log.info(f"test ppl {in_digits(ppl)}, {test.size:,} tokens, with the model of epoch {run.best_epoch}")
        seconds = round(run.elapsed, 3)
        report.write(best_epoch=run.best_epoch, test_ppl=ppl, params=model.n_params, seconds=seconds)
        return figures
