"""Training of recurrent language models from text files."""

from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lmtrainer import LmTrainer
from tiedtools.runs.trainer import BITS, TYING, refuse_twice
from tiedtools.text.lmtext import LmText
from tiedtools.text.subwords import Subwords
from tiedtools.training.schedules import Training
from tiedtools.training.windows import Windows


class LstmTrainer(LmTrainer):
    """Trains an LstmLM. Raises Contradiction if the model does not have the vectors to write."""

    Model, Batches = LstmLM, Windows
    advice = (
        "lower `size`, `hidden`, `batch`, `steps` or `max_vocab`, or raise `min_count`, or use `tying=tied` or"
        " `tying=linear`"
    )

    def __init__(self, config: LstmConfig, schedule: Training, *texts_and_files: Any, **options: Any) -> None:
        super().__init__(config, schedule, *texts_and_files, **options)
        self.width, self.samples = config.width, config.mc_samples
        refuse_twice(self.files.write, config.one_table)
        if self.files.write == "sum" and config.tying == "untied" and config.width != config.hidden:
            raise Contradiction(
                f"`write=sum`: input and output vectors have {config.width} and {config.hidden} dimensions,"
                " which cannot be added"
            )

    @property
    def inputs(self) -> list[Any]:
        segmentation = self.config.segmentation
        return super().inputs if segmentation is None else [*super().inputs, segmentation]

    def read(self) -> tuple[LmText, dict[str, int]]:
        text, tokens = super().read()
        c, vocab = self.config, text.vocab
        if c.subwords:
            vocab.subwords = Subwords.learn(c.subwords, vocab.words, c.language, c.segmentation, c.seed, c.atomic_unk)
            longest = vocab.subwords.table(vocab.words).shape[1]
            log.info(f"subwords: {len(vocab.subwords.units) - 1:,} {c.subwords}, at most {longest} in a word")
        return text, tokens

    def named(self, model: Any) -> str:
        c = self.config
        form = TYING[c.tying]
        if c.subwords:
            form = f"{c.subwords}, reuse {c.reuse}" + ", L" * (c.tying == "linear")
        cell = f"RHN of depth {c.depth}" if c.cell == "rhn" else c.cell.upper()
        widths = c.layer_widths or f"{c.layers} x {c.hidden}"
        return f"{cell}{BITS[c.precision]}, {form}, {widths}, embeddings of {c.width}"
