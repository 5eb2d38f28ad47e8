"""Language models from Python: training, scoring, prediction, and generation."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from tiedtools.api.estimator import BATCH, COUNT, OF_FILES, Estimator, refuse_idle
from tiedtools.base.aliases import METHODS
from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import Files, LmContinuation, LmReading, Range, checked, documented, one_of
from tiedtools.evaluation.continuation import most_probable, read, sampled
from tiedtools.evaluation.lexicon import Lexicon, lines
from tiedtools.evaluation.neuralcache import cached
from tiedtools.evaluation.perplexity import Totals, fate, rescore, score_text
from tiedtools.evaluation.surprisal import UNITS, compare, read_pairs, surprisals
from tiedtools.files.families import LANGUAGE, Family, families
from tiedtools.models.composing import compose, of_words
from tiedtools.models.continuing import require_same
from tiedtools.models.lm.config import SHAPE, LstmConfig
from tiedtools.network.config import CELLS, SITES, Shorthands, documented_defaults
from tiedtools.runs.progress import Callback, Progress
from tiedtools.text.raw import as_trained, splitter
from tiedtools.text.sentences import sources, words_of
from tiedtools.text.sources import Path, is_path
from tiedtools.text.vocab import END
from tiedtools.training.schedules import Training
from tiedtools.vectors.vectors import Vectors


def kinds() -> dict[str, Family]:
    """Return the families of language models by kind, and by the commands that train them."""
    return {name: family for family in families(LANGUAGE) for name in (family.kind, *family.warm_up)}


@documented(LstmConfig, Training, Shorthands, LmReading, **documented_defaults(SITES))
class LanguageModel(Estimator):
    """A language model: an LSTM, or one with another cell, or Mikolov's class-based RNN with Rei's document vector.

    kind      "lstm" or "lm", which are equivalent and have the setting `cell`; its other values, "gru" and "rhn"; or
              "rnnlm"
    settings  the options of `tiedtools lm`, `lstm`, or `rnnlm`, with underscores. tying="untied", "tied", or "linear"
              (tied+L) stands for --tie and --tie-linear, output_bias=False for --no-output-bias. For "rnnlm", size is
              another name for hidden, --class and --gradient-cutoff are classes and cutoff, and models.rnnlm.config
              lists the settings; the settings of "lm" are below

    Raises Contradiction for settings that are unknown, of a wrong type, out of range, or contradictory.

    >>> model = LanguageModel("lstm", size=200, tying="tied", epochs=10).fit("train.txt", valid="valid.txt")
    >>> model.perplexity("test.txt")
    """

    instead: ClassVar = {"train": METHODS["train"]}
    of_fit = LmContinuation, Files
    cache: tuple[int, float, float] = (0, 1.0, 0.1)  # arguments of `with_cache`

    def __init__(self, kind: str = "lstm", **settings: Any) -> None:
        if kind in CELLS and kind not in kinds():
            if "cell" in settings:
                raise Contradiction(f"`cell` is already {kind}; omit it")
            kind, settings = "lm", settings | dict(cell=kind)
        one_of("kind", kind, [*kinds(), "gru", "rhn"])
        self.kind = kind
        super().__init__(kinds()[kind].get("configure"), settings)

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self.kind!r}{', ' * bool(self.settings)}", 1)

    def trainer(
        self, source: Any, valid: Any = None, test: Any = None, read_vocab: Path | None = None,
        no_memory_check: bool = False, **outputs: Any
    ) -> Any:  # fmt: skip
        """Return the Trainer that `fit` runs; arguments as for `fit`."""
        trainer, (continuation, run_files) = kinds()[self.kind].get("trainer"), self.files(outputs)
        if continuation.init_from:
            old = trainer.read_source(continuation.init_from)
            # Before `configure`, whose remedies may be other changes of the model.
            shape = [*SHAPE, *["transform_bias"] * (old.settings.get("cell") != "rhn")]
            require_same(old, {name: x for name, x in self.settings.items() if x is not None}, shape)
            config, training, reading = self.configure(old.settings, **self.settings)
            reading = reading | dict(continuation=continuation, source=old)
        else:
            config, training, reading = self.configured
        valid_and_test = {name: sources(text) for name, text in (("valid", valid), ("test", test)) if text is not None}
        reading = reading | valid_and_test
        reading |= dict(no_memory_check=no_memory_check, read_vocab=read_vocab and os.fspath(read_vocab))
        return trainer(config, training, sources(source), run_files, **reading)

    def fit(
        self, source: Any, valid: Any = None, test: Any = None, *, progress: bool | Progress | None = None,
        on_epoch: Callback | None = None, on_timer: Callback | None = None, timer_seconds: float = 10.0,
        read_vocab: Path | None = None, no_memory_check: bool = False, **outputs: Any
    ) -> LanguageModel:  # fmt: skip
        """Train a new model on a text and return this object.

        A model that is already trained is replaced, and a warning says so; `checkpoint` and `resume` continue a run.

        source         a path, a list of paths, an open file, or an iterable of sentences (lists of words), read once
        valid, test    validation and test text, likewise; without `valid`, the last `valid_share` of the source is
                       held out
        progress       show a tqdm bar; None: on a terminal and in notebooks only; or a Progress
        on_epoch       called after each epoch with a dict: epoch, lr, train_ppl, valid_ppl, words_per_s, seconds
        on_timer       called every `timer_seconds` with a dict: words, loss (nats), lr, words_per_s. Training stops
                       if a callback returns False
        read_vocab     path of a vocabulary file to use instead of counting words
        no_memory_check  train even if memory looks insufficient
        outputs        files to write while training, fields of base.settings.Files: checkpoint, checkpoint_minutes,
                       resume, log_json, output, save_model, save_vocab, manifest, and so on. To continue from a model
                       of "lm", whose settings are then the defaults, fields of base.settings.LmContinuation:
                       init_from, grow, freeze

        After Ctrl-C or a callback's False, the model of the best epoch so far is available; Ctrl-C raises
        KeyboardInterrupt. Raises TiedtoolsError for texts that cannot be read, Diverged if training diverges.
        """
        trainer = self.trainer(source, valid, test, read_vocab, no_memory_check, **outputs)
        refuse_idle(outputs, **OF_FILES, write="output")
        return self.run(trainer, progress, on_epoch, on_timer, timer_seconds)

    @property
    def lexicon(self) -> Lexicon:
        """A Lexicon of the model's vocabulary, which counts out-of-vocabulary words."""
        return Lexicon(self.model.vocab)

    @property
    def split(self) -> Callable[[str | Iterable[str]], list[str]]:
        """The function that splits a string into the words that the model reads; words remain as they are."""
        return splitter(**as_trained(self.model.settings, tell=False))

    def compose(self, words: Iterable[str], which: str = "in") -> Vectors:
        """Return the Vectors of any words, composed from their subwords by a model trained with `subwords`.

        Unknown subwords are left out, as are words without known subwords. which: as for `word_vectors`.
        Raises TiedtoolsError if the model does not compose these vectors.
        """
        one_of("which", which, self.sides)
        return compose(self.model, words_of(words), which)

    def of_words(self, words: Iterable[str]) -> LanguageModel:
        """Return this model with another vocabulary and composed output vectors, as `tiedtools ppl --vocabulary`.

        The returned model cannot be saved.

        words  the vocabulary, to which `</s>` is added; words with unknown subwords are left out

        Raises TiedtoolsError if the model does not compose its output vectors.
        """
        model = copy.copy(self)
        model.trained = of_words(self.model, list(dict.fromkeys([END, *words_of(words)])))
        return model

    def with_cache(self, cache: int, cache_theta: float = 1.0, cache_lambda: float = 0.1) -> LanguageModel:
        """Return this model with a continuous cache for all methods that compute probabilities, as `ppl --cache`.

        `save` does not store the cache.

        cache         number of words in the cache; 0: no cache
        cache_theta   factor of the cache's scores
        cache_lambda  weight of the cache's probabilities; tune both on a validation text
        """
        model = copy.copy(self)
        model.cache = cache, cache_theta, cache_lambda
        model.scorer()  # checks the values
        return model

    def scorer(self) -> Any:
        """Return the model with its cache, if it has one."""
        return cached(self.model, *self.cache)

    def statistics(self, text: Any, *, independent: bool = False, batch: int | None = None) -> dict[str, Any]:
        """Return the figures of `tiedtools ppl --json` for a text: counts, log10 probability, ppl, and ppl1.

        text         a source as for `fit`, split into words as in training; of a field of records:
                     (text.split() for text in documents(path, field)). The state carries over between sentences
        independent  score each sentence independently
        batch        split the text into this many streams, which is faster and slightly changes the result; with
                     `independent`, number of sentences scored at a time

        Words outside the vocabulary are scored as `<unk>`, and `as_unk` is their number. If the vocabulary has no
        `<unk>`, they are skipped, `oovs` is their number, and a warning also gives it.
        """
        batch, lexicon = checked("batch", batch, int | None, BATCH), self.lexicon
        totals = Totals(lexicon.unk)
        for part in self.raw(text):
            for piece in score_text(self.scorer(), lexicon, part, "strict", independent, batch):
                totals.add(piece)
        if lexicon.unk is None:
            lexicon.log_oovs()
        return totals.as_dict()

    def perplexity(self, text: Any, *, independent: bool = False, batch: int | None = None) -> float:
        """Return the perplexity of a text per token, with line ends and words scored as `<unk>`; see `statistics`."""
        ppl = self.statistics(text, independent=independent, batch=batch)["ppl"]
        return float("nan") if ppl is None else float(ppl)

    def surprisal(
        self, text: Any, *, unit: str = "bits", independent: bool = False, batch: int | None = None,
        separator: str = "@@"
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Return an iterator over the rows of `tiedtools ppl --words`, a dict for each word and sentence end of a text.

        text         a source as for `fit`; sentences are numbered from 1 in each path
        unit         "bits" or "nats"
        independent, batch  see `statistics`
        separator    tokens that end in it continue in the next token, whose surprisal is added

        >>> pandas.DataFrame(model.surprisal("test.txt"))
        """
        one_of("unit", unit, UNITS)
        options = independent, checked("batch", batch, int | None, BATCH), unit, separator
        if not independent and (batch or 1) > 1:
            raise Contradiction(f"`batch={batch}` splits sentences: set `independent`, or omit it")
        texts = (surprisals(self.scorer(), self.lexicon, part, "strict", *options) for part in self.raw(text))
        return (row for lines in texts for _, rows in lines for row in rows)

    def score(self, sentences: Any, *, batch: int = 64, oov_logprob: float = -5.0) -> np.ndarray:
        """Return the log10 probability of each sentence with its end, float64 [n], as KenLM and SRILM print it.

        sentences    a source as for `fit`; each sentence is scored independently
        batch        number of sentences scored at a time
        oov_logprob  log10 probability of each word outside a vocabulary without `<unk>`; rnnlm's by default

        A warning gives the number of words outside the vocabulary.
        """
        batch, lexicon = checked("batch", batch, int, BATCH), self.lexicon
        oov_logprob = checked("oov_logprob", oov_logprob, float, Range(-1000, 0))
        hypotheses = ((None, words) for text in self.raw(sentences, unit="line") for _, words in lines(text))
        scores = np.fromiter(rescore(self.scorer(), lexicon, hypotheses, batch, oov_logprob), np.float64)
        lexicon.log_oovs(fate(oov_logprob))
        return scores

    def minimal_pairs(self, pairs: Any, *, batch: int = 64, oov_logprob: float = -5.0) -> list[dict[str, Any]]:
        """Compare acceptable and unacceptable sentences, as `tiedtools nbest --pairs`.

        pairs  a path, a list of paths, or an iterable of tuples (good, bad) or (good, bad, paradigm); sentences are
               strings or lists of words. batch, oov_logprob: see `score`

        Returns a dict for each paradigm, and for their mean if there are several: paradigm, pairs, ties, unknown (pairs
        with unknown words, which are not compared), accuracy, low, high, accuracy_unknown.
        """
        paths = [pairs] if is_path(pairs) else list(pairs)
        texts = paths if all(map(is_path, paths)) else [paths]
        oov_logprob = checked("oov_logprob", oov_logprob, float, Range(-1000, 0))
        found = (pair for text in texts for pair in read_pairs(text, split=self.split))
        return compare(self.scorer(), self.lexicon, found, checked("batch", batch, int, BATCH), oov_logprob)

    def next_words(self, context: str | Iterable[str] = (), top: int = 10) -> list[tuple[str, float]]:
        """Return the `top` most probable words after a context, with probabilities; `</s>` is the end of the sentence.

        context  words since the beginning of the sentence, as a list, or as a string with blanks between them
        """
        top, lexicon = checked("top", top, int, Range(0)), self.lexicon
        ids = lexicon.ids(lexicon.codes(self.split(context)))
        model = self.scorer()
        logprobs, _ = read(model, [0, *ids], model.start(1))
        return [(lexicon.words[k], p) for k, p in most_probable(logprobs, top)]

    def generate(
        self, sentences: int | None = None, words: int | None = None, *, prompt: str | Iterable[str] | None = None,
        temperature: float = 1.0, top_k: int | None = None, no_unk: bool = False, seed: int = 1
    ) -> Iterator[list[str]]:  # fmt: skip
        """Generate sentences, lists of words, until either limit is reached; `words` does not count sentence ends.

        sentences, words  limits; neither: 10 sentences
        prompt            words that begin every sentence, each then generated independently
        temperature       softmax temperature; 0 always picks the most probable word, so that a sentence may never
                          end: give `words`
        top_k             sample only from the most probable words
        no_unk            never generate `<unk>`
        seed              random seed; the same seed gives the same text
        """
        limits = checked("sentences", sentences, int | None, COUNT), checked("words", words, int | None, COUNT)
        temperature = checked("temperature", temperature, float, Range(0))
        choice = dict(seed=checked("seed", seed, int, Range(0)), top_k=checked("top_k", top_k, int | None, COUNT))
        lexicon = self.lexicon
        prompt_words = [] if prompt is None else self.split(prompt)
        ids = None if prompt is None else lexicon.ids(lexicon.codes(prompt_words))
        choice |= dict(temperature=temperature, banned=lexicon.unk if no_unk else None)
        return grouped(sampled(self.scorer(), lexicon.words, ids, *limits, **choice), prompt_words)


def grouped(words: Iterable[str | None], prompt: list[str]) -> Iterator[list[str]]:
    """Yield sentences, each beginning with the prompt, from words; None ends a sentence."""
    sentence = [*prompt]
    for word in words:
        if word is not None:
            sentence.append(word)
            continue
        yield sentence
        sentence = [*prompt]
