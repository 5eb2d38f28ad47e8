"""`tiedtools bench nmt`: benchmark training of translation models."""

import click

from tiedtools.cli.options import Finite, Threads, json_option, listed, option, precision_option

VARIANTS = (
    "HIDDEN/EMB (units of the encoder in each direction and of the decoder / embedding dimension), HIDDEN/EMB-decoder,"
    " or HIDDEN/EMB-all (tied)"
)


@click.command("nmt", short_help="Benchmark translation models against PyTorch.")
@option("variants", callback=listed, default="256/128-all", metavar="NAMES", help=f"Models: {VARIANTS}.")
@option("vocabulary", type=click.IntRange(3, 10**8), default=10_000, help="Vocabulary size of each side in words.")
@option("batch", type=click.IntRange(1, 10**5), default=32, help="Sentence pairs in a batch.")
@option("dropout", type=Finite(0, 1, max_open=True), default=0.3, help="Dropout probability at all sites.")
@precision_option("Precision of matrix products in tiedtools.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported.")
@option("windows", type=click.IntRange(1, 10**6), default=20, help="Training steps, one batch each, per run.")
@option("against", multiple=True, metavar="RIVAL", help="Compare with torch or torch-bf16; repeatable.")
@json_option("Print one JSON object instead of tables.")
def command(variants, threads, runs, windows, against, as_json, **options):
    """Measure the training speed of translation models in words per second, source and target together.

    The sentences are synthetic, with the lengths of Multi30k and Zipf-distributed words, and always the same. A
    training step is that of `tiedtools nmt` on a batch: forward pass, full softmax, backward pass, clipping, and Adam.
    torch is the same model in PyTorch (nn.Embedding, nn.GRU with packed sequences, a loop of nn.GRUCell and attention,
    CrossEntropyLoss), in float32; torch-bf16 uses bfloat16 autocast.

    Programs run in turn; see `tiedtools bench lstm` for the columns and the limit.
    """
    import json

    from tiedtools.benchmark.lstm import refuse_missing
    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.nmt import RIVALS, measure, shape, table
    from tiedtools.runs.trainer import tell_if_slow

    for name in variants:
        shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing(rivals, RIVALS)
    warn_if_busy()
    tell_if_slow(options["precision"])
    result = measure(variants, options, rivals, threads or Threads.up_to_all(), runs, windows)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
