"""Template of a training run: open the outputs, read the texts, build the model, train it, and write the outputs."""

import abc
import contextlib
import dataclasses
import os
from typing import Any

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction, Diverged, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import affine_cores, cpu_quota
from tiedtools.base.settings import SIDES, Reading, one_of, settings_of
from tiedtools.files import digests
from tiedtools.files.output import Outputs, check_space, is_file, refuse_clashes, refuse_packed, split_compression
from tiedtools.kernels.base.features import FAST_BFLOAT16
from tiedtools.runs import checkpoints
from tiedtools.runs.compiling import compiling
from tiedtools.runs.files import Ending, refuse_spares
from tiedtools.runs.progress import EpochLog, Progress
from tiedtools.runs.record import Call, Record
from tiedtools.runs.settings import Files
from tiedtools.text.sources import counted, is_path, read_once, refuse_missing
from tiedtools.vectors.counts import packed
from tiedtools.vectors.vectors import refuse_name

TEXT_BYTES = 9  # per number of text vectors: `-0.123456 `, or one less
# Name in a configuration -> name in messages, which is that of the papers if there is one.
TYING = {"untied": "untied", "tied": "tied", "signs": "tied, fixed signs", "linear": "tied+L"}
NO_FILES = Files()
BITS = {"float32": "", "bfloat16": " in bfloat16"}


class Trainer(abc.ABC):
    """Trains one kind of model from text files.

    config           the model's configuration
    texts            the training texts: paths (`-` is standard input), open files, or text.sentences.Sentences
    files            the Files to write
    reading          keyword arguments for reading the texts
    no_memory_check  train even if memory looks insufficient

    A subclass defines:

    Model     class of the model, with kind, KERNELS (see compiling.py), warm_up(config), memory(vocab, config); its
              instances have config, n_params, vectors, save
    width     dimension of the word vectors
    advice    advice on reducing memory use, for the error message
    outputs   names of the outputs written after training
    sides     names of the word vectors that can be written
    readers   the Reading class whose fields are the settings in `reading`
    others    paths of other files that are written
    schedule  a schedules.Training, or None
    origin    path of the model file that training continues from, or None
    """

    Model: Any
    width: int
    advice: str
    outputs: tuple = ("save_model", "output")
    sides: tuple = SIDES
    readers: type = Reading
    others: tuple = ()
    schedule: Any = None
    origin: str | None = None
    record: Record
    model: Any = None  # the trained model, also if training was interrupted and the model is worth using
    reached = "before training"  # progress of the run, for messages

    def __init__(self, config, texts=("-",), files=NO_FILES, no_memory_check=False, **reading):
        self.config, self.texts, self.files, self.reading = config, list(texts), files, reading
        self.no_memory_check = no_memory_check
        one_of("write", files.write, self.sides)
        self.ending = Ending()

    @property
    def inputs(self):
        """Paths of all input files."""
        return self.texts if (path := self.reading.get("read_vocab")) is None else [*self.texts, path]

    @abc.abstractmethod
    def read(self):
        """Read the texts, log their sizes, and return (text, with its `vocab`; dict of token counts)."""

    def memory(self, text):
        """Return the bytes needed for the model, its training, and the text."""
        return self.Model.memory(text.vocab, self.config) + self.copies(len(text.vocab))

    def sizes(self, model):
        """Return the approximate sizes in bytes of the large outputs, a dict by their paths."""
        numbers = len(self.written(model)) * self.width * (2 if self.files.write == "concat" else 1)
        sizes = {"output": numbers * (4 if self.files.binary else TEXT_BYTES), "save_model": 4 * model.n_params}
        paths = {self.path(name): size for name, size in sizes.items()}
        return {path: size for path, size in paths.items() if path and not split_compression(path)[1]}

    def written(self, model):
        """Return the Vocab whose word vectors are written."""
        return model.source_vocab if self.files.write == "source" else model.vocab

    def copies(self, words):
        """Return the bytes of the copy of `words` word vectors made for writing; see vectors.Vectors.of."""
        return 4 * words * self.width * {"sum": 1, "concat": 2}.get(self.files.write, 0)

    def make(self, text):
        """Create and return the model."""
        return self.Model(text.vocab, self.config)

    def settings(self):
        """Return the settings that the model's configuration lacks, a dict by their names in Python, and `threads`."""
        read = {field.name for field in dataclasses.fields(self.readers)} & self.reading.keys()
        training = settings_of(self.schedule) if self.schedule else {}
        given = {name: self.reading[name] for name in sorted(read) if self.reading[name] is not None}
        return dict(threads=self.config.threads, **training, **given)

    @abc.abstractmethod
    def named(self, model):
        """Return a short description of the model, for the log."""

    @abc.abstractmethod
    def begin(self, model, text, resume):
        """Return the Session that trains the model, a Fit or a Run."""

    def path(self, name):
        """Return the path of one of the outputs, or None."""
        return getattr(self.files, name)

    def write(self, name, file, model):
        """Write one of the outputs to a binary file."""
        if name == "save_model":
            model.save(file)
            return
        vectors = model.vectors(self.files.write)
        (vectors.write_binary if self.files.binary else vectors.write_text)(file)

    def finish(self, run):
        """Return a dict of the figures computed after all outputs are written."""
        return {}

    def train(self, progress=None, call=None):
        """Train, reporting to a Progress, record the Call, and return the model.

        Raises TiedtoolsError before training if a file cannot be read or written or memory is insufficient, and
        KeyboardInterrupt(signal, message) or Diverged after writing the partial results.
        """
        files = self.files
        paths = {name: self.path(name) for name in ("save_vocab", *self.outputs)}
        refuse_packed(files.save_model, files.checkpoint, files.log_json, files.manifest, *self.others)
        refuse_name(files.output)
        self.record = record = Record(call or Call(), files, paths, self.ending)
        paths |= record.paths
        resume = resumed(files, [*paths.values(), *self.others], list(filter(is_path, self.inputs)))
        self.config = settled(self.config, files.checkpoint if resume else None)
        # Open every output before training, so that an unwritable path fails at once rather than after hours.
        with Outputs(paths, self.ending.put) as outputs, record(outputs), open_log(files.log_json) as figures:
            try:
                model = self.run(outputs, EpochLog(figures, progress or Progress()), resume)
                interrupts.check()
            except (KeyboardInterrupt, Diverged) as stop:
                written = [outputs.done[name] for name in self.outputs if name in outputs.done]
                raise self.ending.told(stop, self.reached, written) from None
        return model

    def run(self, outputs, progress, resume):
        """Train and write the model, and return it. Raises as `train`, but without the final message."""
        record, ending = self.record, self.ending
        text, tokens = self.read()
        if "save_vocab" in outputs:
            outputs.write("save_vocab", text.vocab.write)
        with compiling(progress, self.Model.KERNELS):
            self.Model.warm_up(self.config)
        record.check_memory(self.memory(text), self.advice, self.no_memory_check)
        model = self.make(text)
        model.settings = self.settings()
        log.info(self.described(model))
        check_space(self.sizes(model))
        self.describe(model, text, tokens, resume)
        run = self.begin(model, text, resume)
        if resume:
            log.info(f"resumed: {run.standing}")
        if progress.file:
            ending.keep_log(self.files.log_json)
            with contextlib.suppress(OSError):  # devices and pipes
                progress.file.truncate(0)
        try:
            run.go(progress)
        except (KeyboardInterrupt, Diverged) as stop:
            ending.stopped = stop
        finally:
            progress.close()
        self.reached = run.reached if ending.stopped else "after training"
        record.figures |= run.figures
        if not ending.stopped or run.worthwhile(ending.stopped):
            self.model = model
            for name in self.outputs:
                if name in outputs and not (ending.diverged and not is_file(self.path(name))):
                    outputs.write(name, lambda file, name=name: self.write(name, file, model))
        ending.settle(outputs.done.values())
        if ending.stopped:
            raise ending.stopped
        found = self.finish(run)
        record.figures |= {name: value for name, value in found.items() if value is not None}
        progress.write(**found, params=model.n_params, seconds=round(run.seconds, 3))
        return model

    def describe(self, model, text, tokens, resume):
        """Record the settings and figures known before training."""
        config = model.config
        self.record.settle(self.files, config, self.schedule or {})
        self.record.figures |= dict(seed=config.seed, threads=config.threads, tokens=tokens, words=len(text.vocab))
        self.record.figures |= dict(parameters=model.n_params, resumed=resume)
        self.record.counts = packed(self.written(model).counts)
        if self.origin is not None and not resume:
            self.record.figures["origin"] = dict(path=self.origin, **digests.of_file(self.origin))

    def described(self, model):
        n, config = model.n_params, model.config
        each = {"float32": 4, "float64": 8}[config.dtype]
        size = f"{n:,} parameters ({n / 1e6:.2f}M, {n * each / 1e6:,.0f} MB)"
        quota = f" (CPU quota: {cpu_quota():g} cores)" if cpu_quota() < affine_cores() else ""
        threads = counted(config.threads, "thread")
        return f"model: {self.named(model)}, {size}; {threads}{quota}, seed {config.seed}"


def settled(config, checkpoint):
    """Return a configuration with its precision: if it is None, that of the checkpoint to resume, or what is fast here.

    A configuration without `precision` is returned as it is.
    """
    if getattr(config, "precision", "") is None:
        precision = checkpoint and checkpoints.recorded(checkpoint, "precision")
        fast = "bfloat16" if FAST_BFLOAT16 and config.dtype == "float32" else "float32"
        config = dataclasses.replace(config, precision=precision or fast)
        if precision:
            tell_if_slow(precision, "for float32, start over with another `checkpoint`")
    else:
        tell_if_slow(getattr(config, "precision", None))
    return config


def tell_if_slow(precision, advice="`precision=float32` is faster"):
    """Log a hint if this CPU lacks fast products in this precision."""
    if precision == "bfloat16" and not FAST_BFLOAT16:
        log.info(
            "this CPU has no fast bfloat16 products (AMD has since Zen 4, Intel Xeon since Sapphire Rapids, on Linux);"
            f" {advice}"
        )


def resumed(files, outputs, inputs):
    """Return whether to resume from an existing checkpoint.

    files    the Files of the run
    outputs  paths of all other outputs; None: not written
    inputs   paths of all inputs

    Raises Contradiction or TiedtoolsError if files conflict, an input is missing or would be overwritten by an output.
    """
    checkpoint, log_json = files.checkpoint, files.log_json
    if files.resume and checkpoint is None:
        raise Contradiction("`resume` needs `checkpoint` FILE to resume from")
    for name, path in ("log_json", log_json), ("checkpoint", checkpoint):
        if path in ("-", ""):
            raise Contradiction(f"`{name}` cannot be standard output or empty; give a file name")
    read_once(*inputs)
    refuse_missing(inputs)
    refuse_clashes([*outputs, checkpoint, log_json], inputs)
    refuse_spares([*outputs, log_json], [*outputs, checkpoint, log_json, *inputs])
    there = checkpoint is not None and os.path.exists(checkpoint)
    if there and not files.resume:
        raise TiedtoolsError(
            f"{checkpoint}: already exists; add `resume` to continue from it, or remove it to start over"
        )
    return there


def refuse_twice(write, tied):
    """Raise Contradiction if input and output vectors of a tied model would be concatenated."""
    if write == "concat" and tied:
        raise Contradiction("`write=concat` would write each vector twice because the model is tied; use `write=in`")


@contextlib.contextmanager
def open_log(path):
    """Context manager that opens the JSON log for appending and yields it; None if `path` is None.

    A log created here that is still empty at the end is removed.
    """
    if path is None:
        yield None
        return
    new = not os.path.exists(path)
    try:
        with open(path, "a") as figures:
            yield figures
    finally:
        with contextlib.suppress(OSError):  # already removed
            if new and not os.path.getsize(path):
                os.unlink(path)
