"""`tiedtools bench mpi`: benchmark training of word vectors on several ranks."""

import click

from tiedtools.cli.options import Finite, Threads, flag, json_option, option, plain


@click.command("mpi", short_help="Benchmark word vectors on several ranks under MPI.")
@click.argument("text", required=False, callback=plain)
@option("words", type=click.IntRange(100), default=5_000_000, help="Length of the synthetic text in words.")
@option("size", type=click.IntRange(1, 10**5), default=300, help="Dimension of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Maximum distance between target and context word.")
@option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram.")
@flag("tie-signs", "Train vectors tied with fixed signs instead of untied ones.")
@option("negative", type=click.IntRange(1, 10**4), default=5, help="Negative samples per target.")
@option("sample", type=Finite(0), default=1e-4, help="Subsampling threshold of frequent words; 0 disables.")
@option("min-count", type=click.IntRange(0), default=5, help="Discard words that occur less often than this.")
@option("epochs", also="iter", type=click.IntRange(1, 10**4), default=1, help="Number of epochs.")
@option(
    "ranks",
    type=Threads(),
    help="Numbers of ranks to measure. 1,4: 1 and 4; 4: 1, 2, and 4; 4,: only 4.  [default: 1,2,4]",
)
@option("threads", type=click.IntRange(1, 1024), default=1, help="Training threads of each rank.")
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported.")
@option("exchange-words", type=Finite(1), metavar="N", help="As in `tiedtools w2v`.  [default: as there]")
@option(
    "exchange-precision",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    help="Precision of the changes that are exchanged.",
)
@option(
    "delay", type=Finite(0, 10**6), default=0, metavar="MS", help="Minimum duration of an exchange in milliseconds."
)
@json_option("Print one JSON object instead of a table.")
def command(text, words, epochs, min_count, tie_signs, ranks, threads, runs, delay, as_json, **options):
    """Measure how the training speed of word vectors depends on the number of ranks, in words per second.

    Each run is a whole `mpiexec -n N tiedtools w2v` on this machine; words per second are those of training, without
    start-up, counting, and writing. TEXT and the counting of words are as for `tiedtools bench w2v`. For comparison,
    one process without MPI is measured with one thread and with as many threads as all ranks have, up to the number of
    cores. All take turns.

    \b
    x process     ratio to the process with as many threads, up to the number of cores
    MB exchanged  changes that all ranks have sent into sums, without the repetitions of MPI's algorithm
    waiting       share of the training time that ranks wait for exchanges and for each other, on average

    --delay simulates a slow network. See docs/mpi.md.
    """
    import json
    import os

    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.mpi import launcher, measure, table
    from tiedtools.benchmark.zipf import text_or_made

    launcher()
    warn_if_busy()
    exchange = {f"exchange-{name}": options.pop(f"exchange_{name}") for name in ("words", "precision")}
    options |= {"min-count": min_count, "iter": epochs}
    ranks = ranks or [1, 2, 4]
    with text_or_made(text, words) as (folder, path):
        log = os.path.join(folder, "log")
        result = measure(path, options, tie_signs, ranks, threads, runs, exchange, log, delay)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
