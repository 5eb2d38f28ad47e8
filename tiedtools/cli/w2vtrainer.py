"""How `tiedtools w2v` trains."""

import click

from tiedtools.cli.options import from_options, refuse_twice, sharing
from tiedtools.cli.report import Report
from tiedtools.cli.trainer import BITS, SHARING, Trainer
from tiedtools.cores import available_cores
from tiedtools.messages import log
from tiedtools.models.word2vec import places
from tiedtools.models.word2vec.model import Config, Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.text.encoding import encode
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.kmeans import spherical_kmeans


class W2vTrainer(Trainer):
    Model = Word2Vec
    ways = "lower -size, or the vocabulary by -min-count or --max-vocab, or use --tie"

    def __init__(self, ctx):
        super().__init__(ctx)
        o = self.options
        settings = dict(o, hs=bool(o["hs"]), cbow=bool(o["cbow"]), threads=o["threads"] or available_cores())
        self.config = from_options(Config, dict(settings, sharing=sharing(o["tie"], o["tie_linear"])))
        self.width = self.config.size
        of_l = "lr_linear", "init_linear", "precision"
        idle = {} if o["tie_linear"] else dict.fromkeys(of_l, "without --tie-linear")
        own = "where each target has negatives of its own"
        idle |= {"batch": own, "precision": own} if self.config.exact else {}
        self.tell_idle(idle)
        o["write"] = o["write"] or ("sum" if o["tie_linear"] and not o["cbow"] else "in")
        refuse_twice(o["write"], self.config.sharing == "tied")
        if o["write"] != "in" and not o["negative"]:
            raise click.UsageError("hierarchical softmax has no output word vectors: use --write in")

    def read(self):
        o = self.options
        choice = o["min_count"], o["max_vocab"]
        vocab = None if o["read_vocab"] is None else Vocab.read(o["read_vocab"], *choice)
        text = encode(self.texts, *choice, vocab, o["errors"])
        log.info(
            f"text: {text.tokens_read:,} tokens with line ends, {text.size:,} of them in the vocabulary of"
            f" {len(text.vocab):,} words ({4 * text.size / 1e6:,.0f} MB of ids)"
        )
        return text, dict(train=text.tokens_read, in_vocabulary=text.size)

    def named(self, model):
        c = self.config
        bits = "" if places.exact(model.vocab, c) else BITS[c.precision]
        return f"{'CBOW' if c.cbow else 'skip-gram'}, {SHARING[c.sharing]}{bits}"

    def begin(self, model, text, resume):
        if places.exact(model.vocab, self.config) and not self.config.exact:
            log.info(
                "few words, many negatives, wide windows, large batches or a high rate:"
                " each target has negatives of its own, as with --exact"
            )
        return Run(model, text, self.options["checkpoint"], self.options["checkpoint_minutes"], resume)

    def report(self, figures):
        return Report(self.options["debug"], figures)

    def write(self, name, file, model):
        classes = self.options["classes"]
        if name == "save_model" or not classes:
            super().write(name, file, model)
            return
        vectors = model.vectors(self.options["write"])
        assigned = spherical_kmeans(vectors.matrix, min(classes, len(vectors)))
        file.writelines(f"{word} {k}\n".encode() for word, k in zip(vectors.words, assigned))

    def finish(self, run, report):
        report.write(params=run.model.n_params, seconds=round(run.seconds, 3))
        return {}
