"""Common base of the trainable classes: settings, a trained model, and its files."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from tiedtools.base import interrupts
from tiedtools.base.aliases import ALIASES, Renaming, translated
from tiedtools.base.errors import Contradiction, Mistyped, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.settings import SIDES, Files, Range, checked, one_of, sort_out
from tiedtools.files.output import open_output, refuse_packed
from tiedtools.runs.progress import Bar, Callback, Callbacks, Progress
from tiedtools.runs.trainer import Trainer
from tiedtools.text.raw import as_trained, prepared
from tiedtools.text.sentences import sources
from tiedtools.text.sources import Path
from tiedtools.vectors.vectors import Vectors

BATCH, COUNT = Range(1, 4096), Range(1)
OF_FILES = dict(binary="output", checkpoint_minutes="checkpoint")  # argument -> what it needs
Self = TypeVar("Self", bound="Estimator")


class Estimator(Renaming):
    """Base class of Word2Vec, LanguageModel, and Translator.

    Trained models can be pickled, and used after `fork`: each process starts its own threads.
    """

    settings: dict[str, Any]  # arguments of the constructor
    history: list[dict[str, Any]]  # figures of each epoch of the last `fit`, and of the run that it resumed
    sides: tuple[str, ...] = SIDES  # names of the word vectors
    trained: Any = None  # the model: parameters, vocabulary, and configuration
    instead: ClassVar = {"train": "`fit(text)`"}
    fit: Callable[..., Any]
    of_fit: ClassVar[tuple[Any, ...]] = (Files,)  # dataclasses of the other arguments of `fit`

    def __init__(self, configure: Callable[..., list[Any]], settings: dict[str, Any]) -> None:
        known = inspect.signature(type(self)).parameters
        self.settings = translated(as_strings(settings), known)
        of_fit = {field.name for kind in self.of_fit for field in dataclasses.fields(kind)}
        of_fit.update(inspect.signature(self.fit).parameters)
        for name in self.settings:
            if name in of_fit and name not in known:
                raise Mistyped(f"`{name}` is an argument of `fit`, not of {type(self).__name__}; move it there")
        self.history, self.configure = [], configure
        configure(**self.settings)  # checks them

    @property
    def configured(self) -> list[Any]:
        """Configuration of a run: [model configuration, Training (not for Word2Vec), dict of settings of the texts]."""
        return self.configure(**self.settings)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({arguments})"

    @property
    def model(self) -> Any:
        """The trained model: its parameters, vocabulary (`vocab`), and configuration (`config`).

        Raises TiedtoolsError before `fit`.
        """
        if self.trained is None:
            raise TiedtoolsError("the model is not trained; call `fit` first")
        return self.trained

    @property
    def vectors(self) -> Vectors:
        """The word Vectors that the command line writes by default. Raises TiedtoolsError before `fit`."""
        return self.word_vectors()

    def word_vectors(self, which: str = "in") -> Vectors:
        """Return the input ("in") or output ("out") word Vectors, their "sum", or their concatenation ("concat").

        Raises TiedtoolsError if the model does not have these vectors.
        """
        one_of("which", which, self.sides)
        vectors: Vectors = self.model.vectors(which)
        vectors.words = list(vectors.words)
        vocab = self.model.source_vocab if which == "source" else self.model.vocab
        if len(vocab) == len(vectors):
            vectors.counts = vocab.counts.copy()
        return vectors

    def raw(self, source: Any, **how: Any) -> list[Any]:
        """Return the texts of a source, split as in training; see text.raw.prepared."""
        texts: list[Any] = prepared(sources(source), **{**as_trained(self.model.settings), **how})
        return texts

    def save(self, path: Path) -> None:
        """Write the model to a file: parameters, vocabulary, and all settings; `load` reads it.

        Raises TiedtoolsError if the file cannot be written, Contradiction for the name of a compressed file.
        """
        model = self.model
        refuse_packed(os.fspath(path))
        with open_output(os.fspath(path)) as file:
            model.save(file)

    @classmethod
    def load(cls, path: Path, mmap: str | None = None) -> Any:
        """Read a model, as `tiedtools.load` does; `mmap` is gensim's, and ignored."""
        import tiedtools

        return tiedtools.load(path)

    def files(self, given: dict[str, Any]) -> list[Any]:
        """Return an instance of each dataclass in `of_fit` with these fields. Raises TypeError for unknown fields."""
        for name in given:
            if ALIASES.get(name, [name])[0] in inspect.signature(type(self)).parameters:
                raise Mistyped(f"`{name}` is an argument of {type(self).__name__}, not of `fit`; move it there")
        return sort_out(as_strings(given), *self.of_fit)

    def run(
        self: Self, trainer: Trainer, progress: bool | Progress | None, on_epoch: Callback | None,
        on_timer: Callback | None, timer_seconds: float
    ) -> Self:  # fmt: skip
        """Train with a Trainer; arguments as for `fit`. Logs a warning if a new model replaces a trained one."""
        for name, function in ("on_epoch", on_epoch), ("on_timer", on_timer):
            if not (function is None or callable(function)):
                raise Mistyped(f"`{name}={function!r}` is not a function or None; correct it")
        if not (progress is None or isinstance(progress, bool | Progress)):
            raise Mistyped(f"`progress={progress!r}` is not None, True, False, or a Progress; correct it")
        timer_seconds = checked("timer_seconds", timer_seconds, float, Range(0))
        stderr = None if getattr(sys.stderr, "closed", False) else sys.stderr
        if progress is None:
            progress = "ipykernel" in sys.modules or getattr(stderr, "isatty", bool)()
        if progress is True and stderr is not None:
            progress = Bar()
            progress.perplexities = trainer.schedule is not None
        if self.trained is not None and not (trainer.files.resume or trainer.origin):
            what = "the model is already trained: `fit` trains a new one from scratch"
            log.warning(f"{what}; to continue a run, give `checkpoint` FILE to both runs, and `resume` to the second")
        listener = Callbacks(on_epoch, on_timer, timer_seconds, progress if isinstance(progress, Progress) else None)
        with interrupts.listening():
            try:
                trainer.train(listener)
            except KeyboardInterrupt as stop:
                if not listener.stopped:
                    raise KeyboardInterrupt(*stop.args[1:]) from None  # without the number of the signal
            finally:
                if trainer.model is not None:
                    self.trained, self.history = trainer.model, listener.history
        if listener.failure:
            raise vars(listener).pop("failure")  # its frames have `listener`: a cycle would keep the model in memory
        return self


def refuse_idle(given: dict[str, Any], **needs: str) -> None:
    """Raise Contradiction if an argument of `fit` is given without another that it needs: {its name: the other}."""
    for name, other in needs.items():
        if given.get(name) and given.get(other) is None:
            raise Contradiction(f"`{name}` has no effect without `{other}`; give both, or omit it")


def as_strings(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with paths as strings."""
    return {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in fields.items()}
