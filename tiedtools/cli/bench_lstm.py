"""`tiedtools bench lstm`: benchmark LSTM training."""

import click

from tiedtools.cli.options import Finite, Threads, json_option, listed, option, precision_option, together

LSTMS = (
    "HIDDEN/EMB (hidden units per layer / embedding dimension), HIDDEN/EMB-tied, HIDDEN/EMB-linear (tied+L); morphs,"
    " syllables, or chars: Assylbekov & Takhanov's small models with everything reused"
)


def bench_options(default, models):
    """Return a decorator that adds the options of `bench lm` and `bench lstm`; `models`: help on the variants."""
    return together(
        option("variants", callback=listed, default=default, metavar="NAMES", help=f"Models: {models}."),
        option("vocabulary", type=click.IntRange(2, 10**8), default=10_000, help="Vocabulary size in words."),
        option("layers", type=click.IntRange(1, 100), default=2, help="Number of recurrent layers."),
        option("batch", type=click.IntRange(1, 10**5), default=20, help="Batch size (parallel streams)."),
        option("steps", type=click.IntRange(1, 10**5), default=35, help="Truncated-BPTT length in tokens."),
        option(
            "dropout",
            type=Finite(0, 1, max_open=True),
            default=0.3,
            help="Dropout probability at Zaremba's three sites.",
        ),
        precision_option("Precision of matrix products in tiedtools."),
        option("threads", type=Threads(), help=Threads.help),
        option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported."),
        option("windows", type=click.IntRange(1, 10**6), default=20, help="Training steps per run."),
        option("against", multiple=True, metavar="RIVAL", help="Compare with torch or torch-bf16; repeatable."),
        json_option("Print one JSON object instead of tables."),
    )


@click.command("lstm", short_help="Benchmark LSTM language models against PyTorch.")
@bench_options("200/200,600/300-linear,650/650", LSTMS)
def command(**options):
    """Measure LSTM training speed in tokens per second, and compare it with the hardware limit.

    The text is synthetic, with Zipf-distributed words, and always the same. A training step is that of `tiedtools
    lstm` on steps x batch tokens: forward pass, full softmax, backward pass, clipping, and SGD update. torch is the
    same model in PyTorch (nn.Embedding, nn.LSTM, nn.Linear, CrossEntropyLoss on logits, clip_grad_norm_; word vectors
    composed by nn.EmbeddingBag, nn.Linear, nn.Conv1d over the vocabulary, once per window), in float32;
    torch-bf16 uses bfloat16 autocast.

    Programs run in turn, each in a separate process with the same number of threads. `ours / its` is the speed of
    tiedtools divided by the other program's. MB is the peak memory of the process; that of the first run includes
    compilation.

    The limit is the speed of a machine that computes only the required matrix products, at the best rate measured on
    this machine: cache-resident tiles or NumPy's float32 matrices, whichever is faster (docs/performance.md). A second
    table breaks down a training step.
    """
    bench(**options)


def bench(variants, threads, runs, windows, against, as_json, **options):
    """Run `bench lm` or `bench lstm`."""
    import json

    from tiedtools.benchmark.lstm import measure, refuse_missing, shape, table
    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.runs.trainer import tell_if_slow

    for name in variants:
        shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing(rivals)
    warn_if_busy()
    tell_if_slow(options["precision"])
    result = measure(variants, options, rivals, threads or Threads.up_to_all(), runs, windows)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
