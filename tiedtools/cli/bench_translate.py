"""`tiedtools bench translate`: benchmark beam search."""

import click

from tiedtools.cli.bench_nmt import VARIANTS
from tiedtools.cli.options import Threads, json_option, listed, option


@click.command("translate", short_help="Benchmark beam search against PyTorch.")
@option("variants", callback=listed, default="256/128-all", metavar="NAMES", help=f"Models: {VARIANTS}.")
@option("vocabulary", type=click.IntRange(3, 10**8), default=10_000, help="Vocabulary size of each side in words.")
@option("sentences", type=click.IntRange(1, 10**6), default=640, help="Sentences per run.")
@option("batch", type=click.IntRange(1, 4096), default=64, help="Sentences in a batch.")
@option("beam", type=click.IntRange(1, 1000), default=5, help="Beam size.")
@option("length", type=click.IntRange(1, 10**5), default=14, metavar="N", help="End translations after N words.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported.")
@option("against", multiple=True, metavar="RIVAL", help="Compare with torch.")
@json_option("Print one JSON object instead of a table.")
def command(variants, threads, runs, against, as_json, **options):
    """Measure the speed of beam search in sentences per second.

    Models have random parameters, so nearly all translations have --length words. The sentences are synthetic, with
    the lengths of Multi30k, and always the same. torch is the same model in PyTorch, with the same search. Programs run
    in turn, in one process.
    """
    import json

    from tiedtools.benchmark.lstm import refuse_missing
    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.nmt import shape
    from tiedtools.benchmark.translate import measure, table

    for name in variants:
        shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing(rivals, ["torch"])
    warn_if_busy()
    result = measure(variants, options, rivals, threads or Threads.up_to_all(), runs)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
