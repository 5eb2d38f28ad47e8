"""Training of word2vec models from text files."""

import dataclasses
from typing import Any, BinaryIO

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.settings import WORDS, Continuation, Tokenization
from tiedtools.files.output import STDOUT, refuse_packed
from tiedtools.models.continuing import identity, log_start
from tiedtools.models.word2vec import exchange, workspaces
from tiedtools.models.word2vec.config import Config, Resampling, default_vectors
from tiedtools.models.word2vec.continuing import check, read_source, start_from
from tiedtools.models.word2vec.manyruns import WHOLE, ManyRuns, TrainedRuns, documents_of
from tiedtools.models.word2vec.model import Word2Vec, require_vectors, resolved
from tiedtools.models.word2vec.ranksrun import RanksRun
from tiedtools.models.word2vec.run import Run
from tiedtools.parallel.ranks import Ranks
from tiedtools.runs.files import Writer
from tiedtools.runs.progress import EpochLog
from tiedtools.runs.session import Session
from tiedtools.runs.trainer import BITS, TYING, Trainer
from tiedtools.text.encoding import EncodedText, Marks, encode
from tiedtools.text.parts import shares
from tiedtools.text.sources import counted
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.edit import spherical_kmeans
from tiedtools.vectors.vectors import files_read, trained_format

ONE_RUN, NEW = Resampling(), Continuation()
FEW = 20  # documents for which a bootstrap interval means little
WAYS = {"documents": "drawn with replacement", "shuffle": "in random order"}


class Word2VecTrainer(Trainer):
    """Trains a Word2Vec; `reading` may have the settings of Reading, read_vocab (a path), and valid.

    valid    list of sources of a validation text, to report its loss after each epoch; None: no validation
    classes  number of classes to cluster the words into, written as `word class` lines instead of vectors; 0: vectors
    continuation  a Continuation
    align    whether to align the vectors of several runs to those that they continue from
    resampling  a Resampling; with `runs`, the model is a TrainedRuns, whose `save` writes the output
    ranks    the Ranks of a parallel run, or None; ranks other than 0 write no files
    exchange_words, exchange_precision  as in RanksRun

    Raises Contradiction if the model does not have the vectors to write.
    """

    Model = Word2Vec
    valid: EncodedText | None = None
    source: Any = None  # the Source that training continues from
    marks: Any = None  # encoding.Marks of several runs
    advice = "lower `size`, or the vocabulary by `min_count` or `max_vocab`, or use `tying=tied`"

    def __init__(
        self, config: Config, *texts_and_files: Any, classes: int = 0, continuation: Continuation = NEW,
        align: bool = False, resampling: Resampling = ONE_RUN, ranks: Ranks | None = None,
        exchange_words: int | None = None, exchange_precision: str = "float32", **options: Any,
    ) -> None:  # fmt: skip
        config = resolved(config)
        self.lr_linear = config.lr_linear
        if continuation.freeze == "old":
            config = dataclasses.replace(config, lr_linear=0.0)  # vectors of known words depend on L
        super().__init__(config, *texts_and_files, **options)
        self.continuation, self.resampling, self.align = continuation, resampling, align
        self.ranks, self.exchange = ranks, dict[str, Any](words=exchange_words, precision=exchange_precision)
        if ranks and config.deterministic:
            raise Contradiction("`deterministic` needs a single process; start one without an MPI launcher")
        self.width, self.classes = config.size, classes
        trained_format(self.files.output, two_files=not (classes or resampling.runs))
        if self.is_fasttext(self.files.output) and not self.files.binary and not classes:
            self.format = "fasttext"
            if self.files.write not in ("in", default_vectors(config)):
                problem = "a model of fastText (.bin) has input vectors; omit it"
                raise Contradiction(f"`write={self.files.write}`: {problem}")
        require_vectors(config, self.files.write)
        if resampling.runs:
            self.prepare_runs()
            self.also = (self.resampling,)
        if continuation.init_from:
            self.also += (continuation,)
            self.source = read_source(continuation.init_from)
            check(self.source, config, continuation)
            self.reads = files_read(continuation.init_from)
            self.origin = self.reads[0]
            if ranks or self.reading.get("read_vocab"):
                raise Contradiction("`init_from` does not work with `read_vocab` or an MPI launcher; omit one")

    def is_fasttext(self, path: str | None) -> bool:
        """Return whether a file is written as a model of fastText: by its name, of a model with subwords."""
        return bool(self.config.subwords) and (path or "").endswith(".bin") and not self.resampling.runs

    def prepare_runs(self) -> None:
        """Set `marks` and the default of `document`. Raises Contradiction for settings that only a single run has."""
        files, several = self.files, len(self.texts) > 1
        single = dict(classes=self.classes, save_model=files.save_model, valid=self.reading.get("valid"))
        if wrong := next((name for name, value in single.items() if value), None):
            raise Contradiction(f"`{wrong}` does not apply to several runs; omit it, or `runs`")
        if self.ranks:
            raise Contradiction("`runs` needs a single process; start one without an MPI launcher")
        refuse_packed(files.output)
        if files.output in STDOUT:
            raise Contradiction("`runs` needs `output` FILE: runs cannot be written to standard output")
        field = self.reading.get("field")
        document = self.resampling.document or ("record" if field else "file" if several else "line")
        if document == "record" and not field:
            raise Contradiction("`document=record` needs `field`, the name of the field with the text")
        self.resampling = dataclasses.replace(self.resampling, document=document)
        tokenize = self.reading.get("tokenize") or WORDS
        divided = document == "line" and not field and tokenize != WORDS and Tokenization.of(tokenize).sentences
        self.marks = Marks(document, "lines" if divided else None)  # the sentences of a line are one document

    def read(self) -> tuple[EncodedText, dict[str, int]]:
        r = dict(min_count=5, max_vocab=None, read_vocab=None, errors="strict", valid=None) | self.raw_reading()
        choice = r["min_count"], r["max_vocab"]
        vocab = None if r["read_vocab"] is None else Vocab.read(r["read_vocab"], *choice)
        ranks, known, grow = self.ranks, self.source and self.source.vocab, self.continuation.grow
        share = shares(self.texts, ranks.size)[ranks.rank] if ranks else self.texts
        unit = self.marks.unit if self.marks else "text"
        source = self.raw(share, unit=unit if unit in ("record", "lines", "paragraph") else "text")
        text = encode(source, *choice, vocab, r["errors"], self.config.threads, ranks, self.marks, known, grow)
        read, size = text.tokens_read, text.size
        if ranks:
            totals = ranks.exchange((read, size, self.record.sources.found))
            read, size = (sum(column) for column in list(zip(*totals))[:2])
            if size and (empty := [rank for rank, (_, tokens, _) in enumerate(totals) if not tokens]):
                raise TiedtoolsError(f"the text of rank {empty[0]} has no word of the vocabulary; use fewer ranks")
            self.record.sources.found = [source for *_, sources in totals for source in sources]
            self.record.figures["ranks"] = ranks.size
        known_tokens = f"{size:,} of them in the vocabulary of {len(text.vocab):,} words"
        log.info(f"text: {read:,} tokens including line ends, {known_tokens}; {4 * size / 1e6:,.0f} MB of token IDs")
        tokens = dict(train=read, in_vocabulary=size)
        if r["valid"] and not (ranks and ranks.rank):
            self.valid = encode(r["valid"], vocab=text.vocab, errors=r["errors"], threads=self.config.threads)
            sizes = f"{self.valid.tokens_read:,} tokens including line ends, {self.valid.size:,} of them"
            log.info(f"validation text: {sizes} in the vocabulary")
            tokens["valid"] = self.valid.tokens_read
        return text, tokens

    def make(self, text: EncodedText) -> Any:
        if self.resampling.runs:
            model = TrainedRuns(text, self.config, self.resampling, self.files.write)
            if self.source:
                model.continued = identity(str(self.origin), self.continuation)
            if self.align:
                model.reference = self.prepared(super().make(text)).vectors(self.files.write).matrix
            return model
        if self.source:
            log_start(self.source, text.vocab, text.counts)
        model = self.prepared(super().make(text))
        self.source = None  # frees its memory
        model.occurrences = text.occurrences
        return model

    def prepared(self, model: Word2Vec) -> Word2Vec:
        """Return a new model with the parameters that training continues from, if any."""
        if self.source:
            start_from(model, self.source, self.continuation)
        return model

    def named(self, model: Any) -> str:
        c = self.config
        bits = "" if workspaces.own_negatives(model) else BITS[c.precision]
        ranks = f", {counted(self.ranks.size, 'rank')}" if self.ranks else ""
        ngrams = f", {len(model.ngrams):,} rows of words and n-grams" if getattr(model, "ngrams", None) else ""
        pmi = ", fit to PMI" if c.fit_pmi and c.negative else ""
        runs = f", {counted(self.resampling.runs, 'run')}" if self.resampling.runs else ""
        return f"{'CBOW' if c.cbow else 'skip-gram'}, {TYING[c.tying]}{bits}{pmi}{ngrams}{ranks}{runs}"

    def begin(self, model: Any, text: EncodedText, resume: bool) -> Session:
        if workspaces.own_negatives(model) and not self.config.exact:
            why = "few words, many negatives, wide windows, large batches, or a high rate"
            log.info(f"{why}: drawing separate negatives per target, as with `exact`")
        files = self.files.checkpoint, self.files.checkpoint_minutes, resume
        if self.resampling.runs:
            way, bounds = self.resampling.resample, documents_of(text, self.marks, self.resampling.resample)
            if way != "none":
                whole = f"; {model.W} more runs on the whole text" if model.W else ""
                log.info(f"{len(bounds) - 1:,} documents (one per {self.marks.kind}), {WAYS[way]}{whole}")
            if way == "documents" and len(bounds) <= FEW and self.resampling.runs > 1:
                remedy = "give more text" if self.marks.kind == "line" else "choose a smaller unit: `document`"
                log.warning(f"intervals from fewer than {FEW} documents are unreliable; {remedy}")
            model.training["documents"] = len(bounds) - 1
            return ManyRuns(model, text, bounds, *files, self.prepared)
        common = *files, self.valid
        return RanksRun(model, text, self.ranks, *common, **self.exchange) if self.ranks else Run(model, text, *common)

    def run(self, progress: EpochLog, resume: bool) -> Any:
        return super().run(progress, self.ranks.broadcast(resume) if self.ranks else resume)

    def memory(self, text: EncodedText) -> int:
        if self.resampling.runs:
            one = self.Model.memory(text.vocab, dataclasses.replace(self.config, threads=1))
            return min(self.config.threads, self.resampling.runs + WHOLE) * one + 4 * text.size
        return super().memory(text) + (exchange.memory(text.vocab, self.config) if self.ranks else 0)

    def sizes(self, model: Any) -> dict[Any, int]:
        if self.resampling.runs:
            return {self.files.output: model.every.nbytes}
        buckets = 4 * (2 * len(model.vocab) + self.config.buckets) * self.config.size
        sizes = super().sizes(model)
        return {path: buckets if self.is_fasttext(path) else size for path, size in sizes.items()}

    def writers(self, model: Any) -> dict[str, Writer]:
        if self.resampling.runs:
            return {"output": model.save}
        model.config = dataclasses.replace(model.config, lr_linear=self.lr_linear)  # for training that continues it
        saved = {"save_model": model.save_fasttext} if self.is_fasttext(self.files.save_model) else {}
        return super().writers(model) | saved

    def finish(self, run: Any) -> dict[str, Any]:
        return run.traffic if self.ranks else {}

    def write_vectors(self, file: BinaryIO, model: Any) -> None:
        if self.classes:
            vectors = model.vectors(self.files.write)
            assigned = spherical_kmeans(vectors.matrix, min(self.classes, len(vectors)))
            file.writelines(f"{word} {k}\n".encode() for word, k in zip(vectors.words, assigned))
        elif self.format == "fasttext":
            model.save_fasttext(file)
        else:
            super().write_vectors(file, model)
