"""`tiedtools bench rnnlm`: benchmark RNN training."""

import click

from tiedtools.cli.options import Threads, json_option, listed, option, plain


@click.command("rnnlm", short_help="Benchmark RNN language models against rnnlm and faster-rnnlm.")
@click.argument("text", required=False, callback=plain)
@option(
    "variants",
    callback=listed,
    default="100,100-sentences,100+20-sentences",
    metavar="NAMES",
    help="Models: HIDDEN or HIDDEN+DOC (hidden units, document-vector dimension), optionally with suffix -sentences,"
    " -defer, or both.",
)
@option("words", type=click.IntRange(1000), default=1_000_000, help="Length of the synthetic text in words.")
@option(
    "vocabulary", type=click.IntRange(2, 10**8), default=10_000, help="Vocabulary size of the synthetic text in words."
)
@option("class", "classes", type=click.IntRange(1, 10**6), default=100, help="Number of word classes.")
@option("bptt", type=click.IntRange(0, 10**4), default=4, help="BPTT steps, as in `tiedtools rnnlm`.")
@option(
    "bptt-block", "block", type=click.IntRange(1, 10**4), default=10, help="Words per block, as in `tiedtools rnnlm`."
)
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported.")
@option(
    "against",
    multiple=True,
    metavar="RIVAL",
    help="Compare with rnnlm=PATH, faster-rnnlm=PATH, or faster-rnnlm-nce=PATH; repeatable.",
)
@json_option("Print one JSON object instead of a table.")
def command(text, variants, words, vocabulary, threads, runs, against, as_json, **options):
    """Measure RNN training speed in words per second, and compare it with the hardware limit.

    TEXT is an uncompressed text file with one sentence per line. Without it, a synthetic text with Zipf-distributed
    words is used, always the same. A run is one epoch; only training is timed. Line ends count as words, as in the
    other programs.

    A variant uses BPTT over blocks of words, as Mikolov's rnnlm, or with -sentences over whole sentences from a learned
    initial state, as Rei's model. With -defer, output weights are updated at the end of a block or sentence.

    rnnlm is Mikolov's program with the same options, on one thread; it reports its speed in CPU time. faster-rnnlm is
    Yandex's program with hierarchical softmax; faster-rnnlm-nce uses 20 noise samples instead. Each runs as a separate
    process on the same text. `ours / its` is the speed of the first variant with the same hidden size and number of
    threads divided by the other program's; for rnnlm, with the first number of threads.

    The limit is the time per word that floating-point operations or memory traffic need at the peak rates measured on
    this machine, whichever is longer (docs/performance.md).
    """
    import json

    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.rnnlm import measure, table
    from tiedtools.benchmark.rnnlmcontenders import Task, found, shape
    from tiedtools.benchmark.zipf import text_or_made
    from tiedtools.text.lmtext import LmText

    for name in variants:
        shape(name)
    rivals = found(dict.fromkeys(against))
    warn_if_busy()
    with text_or_made(text, words, vocabulary) as (_, path):
        task = Task(path, LmText.read([path], valid_share=0), **options)
        result = measure(task, variants, rivals, threads or Threads.up_to_all(), runs)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
