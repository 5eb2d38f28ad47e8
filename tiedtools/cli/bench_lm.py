"""`tiedtools bench lm`: benchmark training of language models with any cell."""

import click

from tiedtools.cli.bench_lstm import LSTMS, bench, bench_options


@click.command("lm", short_help="Benchmark language models with any cell against PyTorch.")
@bench_options(
    "650/650-tied,awd,gru,rhn",
    f"{LSTMS}; awd, rhn: those of the presets awd-ptb and rhn-ptb; gru: 650/650-tied with GRU cells",
)
def command(**options):
    """Measure the training speed of language models in tokens per second, and compare it with the hardware limit.

    Like `tiedtools bench lstm`, with more models. In PyTorch, awd is a dropped-out copy of the recurrent weights and
    its LSTM kernel for each layer, gru is nn.GRU, and rhn is a loop over steps and
    micro-steps of nn.Linear and elementwise operations; the rivals torch-compile and torch-compile-bf16 compile a step
    of it with torch.compile, which takes a minute. awd and rhn have masks fixed over time, and windows of --steps.
    """
    bench(**options)
