"""How `tiedtools rnnlm` trains: with a model file, as the program rnnlm has it, or without."""

from typing import Any

from tiedtools.cli.lmtrainer import LmTrainer
from tiedtools.cli.options import as_given, from_options, given
from tiedtools.cli.report import RnnlmReport
from tiedtools.messages import log
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.models.rnnlm.pieces import Pieces
from tiedtools.models.rnnlm.rnnlmfile import holds
from tiedtools.models.rnnlm.run import ModelFile
from tiedtools.text.sources import shown
from tiedtools.training import fit


class RnnlmTrainer(LmTrainer):
    """alone  log as rnnlm does, through `print_text`, and write no vectors; reads: paths that are read after training

    file     the ModelFile; restored: the model that was in it
    """

    Model, Feed = Rnnlm, Pieces
    ways = "lower --hidden, -direct, --doc-dim or --max-vocab, or raise -min-count"
    file: Any = None
    restored: Any = None

    def __init__(self, ctx, alone, reads, print_text):
        path = ctx.params["rnnlm"]
        self.outputs = ("save_model", *(() if alone else ("output",)), *(("rnnlm",) if path else ()))
        super().__init__(ctx)
        options, self.alone, self.reads = self.options, alone, reads
        self.tell = print_text if alone and options["debug"] else lambda text: None
        self.config, self.schedule = configuration(options), schedule(options)
        self.tell_idle(idle(options))
        if path:
            texts = {"train": (*ctx.params["texts"], *ctx.params["train"], None)[0], "valid": options["valid"]}
            early = dict(put=self.ending.put_early, mark=lambda: self.record.mark("rnnlm"))
            self.file = ModelFile(path, options["binary"], options["anti_kasparek"], **early, **texts)
            self.files, self.between = (self.file.log,), self.file.between
        self.tell(f"Starting training using file {shown(*self.texts)}\n")
        if path:
            self.restore(path)
        self.width = self.config.hidden
        self.reading |= self.own_reading()

    def restore(self, path):
        """Take up the model in the file, if there is one."""
        restored = self.restored = self.file.restore(self.config)
        if restored:
            message = "Restoring network from file to continue training..."
            self.tell(f"{message}\n") if self.alone else log.info(message)
            spelled = as_given(self.ctx)
            other = [
                spelled[name]
                for name in sorted(given(self.ctx))
                if name in ("min_count", "max_vocab", "read_vocab")
                or getattr(self.config, name, None) != getattr(restored.config, name, None)
            ]
            if other:
                files = "options that are those of the file, not of the command line"
                log.info(f"{path}: {files}: {', '.join(other)}")
            self.config, self.origin = restored.config, path
        if not holds(self.config):
            log.info(
                f"{path}: is written as .npz, since rnnlm's format holds neither document vectors nor a learned start"
            )

    def own_reading(self):
        """Arguments of LmText.read that the model and its use decide."""
        arguments: dict = {"keep_oovs": True}
        if self.restored:
            arguments |= {"vocab": self.restored.vocab, "read_vocab": None}
        if self.options["one_iter"]:
            arguments |= {"valid": None, "valid_share": 0}
        if self.alone:
            arguments |= {"test": None, "predict_oovs": False}
        return arguments

    @property
    def inputs(self):
        return [*super().inputs, *self.reads]

    def memory(self, text):
        there = self.restored.params.values.nbytes if self.restored else 0
        return super().memory(text) - there

    def copies(self, words):
        return max(super().copies(words), 12 * words * self.width * bool(self.file))

    def make(self, text):
        if self.file and text.valid is not None:
            open(self.file.log, "a").close()  # a mistake is told before training
        if self.restored:
            return self.restored
        model = super().make(text)
        self.tell(f"Vocab size: {len(text.vocab)}\nWords in train file: {text.train.size}\n")
        return model

    def named(self, model):
        document = f"document vector of {self.config.doc_dim}, " if self.config.doc_dim else ""
        return f"RNN, hidden layer of {self.config.hidden}, {document}{len(model.starts) - 1} classes"

    def begin(self, model, text, resume):
        run = super().begin(model, text, resume)
        if self.file and resume:
            self.file.resume(run)
        elif self.restored:
            self.file.begin(run, self.options["lr"] if "lr" in given(self.ctx) else None)
        if self.options["one_iter"]:
            run.epochs = run.earlier + 1
        return run

    def report(self, figures):
        return RnnlmReport(self.options["debug"], figures) if self.alone else super().report(figures)

    def write(self, name, file, model):
        self.file.write(file, model) if name == "rnnlm" else super().write(name, file, model)


def idle(options):
    """dict: name of an option that has no effect -> why not."""
    needed = {
        "direct": ["direct_order"],
        "bptt": ["bptt_block"],
        "doc_dim": ["doc_lr", "start_doc"],
        "lm_prob": ["weight"],
        "rnnlm": ["anti_kasparek"],
    }
    return {
        name: f"without --{option.replace('_', '-')}"
        for option, names in needed.items()
        for name in names
        if not options[option]
    }


def schedule(options):
    """The Training by rnnlm's rule."""
    return fit.Training(
        epochs=options["max_iter"],
        lr=options["lr"],
        clip=0.0,
        schedule="halving",
        min_improvement=options["min_improvement"],
        eval_batch=1,
        checkpoint_minutes=options["checkpoint_minutes"],
    )


def configuration(options):
    """The RnnlmConfig of the options."""
    D = options["doc_dim"]
    sentences = D > 0 if options["sentences"] is None else options["sentences"]
    settings = dict(
        options,
        hidden=options["hidden"] or (100 if D else 30),
        sentences=sentences,
        learn_start=sentences,
        shuffle=sentences,
        direct=round(options["direct"] * 10**6),
    )
    return from_options(RnnlmConfig, settings)
