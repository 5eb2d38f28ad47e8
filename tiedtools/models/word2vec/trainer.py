"""Training of word2vec models from text files."""

from tiedtools.base.errors import Contradiction
from tiedtools.base.messages import log
from tiedtools.models.word2vec import exchange, workspaces
from tiedtools.models.word2vec.model import Word2Vec, require_vectors, resolved
from tiedtools.models.word2vec.ranksrun import RanksRun
from tiedtools.models.word2vec.run import Run
from tiedtools.runs.trainer import BITS, TYING, Trainer
from tiedtools.text.encoding import EncodedText, encode
from tiedtools.text.parts import shares
from tiedtools.text.sources import counted
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.kmeans import spherical_kmeans


class Word2VecTrainer(Trainer):
    """Trains a Word2Vec; `reading` may have min_count, max_vocab, read_vocab (a path), errors, and valid.

    valid    list of sources of a validation text, to report its loss after each epoch; None: no validation
    classes  number of classes to cluster the words into, written as `word class` lines instead of vectors; 0: vectors
    ranks    the Ranks of a parallel run, or None; ranks other than 0 write no files
    exchange_words, exchange_precision  as in RanksRun

    Raises Contradiction if the model does not have the vectors to write.
    """

    Model = Word2Vec
    valid: EncodedText | None = None
    advice = "lower `size`, or the vocabulary by `min_count` or `max_vocab`, or use `tying=tied`"

    def __init__(
        self, config, *texts_and_files, classes=0, ranks=None, exchange_words=None, exchange_precision="float32",
        **options,
    ):  # fmt: skip
        super().__init__(resolved(config), *texts_and_files, **options)
        self.ranks, self.exchange = ranks, dict(words=exchange_words, precision=exchange_precision)
        if ranks and config.deterministic:
            raise Contradiction("`deterministic` needs a single process; start one without an MPI launcher")
        self.width, self.classes = config.size, classes
        require_vectors(config, self.files.write)

    def read(self):
        r = dict(min_count=5, max_vocab=None, read_vocab=None, errors="strict", valid=None) | self.prepared()
        choice = r["min_count"], r["max_vocab"]
        vocab = None if r["read_vocab"] is None else Vocab.read(r["read_vocab"], *choice)
        ranks = self.ranks
        share = shares(self.texts, ranks.size)[ranks.rank] if ranks else self.texts
        text = encode(self.prepare(share), *choice, vocab, r["errors"], self.config.threads, ranks)
        read, size = text.tokens_read, text.size
        if ranks:
            totals = ranks.exchange((read, size, self.record.sources.found))
            read, size = (sum(column) for column in list(zip(*totals))[:2])
            self.record.sources.found = [source for *_, sources in totals for source in sources]
            self.record.figures["ranks"] = ranks.size
        log.info(
            f"text: {read:,} tokens including line ends, {size:,} of them in the vocabulary of"
            f" {len(text.vocab):,} words; {4 * size / 1e6:,.0f} MB of token IDs"
        )
        tokens = dict(train=read, in_vocabulary=size)
        if r["valid"] and not (ranks and ranks.rank):
            self.valid = encode(r["valid"], vocab=text.vocab, errors=r["errors"], threads=self.config.threads)
            log.info(
                f"validation text: {self.valid.tokens_read:,} tokens including line ends, {self.valid.size:,} of them"
                " in the vocabulary"
            )
            tokens["valid"] = self.valid.tokens_read
        return text, tokens

    def named(self, model):
        c = self.config
        bits = "" if workspaces.own_negatives(model.vocab, c) else BITS[c.precision]
        ranks = f", {counted(self.ranks.size, 'rank')}" if self.ranks else ""
        pmi = ", fit to PMI" if c.fit_pmi else ""
        return f"{'CBOW' if c.cbow else 'skip-gram'}, {TYING[c.tying]}{bits}{pmi}{ranks}"

    def begin(self, model, text, resume):
        if workspaces.own_negatives(model.vocab, self.config) and not self.config.exact:
            log.info(
                "few words, many negatives, wide windows, large batches, or a high rate:"
                " drawing separate negatives per target, as with `exact`"
            )
        common = self.files.checkpoint, self.files.checkpoint_minutes, resume, self.valid
        return RanksRun(model, text, self.ranks, *common, **self.exchange) if self.ranks else Run(model, text, *common)

    def run(self, progress, resume):
        return super().run(progress, self.ranks.broadcast(resume) if self.ranks else resume)

    def memory(self, text):
        return super().memory(text) + (exchange.memory(text.vocab, self.config) if self.ranks else 0)

    def finish(self, run):
        return run.traffic if self.ranks else {}

    def write_vectors(self, file, model):
        if not self.classes:
            super().write_vectors(file, model)
            return
        vectors = model.vectors(self.files.write)
        assigned = spherical_kmeans(vectors.matrix, min(self.classes, len(vectors)))
        file.writelines(f"{word} {k}\n".encode() for word, k in zip(vectors.words, assigned))
