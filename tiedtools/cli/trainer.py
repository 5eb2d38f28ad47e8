"""The way of all commands that train: read, make, train, write. What a model does in its own way is in a Trainer."""

import abc
import contextlib
import logging
import os
import sys
from typing import Any

import click

from tiedtools import interrupts
from tiedtools.cli.options import as_given, given, read_once, tell_if_slow
from tiedtools.cli.record import Record
from tiedtools.cli.report import show_messages
from tiedtools.errors import Diverged, TiedtoolsError
from tiedtools.files import digests
from tiedtools.files.endings import Ending, refuse_spares
from tiedtools.files.output import Outputs, is_file, refuse_clashes, refuse_packed
from tiedtools.messages import compiling, log
from tiedtools.text.sources import counted
from tiedtools.vectors.vectors import EXTENSIONS

SHARING = {"untied": "untied", "tied": "tied", "linear": "tied+L"}  # a config's word for it, and that of the papers
BITS = {"float32": "", "bfloat16": " in bfloat16"}


class Trainer(abc.ABC):
    """Trains one model as a command's options say, of which those of RUN_FILES must be there.

    Model     the class: kind, rehearse(config), memory(vocab, config); of an object config, n_params, vectors, save
    config    the model's; width: of its word vectors; both for a derived class to set
    schedule  a fit.Training, None where there is none
    ways      to make the memory less that it takes, in words
    outputs   options of what is written when all is done; files: other paths that are written
    texts     paths to train on
    origin    path of the model file that training goes on from, None where it does not
    """

    Model: Any
    config: Any
    width: int
    ways: str
    outputs: tuple = ("save_model", "output")
    files: tuple = ()
    schedule: Any = None
    origin: str | None = None
    record: Record
    reached = "before training"  # how far the run has come, in words

    def __init__(self, ctx):
        self.ctx, self.options = ctx, dict(ctx.params)
        self.texts = [*ctx.params["texts"], *ctx.params["train"]] or ["-"]
        show_messages(logging.INFO if self.options["debug"] else logging.WARNING)
        self.ending = Ending()
        of_own_accord = "output" in self.outputs and "output" not in given(ctx)
        if of_own_accord and self.options["save_model"] is not None and sys.stdout.isatty():
            log.info("vectors are not written to the terminal; -output FILE keeps them, -output - prints them")
            self.options["output"] = None

    def tell_idle(self, idle):
        """Say which of the options on the command line have no effect; `idle`: their names -> why not."""
        spelled = as_given(self.ctx)
        for name in idle:
            if name in given(self.ctx):
                log.warning(f"{spelled[name]} has no effect {idle[name]}")

    @property
    def inputs(self):
        """Paths of all that is read."""
        path = self.options["read_vocab"]
        return self.texts if path is None else [*self.texts, path]

    @abc.abstractmethod
    def read(self):
        """(the text, with its `vocab`; dict of its tokens), told of."""

    def memory(self, text):
        """Bytes that the model and what is made of it and the text will take."""
        return self.Model.memory(text.vocab, self.config) + self.copies(len(text.vocab))

    def copies(self, words):
        """Bytes of the vectors that are made to be written, of so many words: see vectors.Vectors.of."""
        return 4 * words * self.width * {"sum": 1, "concat": 2}.get(self.options["write"], 0)

    def make(self, text):
        """The model."""
        return self.Model(text.vocab, self.config)

    @abc.abstractmethod
    def named(self, model):
        """What the model is, in words."""

    @abc.abstractmethod
    def begin(self, model, text, resume):
        """A Fit or a Run."""

    @abc.abstractmethod
    def report(self, figures):
        """A Report, which writes to the file `figures`, None: to none."""

    def write(self, name, file, model):
        """Write one of the outputs to a binary file."""
        if name == "save_model":
            model.save(file)
            return
        vectors = model.vectors(self.options["write"])
        (vectors.write_binary if self.options["binary"] else vectors.write_text)(file)

    @abc.abstractmethod
    def finish(self, run, report):
        """Log the last figures, when all is written; returns those for the manifest."""

    def train(self):
        """Return the model. Raises KeyboardInterrupt(signal, message) or Diverged after writing what there is."""
        options = self.options
        tell_if_slow(getattr(self.config, "precision", "float32"))
        paths = {name: options[name] for name in ("save_vocab", *self.outputs)}
        unpacked = [options[name] for name in ("save_model", "checkpoint", "log_json", "manifest")]
        refuse_packed(*unpacked, *self.files)
        refuse_name(options["output"])
        self.record = record = Record(self.ctx, paths, self.ending)
        paths |= record.paths
        resume = resumed(options, [*paths.values(), *self.files], self.inputs)
        # Every output is opened before hours of training, not after.
        with Outputs(paths, self.ending.put) as outputs, record(outputs), open_log(options["log_json"]) as figures:
            try:
                model = self.run(outputs, figures, resume)
                interrupts.check()
            except (KeyboardInterrupt, Diverged) as stop:
                written = [outputs.done[name] for name in self.outputs if name in outputs.done]
                raise self.ending.told(stop, self.reached, written) from None
        return model

    def run(self, outputs, figures, resume):
        """Return the model, trained and written. Raises as `train`, without a message."""
        options, record, ending = self.options, self.record, self.ending
        text, tokens = self.read()
        if "save_vocab" in outputs:
            outputs.write("save_vocab", text.vocab.write)
        with compiling():
            self.Model.rehearse(self.config)
        record.check_memory(self.memory(text), self.ways)
        model = self.make(text)
        log.info(self.described(model))
        n = dict(tokens=tokens, words=len(text.vocab), parameters=model.n_params)
        record.model(options, model, self.schedule, **n, resumed=resume)
        if self.origin is not None and not resume:
            record.figures["origin"] = dict(path=self.origin, **digests.of_file(self.origin))
        run = self.begin(model, text, resume)
        if resume:
            log.info(f"resumed: {run.standing}")
        if figures:
            ending.keep_log(options["log_json"])
            with contextlib.suppress(OSError):  # devices and pipes
                figures.truncate(0)
        report = self.report(figures)
        try:
            run.go(report)
        except (KeyboardInterrupt, Diverged) as stop:
            ending.stopped = stop
        finally:
            report.close()
        self.reached = run.reached if ending.stopped else "after training"
        record.figures |= run.figures
        if not ending.stopped or run.worthwhile(ending.stopped):
            for name in self.outputs:
                if name in outputs and not (ending.diverged and not is_file(options[name])):
                    outputs.write(name, lambda file, name=name: self.write(name, file, model))
        ending.settle(outputs.done.values())
        if ending.stopped:
            raise ending.stopped
        record.figures |= self.finish(run, report)
        return model

    def described(self, model):
        n, config = model.n_params, model.config
        each = {"float32": 4, "float64": 8}[config.dtype]
        size = f"{n:,} parameters ({n / 1e6:.2f}M, {n * each / 1e6:,.0f} MB)"
        return f"model: {self.named(model)}, {size}; {counted(config.threads, 'thread')}, seed {config.seed}"


def resumed(options, outputs, inputs):
    """Whether there is a checkpoint to go on from, as a command's options say, those of RUN_FILES among them.

    outputs, inputs  paths that are written besides (None: not wanted), and read

    Raises click.UsageError and TiedtoolsError for options that do not go together, or would write over something.
    """
    checkpoint, log_json = options["checkpoint"], options["log_json"]
    if options["resume"] and checkpoint is None:
        raise click.UsageError("--resume needs --checkpoint FILE to resume from")
    for option, path in ("--log-json", log_json), ("--checkpoint", checkpoint):
        if path in ("-", ""):
            raise click.UsageError(f"{option} needs a file of its own")
    read_once(*inputs)
    refuse_clashes([*outputs, checkpoint, log_json], inputs)
    refuse_spares([*outputs, log_json], [*outputs, checkpoint, log_json, *inputs])
    there = checkpoint is not None and os.path.exists(checkpoint)
    if there and not options["resume"]:
        raise TiedtoolsError(f"{checkpoint}: exists: add --resume to go on from it, or remove it to begin anew")
    return there


def refuse_name(path):
    """Raise click.UsageError where vectors, written to `path` as text or binary, would be read as something else."""
    extension = os.path.splitext(path or "")[1]
    if extension in {".npz", *EXTENSIONS}:
        other = "that is for models" if extension == ".npz" else "`tiedtools convert` writes that"
        raise click.UsageError(f"-output {path}: would be read as {extension}, and is text or binary; {other}")


@contextlib.contextmanager
def open_log(path):
    """A block with the log, None where there is none; it keeps what an earlier run has written until this one goes.

    One that is new and has nothing in it at the block's end is gone again.
    """
    if path is None:
        yield None
        return
    new = not os.path.exists(path)
    try:
        with open(path, "a") as figures:
            yield figures
    finally:
        with contextlib.suppress(OSError):  # it is gone already
            if new and not os.path.getsize(path):
                os.unlink(path)
