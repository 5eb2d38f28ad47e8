"""word2vec from Python."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tiedtools.api.estimator import OF_FILES, Estimator, refuse_idle
from tiedtools.base.aliases import METHODS
from tiedtools.base.errors import Mistyped, TiedtoolsError
from tiedtools.base.settings import Continuation, Files, Range, Reading, checked, documented
from tiedtools.models.word2vec.config import PRESETS, Config, Resampling, Shorthand, configure, default_vectors
from tiedtools.runs.progress import Callback, Progress
from tiedtools.runs.trainer import Trainer
from tiedtools.text.sentences import sources
from tiedtools.text.sources import Path
from tiedtools.vectors.vectors import Vectors

if TYPE_CHECKING:
    from tiedtools.api.runs import Runs


@documented(Shorthand, Config, Reading, threads=None)
class Word2Vec(Estimator):
    """word2vec with untied or tied embeddings.

    The settings are the options of `tiedtools w2v`, with underscores; None selects the default. `tying` is "untied",
    "tied", "signs" (tied, with a quarter of the dimensions negated in the input), or "linear" (tied+L, with a learned
    linear map L between input and output). One thread gives reproducible results.

    The names of gensim are accepted, too: vector_size, workers, alpha, sg, cbow_mean, shrink_windows, and others in
    base.aliases. With `sentences`, a text as for `fit`, or `corpus_file`, the constructor trains.

    Raises ValueError for settings that are out of range or contradictory, and TypeError if they are unknown or of a
    wrong type; both are Contradiction.

    >>> model = Word2Vec(size=300, architecture="skipgram", tying="signs").fit("corpus.txt")
    >>> model.vectors.most_similar("king")
    """

    instead: ClassVar = METHODS
    of_fit = Continuation, Resampling, Files

    def __init__(self, sentences: Any = None, **settings: Any) -> None:
        texts = [text for text in (sentences, settings.pop("corpus_file", None)) if text is not None]
        if len(texts) > 1:
            raise Mistyped("`sentences` and `corpus_file` are both a text; omit one of them")
        super().__init__(configure, {name: value for name, value in settings.items() if value is not None})
        for text in texts:
            self.fit(text)

    def trainer(
        self, source: Any, valid: Any = None, read_vocab: Path | None = None, no_memory_check: bool = False,
        classes: int = 0, parallel: dict[str, Any] | None = None, align: bool = False, **others: Any
    ) -> Trainer:  # fmt: skip
        """Return the Trainer that `fit` runs; arguments as for `fit`.

        parallel  arguments for several ranks; align: as in Word2VecTrainer
        """
        from tiedtools.models.word2vec.continuing import SHAPE, settings_of_source
        from tiedtools.models.word2vec.trainer import Word2VecTrainer

        settings = self.settings
        if source_of := others.get("init_from"):
            old = settings_of_source(os.fspath(checked("init_from", source_of, str | os.PathLike)))
            preset = PRESETS.get(str(settings.get("preset")), {})  # above the settings of the model, except its shape
            settings = old | {name: preset[name] for name in preset.keys() - SHAPE} | settings
        config, reading = self.configure(**settings)
        classes = checked("classes", classes, int, Range(0, 10**6))
        others = {"write": default_vectors(config), **others}
        continuation, resampling, run_files = self.files(others)
        if continuation.init_from and not continuation.freeze and self.settings.get("lr") is None:
            config = replace(config, lr=config.lr / 2)  # so that little of what was learned is lost; docs/results.md
        reading = reading | ({} if valid is None else dict(valid=sources(valid)))
        extra = dict(no_memory_check=no_memory_check, classes=classes, read_vocab=read_vocab and os.fspath(read_vocab))
        extra |= dict(continuation=continuation, align=align, resampling=resampling) | (parallel or {})
        return Word2VecTrainer(config, sources(source), run_files, **extra, **reading)

    def fit(
        self, source: Any, valid: Any = None, *, progress: bool | Progress | None = None,
        on_epoch: Callback | None = None, on_timer: Callback | None = None, timer_seconds: float = 10.0,
        read_vocab: Path | None = None, no_memory_check: bool = False, classes: int = 0, **others: Any
    ) -> Word2Vec:  # fmt: skip
        """Train new vectors on a text and return this object.

        A model that is already trained is replaced, and a warning says so; `checkpoint` and `resume` continue a run.

        source         a path, a list of paths, an open file, or an iterable of sentences (lists of words), read once
        valid          held-out text, likewise, whose loss is computed after each epoch
        progress       show a tqdm bar; None: on a terminal and in notebooks only; or a Progress
        on_epoch       called after each epoch with a dict: epoch, loss (nats), seconds, lr, words_per_s; with `valid`
                       also valid_loss
        on_timer       called every `timer_seconds` with a dict: words, loss, lr, words_per_s. Training stops if a
                       callback returns False
        read_vocab     path of a vocabulary file to use instead of counting words
        no_memory_check  train even if memory looks insufficient
        classes        number of classes to cluster the words into, written to `output` instead of the vectors
        others         files to write while training, fields of base.settings.Files: checkpoint, checkpoint_minutes,
                       resume, log_json, output, save_model, save_vocab, manifest, and so on; and, to train several
                       models on resamples of the documents, fields of models.word2vec.config.Resampling: runs,
                       resample, document; `runs` then has their vectors. To continue from earlier vectors, fields of
                       base.settings.Continuation: init_from, grow, freeze

        After Ctrl-C or a callback's False, the vectors trained so far are available; Ctrl-C raises KeyboardInterrupt.
        Raises TiedtoolsError for texts that cannot be read, Diverged if training diverges.
        """
        trainer = self.trainer(source, valid, read_vocab, no_memory_check, classes, **others)
        if not others.get("runs"):
            refuse_idle(others, write="output")
        refuse_idle({**others, "classes": classes}, classes="output", **OF_FILES, resample="runs", document="runs")
        return self.run(trainer, progress, on_epoch, on_timer, timer_seconds)

    @property
    def vectors(self) -> Vectors:
        """The word Vectors: the input vectors E; for tied+L skip-gram, E L + E.

        Raises TiedtoolsError before `fit`, and for several runs.
        """
        return self.word_vectors(default_vectors(self.model.config))

    wv = vectors  # gensim's name

    @property
    def runs(self) -> Runs:
        """The Runs of several models trained by `fit(..., runs=N)`. Raises TiedtoolsError for a single model."""
        from tiedtools.api.runs import Runs

        if not (complete := getattr(self.model, "complete", None)):
            raise TiedtoolsError("this is a single model; call `fit` with `runs`")
        return Runs.of(complete())
