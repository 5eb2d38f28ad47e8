"""`tiedtools bench rnnlm`"""

import click

from tiedtools.cli.options import Threads, json_option, listed, option, plain


@click.command("rnnlm", short_help="RNN language models, beside rnnlm and faster-rnnlm.")
@click.argument("text", required=False, callback=plain)
@option(
    "variants",
    callback=listed,
    default="100,100-sentences,100+20-sentences",
    metavar="NAMES",
    help="HIDDEN or HIDDEN+DOC, widths of the state and the document vector; with -sentences, -defer, or both.",
)
@option("words", type=click.IntRange(1000), default=1_000_000, help="Length of a made text.")
@option("vocabulary", type=click.IntRange(2, 10**8), default=10_000, help="Words of a made text.")
@option("class", "classes", type=click.IntRange(1, 10**6), default=100, help="Word classes.")
@option("bptt", type=click.IntRange(0, 10**4), default=4, help="As of `tiedtools rnnlm`.")
@option("bptt-block", "block", type=click.IntRange(1, 10**4), default=10, help="Likewise.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs of each; the median counts.")
@option(
    "against",
    multiple=True,
    metavar="RIVAL",
    help="rnnlm=PATH, faster-rnnlm=PATH, or faster-rnnlm-nce=PATH; any number of times.",
)
@json_option("Print one JSON object instead of a table.")
def command(text, variants, words, vocabulary, threads, runs, against, as_json, **options):
    """Measure how many words a second an RNN language model is trained on, and how near that is to the limit.

    TEXT is a plain text file, a sentence a line; without it, one is made of words as frequent as in a language
    (Zipf), always the same. A run is an epoch, of which the time is that of training alone. Line ends count as
    words, as others count them too.

    A variant goes back through blocks of words, as Mikolov's rnnlm does, or with -sentences through whole sentences
    from a learned start, as Rei's model does. With -defer the output weights change at the end of a block or sentence.

    rnnlm is Mikolov's program, with the same options, on one thread; it tells its speed by the processor's time.
    faster-rnnlm is Yandex's, with hierarchical softmax; faster-rnnlm-nce the same with 20 samples of noise instead.
    Each is run as a process on the same text. `ours / its` says how many times as fast as it the first variant of its
    width is on as many threads; of rnnlm, on the first number of threads.

    The limit is that of a machine which does the work needed for a word, in floating point operations or in bytes of
    rows moved, at the peak measured here and now, whichever of the two takes longer (docs/performance.md).
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
