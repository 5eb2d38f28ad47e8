"""Training of recurrent language models from text files, also from an earlier model."""

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.base.settings import SPLIT, LmContinuation
from tiedtools.models.continuing import Source, identity, log_start, require_same, rows_of
from tiedtools.models.lm.config import SHAPE, LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lmtrainer import LmTrainer
from tiedtools.runs.trainer import BITS, TYING, refuse_twice
from tiedtools.text.lmtext import LmText
from tiedtools.text.subwords import Subwords
from tiedtools.training.batches import Windows
from tiedtools.training.schedules import Training


def continued(source: Source, vocab: Any, config: LstmConfig, continuation: LmContinuation) -> LstmLM:
    """Return a model for a Vocab with all words and subwords of a Source, whose parameters it has; others are random.

    If new words have more syllables than the known ones, the projection has random rows for these positions.
    """
    model = LstmLM(vocab, config, frozen=continuation.freeze is not None)
    words, units = rows_of(source.vocab, vocab), None
    if config.subwords:
        units = np.array([vocab.subwords.index[unit] - 1 for unit in source.vocab.subwords.units[1:]])
    for name, array in model.params.owners():
        known = source.arrays[name]
        if name in ("emb_in", "emb_out", "emb_out.b"):
            array[words] = known
        elif name.endswith(".emb.E"):
            array[units] = known
        else:
            array[: len(known)] = known
    model.params.constrain()
    model.continued = identity(source.path, continuation)
    return model


class LstmTrainer(LmTrainer):
    """Trains an LstmLM.

    continuation  the LmContinuation, if there is a source
    source        the Source to continue from, until the model is made; None: a new model

    Raises Contradiction if the model does not have the vectors to write, or cannot be continued.
    """

    Model, Batches = LstmLM, Windows
    advice = (
        "lower `size`, `hidden`, `batch`, `steps` or `max_vocab`, or raise `min_count`, or use `tying=tied` or"
        " `tying=linear`"
    )

    def __init__(
        self, config: LstmConfig, schedule: Training, *texts_and_files: Any, continuation: Any = None,
        source: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(config, schedule, *texts_and_files, **options)
        self.width, self.samples = config.width, config.mc_samples
        refuse_twice(self.files.write, config.one_table)
        if self.files.write == "sum" and config.tying == "untied" and config.width != config.hidden:
            problem = f"have {config.width} and {config.hidden} dimensions, which cannot be added"
            raise Contradiction(f"`write=sum`: input and output vectors {problem}")
        self.continuation, self.source = continuation, source
        if source:
            require_same(source, vars(config), SHAPE)
            if continuation.freeze and config.unit_embeddings and not source.settings["unit_embeddings"]:
                raise Contradiction("`unit_embeddings` would change the vectors that `freeze` keeps; omit one")
            if self.reading.get("read_vocab"):
                raise Contradiction("`init_from` does not work with `read_vocab`; omit one")
            self.also = (continuation,)
            self.origin, self.reading = source.path, self.reading | dict(known=source.vocab, grow=continuation.grow)
        self.reads = [*filter(None, (config.segmentation, self.origin))]

    @staticmethod
    def read_source(path: str) -> Source:
        """Read a language model to continue from. Raises TiedtoolsError for other files, such as checkpoints."""
        model = LstmLM.load(path)
        kinds = LstmConfig, Training
        names = {field.name for kind in kinds for field in fields(kind)} - {"seed", "threads", "precision"}
        settings = asdict(model.config) | (model.settings or {}) | {"segmentation": None}
        settings = {name: value for name, value in settings.items() if name in names | {*SPLIT}}
        return Source(path, model.vocab, dict(model.params.owners()), settings)

    def read(self) -> tuple[LmText, dict[str, int]]:
        text, tokens = super().read()
        c, vocab = self.config, text.vocab
        if self.source:
            log_start(self.source, vocab, np.bincount(text.train, minlength=len(vocab)))
        if c.subwords:
            choice = c.language, c.segmentation, c.seed, c.atomic_unk
            known = self.source and self.source.vocab.subwords
            vocab.subwords = known.extended(vocab.words) if known else Subwords.learn(c.subwords, vocab.words, *choice)
            longest = vocab.subwords.table(vocab.words).shape[1]
            log.info(f"subwords: {len(vocab.subwords.units) - 1:,} {c.subwords}, at most {longest} in a word")
        return text, tokens

    def make(self, text: LmText) -> Any:
        source, self.source = self.source, None  # frees its memory
        return continued(source, text.vocab, self.config, self.continuation) if source else super().make(text)

    def named(self, model: Any) -> str:
        c = self.config
        form = TYING[c.tying]
        if c.subwords:
            form = f"{c.subwords}, reuse {c.reuse}" + ", L" * (c.tying == "linear")
        cell = f"RHN of depth {c.depth}" if c.cell == "rhn" else c.cell.upper()
        widths = c.layer_widths or f"{c.layers} x {c.hidden}"
        return f"{cell}{BITS[c.precision]}, {form}, {widths}, embeddings of {c.width}"
