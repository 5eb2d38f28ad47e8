"""`tiedtools bench lstm`"""

import click

from tiedtools.cli.options import Finite, Threads, json_option, listed, option, precision_option


@click.command("lstm", short_help="LSTM language models, beside PyTorch.")
@option(
    "variants",
    callback=listed,
    default="200/200,600/300-linear,650/650",
    metavar="NAMES",
    help="HIDDEN/EMB, widths of layers and embeddings; HIDDEN/EMB-tied; HIDDEN/EMB-linear (tied+L).",
)
@option("vocabulary", type=click.IntRange(2, 10**8), default=10_000, help="Words.")
@option("layers", type=click.IntRange(1, 100), default=2, help="LSTM layers.")
@option("batch", type=click.IntRange(1, 10**5), default=20, help="Streams of text side by side.")
@option("steps", type=click.IntRange(1, 10**5), default=35, help="Tokens that backpropagation goes back.")
@option("dropout", type=Finite(0, 1, max_open=True), default=0.3, help="At Zaremba's three places.")
@precision_option("Of tiedtools' products.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs of each; the median counts.")
@option("windows", type=click.IntRange(1, 10**6), default=20, help="Steps of training in a run.")
@option("against", multiple=True, metavar="RIVAL", help="torch, or torch-bf16; any number of times.")
@json_option("Print one JSON object instead of tables.")
def command(variants, threads, runs, windows, against, as_json, **options):
    """Measure how many tokens a second an LSTM language model is trained on, and how near that is to the limit.

    The text is made of words as frequent as in a language (Zipf), always the same. Training is what `tiedtools lstm`
    does with a window of steps x batch tokens: forward, full softmax, backward, clipping, and a step of SGD. torch is
    the same model in PyTorch's own modules (nn.Embedding, nn.LSTM, nn.Linear, CrossEntropyLoss on scores,
    clip_grad_norm_), in float32; torch-bf16 the same under bfloat16 autocast, where products have 8 bits of precision.

    All take turns, each in a process of its own with as many threads. `ours / its` says how many times as fast as it
    tiedtools is; MB is the process's memory at its peak, in which the first run of all also compiles.

    The limit is that of a machine which does nothing but the products that are needed, at the best rate measured here
    and now, of tiles in the cache or of NumPy's float32 matrices, whichever is faster (docs/performance.md). A second
    table has the parts of a step.
    """
    import json

    from tiedtools.benchmark.lstm import measure, refuse_missing, shape, table
    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.training.trainer import tell_if_slow

    for name in variants:
        shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing(rivals)
    warn_if_busy()
    tell_if_slow(options["precision"])
    result = measure(variants, options, rivals, threads or Threads.up_to_all(), runs, windows)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
