"""Benchmark of word vectors: measure all contenders, and format the table."""

import contextlib
import functools

from benchmarks import rounds
from benchmarks.w2vcontenders import Ours, contenders
from benchmarks.w2vlimits import Machine, kept_fraction, mean_context, needs
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import processor_name


def measure(task, variants, modes, rivals, threads, runs, out=None):
    """Measure all contenders `runs` times with each number of `threads`; return the result that --json shows.

    out  path of a vector file, overwritten in every run, to measure whole processes; None: training alone
    """
    fraction, machine = kept_fraction(task.text.vocab, task.options["sample"]), None
    if not fraction:
        raise TiedtoolsError(f"--sample {task.options['sample']:g} leaves no word to train on; give a larger one, or 0")
    with contextlib.ExitStack() as processes:
        all_contenders = contenders(task, variants, modes, rivals, processes)
        config = all_contenders[0].config
        context, models = mean_context(task.text, config), [c for c in all_contenders if isinstance(c, Ours)]
        counts = sorted({c.matrices for c in models})
        if not out:
            machine = Machine(task.text.vocab, config, counts)

        def limit(contender, threads):
            flops, moved = needs(contender.config, context, machine.half(threads))
            centers, bound = machine.limit(flops, moved, threads, contender.matrices)
            return dict(limit=centers / fraction, bound=bound, flops=flops, bytes=moved)

        for contender in all_contenders:
            contender.out = out
        for contender in models:
            contender.limit = functools.partial(limit, contender)
        results = rounds.in_turns(all_contenders, threads, runs, "words", machine)
    return dict(
        processor=processor_name(), words=task.words, vocabulary=len(task.text.vocab), kept=fraction, context=context,
        **task.options, runs=runs, whole=bool(out), precisions={c.name: c.config.precision for c in models},
        gflops={t: machine.flops[t] / 1e9 for t in threads} if machine else {},
        gbytes={t: {n: machine.bytes[t, n] / 1e9 for n in counts} for t in threads} if machine else {},
        rows=rounds.rows(results, "words"),
    )  # fmt: skip


MODELS = {1: "tied", 2: "untied"}  # by matrices


def table(result):
    """Format the result of `measure` as text."""
    heading = (
        f"{result['words']:,} words, vocabulary {result['vocabulary']:,}; size {result['size']},"
        f" window {result['window']}, {result['negative']} negatives, sample {result['sample']:g}:"
        f" {result['kept']:.0%} of the words kept, with {result['context']:.1f} words of context"
    )
    return rounds.report(result, heading, list(rounds.peaks(result, lambda count: f"{MODELS[count]} models")))
