"""Template of a training run: open the outputs, read the texts, build the model, train it, and write the outputs."""

import abc
import dataclasses
import functools
import os
from collections.abc import Iterable
from typing import Any, BinaryIO

from tiedtools.base import interrupts, memory
from tiedtools.base.errors import Contradiction, Diverged, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import affine_cores, cpu_quota
from tiedtools.base.settings import NONE, SIDES, Files, Reading, one_of, settings_of
from tiedtools.files import digests
from tiedtools.files.manifest import Record
from tiedtools.files.output import check_space, open_output, refuse_clashes, refuse_packed, split_compression
from tiedtools.kernels.base.features import FAST_BFLOAT16
from tiedtools.runs import checkpoints
from tiedtools.runs.compiling import compiling
from tiedtools.runs.files import RunFiles, Writer, refuse_reserved
from tiedtools.runs.progress import EpochLog, Listener, Progress
from tiedtools.text.phrases import PACKED, Phrases
from tiedtools.text.raw import prepared
from tiedtools.text.sources import counted, file_of, read_once, refuse_missing
from tiedtools.text.vocab import Vocab
from tiedtools.vectors import matrixfiles
from tiedtools.vectors.counts import packed
from tiedtools.vectors.formats import FORMATS
from tiedtools.vectors.vectors import trained_format

SOURCES = "valid", "test", "valid_source", "valid_target", "read_vocab", "phrases"  # paths, or lists, in `reading`
RAW = "tokenize", "field"  # settings of raw text
TEXT_BYTES = 9  # per number in text vectors: `0.123456 `; a negative number takes 10
# Name in a configuration -> name in messages, from the papers where possible.
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
    sides     names of the word vectors that can be written
    readers   the Reading class with the settings of `reading`
    others    paths of additional output files
    reads     paths of additional input files
    targets   name -> path of each output, or None
    schedule  a schedules.Training, or None
    origin    path of the model file that training continues from, or None
    also      further dataclasses of settings, for the manifest
    """

    Model: Any
    width: int
    advice: str
    sides: tuple[str, ...] = SIDES
    readers: type = Reading
    others: tuple[str | None, ...] = ()
    reads: Iterable[str] = ()
    schedule: Any = None
    origin: str | None = None
    also: tuple[Any, ...] = ()
    record: Record
    run_files: RunFiles
    model: Any = None  # the trained model, also if training was interrupted and the model is worth using
    reached = "before training"  # progress of the run, for messages

    def __init__(
        self, config: Any, texts: Iterable[Any] = ("-",), files: Files = NO_FILES, no_memory_check: bool = False,
        **reading: Any,
    ) -> None:  # fmt: skip
        self.config, self.texts, self.files, self.reading = config, list(texts), files, reading
        self.no_memory_check = no_memory_check
        self.targets = {name: getattr(files, name) for name in ("save_vocab", "save_model", "output")}
        self.format = trained_format(files.output, files.binary)
        if FORMATS[self.format].two_files:
            self.targets["words"] = matrixfiles.paths(files.output, self.format)[1]
        one_of("write", files.write, self.sides)

    @property
    def inputs(self) -> list[Any]:
        """Paths of all input files."""
        sources = [*self.texts, *(self.reading.get(name) for name in SOURCES)]
        lists = [source if isinstance(source, list) else [source] for source in sources if source is not None]
        paths = [path for paths in lists for path in paths if path != NONE and not str(path).startswith(PACKED)]
        return [*paths, *self.reads]

    @functools.cached_property
    def phrases(self) -> Phrases | None:
        """The Phrases to join in the texts."""
        return Phrases.of(self.reading.get("phrases"))

    def raw(self, sources: Any, **how: Any) -> Any:
        """Return sources, a list, as raw text if `reading` has a field or a tokenization; see raw.prepared."""
        raw: dict[str, Any] = {name: self.reading[name] for name in (*RAW, "errors") if name in self.reading}
        return prepared(sources, **{**raw, "phrases": self.phrases, **how}, processes=self.config.threads)

    def raw_reading(self, **how: Any) -> dict[str, Any]:
        """Return `reading` with its texts, except the training texts, prepared, and without the settings of that."""
        raw = {name: value for name, value in self.reading.items() if name not in (*RAW, "phrases")}
        texts = {name: raw[name] for name in SOURCES if name in raw and name != "read_vocab"}
        lists = {name: [text] if isinstance(text, str) else text for name, text in texts.items()}
        return raw | {name: self.raw(text, **how) for name, text in lists.items()}

    @abc.abstractmethod
    def read(self) -> tuple[Any, dict[str, int]]:
        """Read the texts, log their sizes, and return (text, with its `vocab`; token counts)."""

    def memory(self, text: Any) -> int:
        """Return the bytes needed for the model, its training, and the text."""
        return self.Model.memory(text.vocab, self.config) + self.copies(len(text.vocab))

    def sizes(self, model: Any) -> dict[str, int]:
        """Return the approximate sizes of the large outputs, path -> bytes."""
        numbers = len(self.written(model)) * self.width * (2 if self.files.write == "concat" else 1)
        text = self.format in ("text", "tsv")
        sizes = {"output": numbers * (TEXT_BYTES if text else 4), "save_model": 4 * model.n_params}
        paths = {self.targets[name]: size for name, size in sizes.items()}
        return {path: size for path, size in paths.items() if path and not split_compression(path)[1]}

    def written(self, model: Any) -> Vocab:
        """Return the Vocab whose word vectors are written."""
        return model.source_vocab if self.files.write == "source" else model.vocab

    def copies(self, words: int) -> int:
        """Return the bytes of the copy of `words` word vectors for writing; see vectors.Vectors.of."""
        return 4 * words * self.width * {"sum": 1, "concat": 2}.get(self.files.write, 0)

    def make(self, text: Any) -> Any:
        """Create and return the model."""
        return self.Model(text.vocab, self.config)

    def settings(self) -> dict[str, Any]:
        """Return the settings that the model's configuration lacks, and `threads`, by Python names."""
        names = {field.name for field in dataclasses.fields(self.readers)} & self.reading.keys()
        training = settings_of(self.schedule) if self.schedule else {}
        reading = {name: self.reading[name] for name in sorted(names) if self.reading[name] is not None}
        if self.phrases:
            reading["phrases"] = self.phrases.packed()
        return dict(threads=self.config.threads, **training, **reading)

    @abc.abstractmethod
    def named(self, model: Any) -> str:
        """Return a short description of the model, for the log."""

    @abc.abstractmethod
    def begin(self, model: Any, text: Any, resume: bool) -> Any:
        """Return the Session that trains the model, a Fit or a Run."""

    def writers(self, model: Any) -> dict[str, Writer]:
        """Return the functions that write the outputs to binary files after training, by name."""
        words, output = self.written(model).words, lambda file: self.write_vectors(file, model)
        return {"save_model": model.save, "output": output, "words": lambda file: matrixfiles.write_words(file, words)}

    def write_vectors(self, file: BinaryIO, model: Any) -> None:
        model.vectors(self.files.write).write_stream(file, self.format)

    def finish(self, run: Any) -> dict[str, Any]:
        """Return the figures computed after all outputs are written."""
        return {}

    def train(self, progress: Listener | None = None, record: Record | None = None) -> Any:
        """Train, reporting to a Progress and to a Record, and return the model.

        Raises TiedtoolsError before training if a file cannot be read or written or memory is insufficient, and
        KeyboardInterrupt(signal, message) or Diverged after writing the partial results.
        """
        paths, self.record = self.files, record or Record()
        refuse_packed(paths.save_model, paths.checkpoint, paths.log_json, paths.manifest, *self.others)
        if "words" in self.targets and (existing := matrixfiles.foreign_list(paths.output, self.format)):
            raise TiedtoolsError(f"{existing}: exists, and may belong to another matrix; choose another name")
        self.run_files = files = RunFiles(self.targets, self.record, paths.manifest, paths.no_manifest, paths.log_json)
        outputs = [*files.targets.values(), *files.manifest_paths.values(), *self.others]
        resume = should_resume(paths, outputs, list(filter(None, map(file_of, self.inputs))))
        self.config = with_precision(self.config, paths.checkpoint if resume else None)
        with files, digests.Recorder(self.record.inputs) as self.record.sources:
            try:
                model = self.run(EpochLog(files.log, progress or Progress(), files.begin_log), resume)
                interrupts.check()
            except (KeyboardInterrupt, Diverged) as stop:
                stop.__traceback__ = None  # `files` keeps `stop`, whose frames would keep the text, the run, and `self`
                kept = paths.checkpoint and os.path.exists(paths.checkpoint)
                how = "run again" if paths.resume else "run again with `resume`"
                again = f"; {how} to continue from {paths.checkpoint}" if kept else ""
                raise files.explain(stop, self.reached, again) from None
        return model

    def run(self, progress: EpochLog, resume: bool) -> Any:
        """Train, write, and return the model. Raises the exceptions of `train`, without the final message."""
        record, files, stopped = self.record, self.run_files, None
        text, tokens = self.read()
        with compiling(progress, self.Model.KERNELS):
            self.Model.warm_up(self.config)
        record.need = memory.check(self.memory(text), self.advice, self.no_memory_check)
        model = self.make(text)
        model.settings = self.settings()
        log.info(self.summary(model))
        check_space(self.sizes(model))
        self.describe(model, text, tokens, resume)
        run = self.begin(model, text, resume)
        if resume:
            log.info(f"resumed: {run.standing}")
        if "save_vocab" in files.outputs:
            files.write("save_vocab", text.vocab.write)
        try:
            run.go(progress)
        except (KeyboardInterrupt, Diverged) as stop:
            stopped = stop
        except BaseException:
            progress.close()
            raise
        with interrupts.deferred():  # a signal must not lose the model
            progress.close()
            self.reached = run.reached if stopped else "after training"
            record.figures |= run.figures
            worthwhile = not stopped or run.worthwhile(stopped)
            if worthwhile:
                self.model = model
            files.finish(stopped, self.writers(model) if worthwhile else {})
            if stopped:
                raise stopped
        figures = self.finish(run)
        record.figures |= {name: value for name, value in figures.items() if value is not None}
        progress.write(**figures, params=model.n_params, seconds=round(run.seconds, 3))
        return model

    def describe(self, model: Any, text: Any, tokens: dict[str, int], resume: bool) -> None:
        """Record the settings and figures known before training."""
        record, config = self.record, model.config
        for settings in filter(None, (self.files, config, self.schedule, *self.also)):
            record.settings |= dataclasses.asdict(settings)
        record.settings |= model.settings
        record.figures |= dict(seed=config.seed, threads=config.threads, tokens=tokens, words=len(text.vocab))
        record.figures |= dict(parameters=model.n_params, resumed=resume)
        record.counts = packed(self.written(model).counts)
        if self.origin is not None and not (resume and self.origin in self.targets.values()):
            record.figures["origin"] = dict(path=self.origin, **digests.of_file(self.origin))

    def summary(self, model: Any) -> str:
        n, config = model.n_params, model.config
        bytes_each = {"float32": 4, "float64": 8}[config.dtype]
        size = f"{n:,} parameters ({n / 1e6:.2f}M, {n * bytes_each / 1e6:,.0f} MB)"
        quota = f" (CPU quota: {cpu_quota():g} cores)" if cpu_quota() < affine_cores() else ""
        threads = counted(config.threads, "thread")
        return f"model: {self.named(model)}, {size}; {threads}{quota}, seed {config.seed}"


def with_precision(config: Any, checkpoint: str | None) -> Any:
    """Return a configuration whose `precision`, if None, is from the checkpoint to resume, or fast on this CPU."""
    if getattr(config, "precision", "") is not None:
        log_if_slow(getattr(config, "precision", None))
        return config
    precision = checkpoint and checkpoints.recorded(checkpoint, "precision")
    log_if_slow(precision, "for float32, start over with another `checkpoint`")
    fast = "bfloat16" if FAST_BFLOAT16 and config.dtype == "float32" else "float32"
    return dataclasses.replace(config, precision=precision or fast)


def log_if_slow(precision: str | None, advice: str = "`precision=float32` is faster") -> None:
    """Log a hint if this CPU lacks fast products in this precision."""
    if precision == "bfloat16" and not FAST_BFLOAT16:
        others = "AMD has since Zen 4, Intel Xeon since Sapphire Rapids, on Linux"
        log.info(f"this CPU has no fast bfloat16 products ({others}); {advice}")


def should_resume(files: Files, outputs: list[str | None], inputs: list[str]) -> bool:
    """Check the paths of a run and return whether to resume from an existing checkpoint.

    files    the Files of the run
    outputs  paths of all other outputs; None: no output
    inputs   paths of all inputs

    Raises Contradiction or TiedtoolsError if files conflict, or an input is missing or also an output.
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
    refuse_reserved([*outputs, log_json], [*outputs, checkpoint, log_json, *inputs])
    exists = checkpoint is not None and os.path.exists(checkpoint)
    if checkpoint:  # fails before the text is read
        with open_output(checkpoint, lambda partial, _: os.unlink(partial)):
            pass
    if exists and not files.resume:
        remedy = "add `resume` to continue from it, or remove it to start over"
        raise TiedtoolsError(f"{checkpoint}: already exists; {remedy}")
    return exists


def refuse_twice(write: str, tied: bool) -> None:
    """Raise Contradiction if input and output vectors of a tied model would be concatenated."""
    if write == "concat" and tied:
        raise Contradiction("`write=concat` would write each vector twice because the model is tied; use `write=in`")
