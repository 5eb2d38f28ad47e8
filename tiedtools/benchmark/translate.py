"""`tiedtools bench translate`: speed of beam search, compared with the same model in PyTorch and the same search."""

import time

import numpy as np

from tiedtools.base.processor import processor_name
from tiedtools.base.version import __version__
from tiedtools.benchmark.nmt import MEAN, SHORTEST, shape
from tiedtools.benchmark.rounds import aligned, in_turns, spread
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.interpreter import decode
from tiedtools.models.translation.model import Translator
from tiedtools.text.vocab import Vocab

DEVIATION = 4  # of the lengths of sentences


class Contender:
    """A program that translates; `make` returns its model for a variant, vocabulary size, and number of threads."""

    def __init__(self, program, variant, vocabulary, make):
        self.name, self.models = f"{program} {variant}", {}
        self.make = lambda threads: make(shape(variant), vocabulary, threads)

    def translate(self, sources, threads, **options):
        """Translate with this number of threads, and return the seconds. Each model is made and compiled once."""
        if threads not in self.models:
            self.models[threads] = self.make(threads)
            decode(self.models[threads], sources[:2], **options)
        began = time.perf_counter()
        decode(self.models[threads], sources, **options)
        return time.perf_counter() - began


def ours(settings, vocabulary, threads):
    vocab = Vocab.made_up(vocabulary)
    return Translator(vocab, vocab, TranslationConfig(**settings, threads=threads))


def theirs(settings, vocabulary, threads):
    from tiedtools.benchmark.torchtranslate import TorchTranslator

    return TorchTranslator(vocabulary, settings["size"], settings["hidden"], settings["tie"], threads)


def sentences(n, vocabulary):
    """Return n sentences of random words, int32 ids with `</s>`, with the lengths of Multi30k; always the same."""
    rng = np.random.default_rng(1)
    lengths = np.maximum(SHORTEST, rng.normal(MEAN, DEVIATION, n).round().astype(np.int64))
    return [np.append(rng.integers(1, vocabulary, k - 1), 0).astype(np.int32) for k in lengths]


def measure(variants, options, rivals, threads, runs):
    """Measure all contenders with each number of threads and return the result that --json shows.

    variants  strings as parsed by nmt.shape        rivals  "torch", or none
    options   dict of vocabulary, sentences, batch, beam, and length, the number of words of every translation
    """
    rows, vocabulary, n = [], options["vocabulary"], options["sentences"]
    searching = dict(batch=options["batch"], beam=options["beam"], max_length=options["length"])
    sources = sentences(n, vocabulary)
    for variant in variants:
        makers = {"tiedtools": ours, **dict.fromkeys(rivals, theirs)}
        everyone = [Contender(program, variant, vocabulary, make) for program, make in makers.items()]
        go = lambda contender, t: contender.translate(sources, t, **searching)
        results = in_turns(everyone, threads, runs, go, lambda seconds: f"{n / seconds:,.1f} sentences/s")
        first = len(rows)
        for (contender, t), found in results.items():
            speeds = spread("sentences_per_s", (n / seconds for seconds in found))
            rows.append(dict(name=contender.name, threads=t, **speeds))
            if contender is not everyone[0]:
                own = next(row for row in rows[first:] if row["threads"] == t)
                rows[-1]["ratio"] = own["sentences_per_s"] / speeds["sentences_per_s"]
    return dict(processor=processor_name(), **options, runs=runs, rows=rows)


def table(result):
    """Format the result of `measure` as text."""
    r = result
    settings = f"vocabulary {r['vocabulary']:,}, beam {r['beam']}, {r['batch']} sentences a batch"
    work = f"{r['sentences']:,} sentences a run, translated into at most {r['length']} words; runs: {r['runs']}"
    head = [f"tiedtools {__version__} on {r['processor']}", f"{settings}; {work}", ""]
    return "\n".join([*head, *aligned(r["rows"]), ""])
