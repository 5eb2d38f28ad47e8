"""Training of RNN language models from text files, optionally with a model file as in the program rnnlm."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.base.settings import SPLIT
from tiedtools.models.lmtrainer import LmTrainer
from tiedtools.models.rnnlm.batches import Pieces
from tiedtools.models.rnnlm.config import ENDLESS, RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.program import ModelFile, holds
from tiedtools.runs.files import Writer
from tiedtools.text.lmtext import LmText
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training


class RnnlmTrainer(LmTrainer):
    """Trains an Rnnlm.

    rnnlm          path of a model file, written after each epoch; training continues from the model in it, if any
    anti_kasparek  also write the model file every this many words; 0: never
    one_iter       train for a single epoch, without validation
    lr             learning rate to continue with; None: the learning rate in the model file
    reads          paths that are read after training

    file           the ModelFile, or None
    restored       the model read from the file, or None; `config` is then the model's
    """

    Model, Batches = Rnnlm, Pieces
    file: Any = None
    restored: Any = None
    advice = "lower `hidden`, `direct`, `doc_dim` or `max_vocab`, or raise `min_count`"

    def __init__(
        self, config: RnnlmConfig, schedule: Training, *texts_and_files: Any, rnnlm: str | None = None,
        anti_kasparek: int = 0, one_iter: bool = False, lr: float | None = None, reads: Iterable[str] = (),
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(config, schedule, *texts_and_files, **options)
        self.one_iter, self.lr, self.reads = one_iter, lr, list(reads)
        self.reading |= {"keep_oovs": True}
        if one_iter:  # rnnlm ends before it would change the rate
            self.reading |= {"valid": None, "valid_share": 0}
            self.schedule = dataclasses.replace(schedule, schedule="constant")
        elif schedule.epochs == ENDLESS:
            validated = self.reading.get("valid") is not None or self.reading.get("valid_share") != 0
            if not validated or schedule.schedule != "halving":
                reason = f"with `schedule={schedule.schedule!r}`" if validated else "without validation"
                raise Contradiction(f"{reason}, the number of epochs must be set: give `epochs`")
        if rnnlm is not None:
            texts = {"train": "" if self.texts[0] == "-" else self.texts[0], "valid": self.reading.get("valid")}
            self.hooks = self.file = ModelFile(rnnlm, self.files.binary, anti_kasparek, **texts)
            self.targets["rnnlm"], self.others = rnnlm, (self.file.log,)
            self.restored = self.file.restore(config)
            if self.restored:
                self.config, self.origin = self.restored.config, rnnlm
                self.reading |= {"vocab": self.restored.vocab, "read_vocab": None}
            if not holds(self.config):
                reason = "rnnlm's format supports neither document vectors nor a learned start"
                log.info(f"{rnnlm}: written as .npz, since {reason}")
            elif lost := [f"`{name}`" for name in SPLIT if self.reading.get(name)]:
                log.warning(f"{rnnlm}: rnnlm's format does not store {' and '.join(lost)}; `save_model` does")
        self.width = self.config.hidden

    def settings(self) -> dict[str, Any]:
        return super().settings() | (dict(epochs=1) if self.one_iter else {})

    def memory(self, text: LmText) -> int:
        allocated = self.restored.params.values.nbytes if self.restored else 0
        return super().memory(text) - allocated

    def copies(self, words: int) -> int:
        return max(super().copies(words), 12 * words * self.width * bool(self.file))

    def make(self, text: LmText) -> Rnnlm:
        if self.file and text.valid is not None:
            open(self.file.log, "a").close()  # fails before training if it cannot be written
        return self.restored or super().make(text)

    def named(self, model: Rnnlm) -> str:
        document = f"document vector of {self.config.doc_dim}, " if self.config.doc_dim else ""
        return f"RNN, hidden layer of {self.config.hidden}, {document}{len(model.starts) - 1} classes"

    def begin(self, model: Rnnlm, text: LmText, resume: bool) -> Fit:
        run = super().begin(model, text, resume)
        if self.file:
            self.file.begin(run, self.run_files, resume, self.lr)
        if self.one_iter:
            run.epochs = run.earlier + 1
        if self.restored and not resume and run.epoch >= run.epochs:
            log.info(f"{self.origin}: {run.standing}")
        return run

    def writers(self, model: Rnnlm) -> dict[str, Writer]:
        return super().writers(model) | {"rnnlm": lambda file: self.file.write(file, model)}
