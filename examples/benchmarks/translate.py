"""Benchmark of beam search: translation models with random parameters, in tiedtools and PyTorch, in this process."""

import time

import numpy as np

from benchmarks import rounds
from benchmarks.nmt import DEVIATION, MEAN, SHORTEST, shape
from tiedtools.base.processor import processor_name
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.interpreter import decode
from tiedtools.models.translation.model import Translator
from tiedtools.text.vocab import Vocab


def ours(settings, vocabulary, threads):
    vocab = Vocab.made_up(vocabulary)
    return Translator(vocab, vocab, TranslationConfig(**settings, threads=threads))


def theirs(settings, vocabulary, threads):
    from benchmarks import torchnmt

    return torchnmt.Translator(vocabulary, settings["size"], settings["hidden"], settings["tie"], threads)


class Contender(rounds.Contender):
    """A program that translates `sources` with the options of `decode`; `make` builds its model."""

    def __init__(self, program, variant, make, vocabulary, sources, options):
        self.name, self.ours, self.peer, self.models = f"{program} {variant}", make is ours, variant, {}
        self.make, self.settings, self.vocabulary = make, shape(variant), vocabulary
        self.sources, self.options = sources, options

    def run(self, threads):
        """Translate all sources; each model is built and compiled once."""
        if threads not in self.models:
            self.models[threads] = self.make(self.settings, self.vocabulary, threads)
            decode(self.models[threads], self.sources[:2], **self.options)
        began = time.perf_counter()
        decode(self.models[threads], self.sources, **self.options)
        return dict(rate=len(self.sources) / (time.perf_counter() - began))


def sentences(n, vocabulary):
    """Return n sentences of random words, int32 IDs with `</s>`, with the lengths of Multi30k; always the same."""
    rng = np.random.default_rng(1)
    lengths = np.maximum(SHORTEST, rng.normal(MEAN, DEVIATION, n).round().astype(np.int64))
    return [np.append(rng.integers(1, vocabulary, k - 1), 0).astype(np.int32) for k in lengths]


def measure(variants, options, rivals, threads, runs):
    """Measure all contenders with each number of threads and return the result that --json shows.

    variants  strings that nmt.shape parses        rivals  "torch", or none
    options   dict of vocabulary, sentences, batch, beam, and length, the number of words of every translation
    """
    vocabulary, makers = options["vocabulary"], {"tiedtools": ours, **dict.fromkeys(rivals, theirs)}
    sources = sentences(options["sentences"], vocabulary)
    search = dict(batch=options["batch"], beam=options["beam"], max_length=options["length"])
    results = {}
    for variant in variants:
        contenders = [Contender(name, variant, make, vocabulary, sources, search) for name, make in makers.items()]
        results |= rounds.in_turns(contenders, threads, runs, "sentences")
    return dict(processor=processor_name(), **options, runs=runs, rows=rounds.rows(results, "sentences"))


def table(result):
    """Format the result of `measure` as text."""
    r = result
    settings = f"vocabulary {r['vocabulary']:,}, beam {r['beam']}, {r['batch']} sentences a batch"
    work = f"{r['sentences']:,} sentences a run, translated into at most {r['length']} words; runs: {r['runs']}"
    return rounds.report(r, f"{settings}; {work}")
