"""`tiedtools w2v`"""

import click

from tiedtools.cli.options import (
    RUN_FILES,
    VOCABULARY_FILES,
    Finite,
    binary_option,
    debug_option,
    option,
    output_option,
    seed_option,
    text_options,
    threads_option,
    together,
)


@click.command("w2v", short_help="Train word vectors: CBOW or skip-gram.")
@text_options
@output_option
@option("size", type=click.IntRange(1, 10**5), default=100, help="Width of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Greatest distance of a context word.")
@option("sample", type=Finite(0), default=1e-3, help="Subsample words more frequent than this; 0: none.")
@option("hs", type=click.IntRange(0, 1), default=0, help="1: hierarchical softmax (untied only).")
@option("negative", type=click.IntRange(0, 10**4), default=5, help="Negative samples for each target; 0: none.")
@threads_option
@option("iter", type=click.IntRange(1, 10**4), default=5, help="Epochs.")
@option("alpha", type=Finite(0, 10**4, min_open=True), help="Starting learning rate.  [default: .05; skip-gram .025]")
@option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram.")
@option("classes", type=click.IntRange(0, 10**6), default=0, help="Write this many word classes instead of vectors.")
@binary_option
@debug_option
@together(*VOCABULARY_FILES)
@click.option("--tie", is_flag=True, help="One matrix for input and output vectors.")
@click.option("--tie-linear", is_flag=True, help="One matrix, and a map L between them (Gulordava et al. 2018).")
@click.option("--lr-linear", type=Finite(0), help="L's learning rate / alpha.  [default: .005; skip-gram .001]")
@click.option(
    "--init-linear",
    type=click.Choice(["identity", "orthogonal", "uniform"]),
    default="identity",
    show_default=True,
    help="L's start.",
)
@click.option(
    "--init-range",
    type=Finite(0, min_open=True),
    default=0.05,
    show_default=True,
    help="Vectors start uniform within +- this (word2vec.c: .5 / size).",
)
@click.option(
    "--cbow-grad",
    type=click.Choice(["ctool", "exact"]),
    default="ctool",
    show_default=True,
    help="CBOW: context words get the whole gradient (word2vec.c) or their share of it.",
)
@click.option(
    "--skip-input/--allow-input", default=None, help="Never predict a word from itself.  [default: only if tied]"
)
@click.option("--exact", is_flag=True, help="Negatives of its own for each target, as in word2vec.c; slower.")
@click.option(
    "--batch",
    type=(click.IntRange(1, 2**10), click.IntRange(4, 2**12), click.IntRange(4, 2**16)),
    metavar="RUNS CENTRES NEGATIVES",
    help="How many centres share how many negatives.  [default: by model; see docs/methods.md]",
)
@click.option(
    "--deterministic", is_flag=True, help="The same bytes from the same command, also with several threads; slower."
)
@option(
    "write",
    type=click.Choice(["in", "out", "sum", "concat"]),
    help="Which vectors: input, output, their sum, or side by side.  [default: in; skip-gram with --tie-linear: sum]",
)
@together(*RUN_FILES)
@seed_option
@click.pass_context
def command(ctx, **options):
    """Train word vectors on TEXT: CBOW or skip-gram, with separate, tied, or tied+L input and output vectors.

    TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also without any: words
    between white space, a sentence a line. All of word2vec.c's options work as they do there, with one dash or two.

    With --threads 1 the same seed gives the same bytes; with more, threads race and results differ slightly, unless
    --deterministic has them wait for each other.
    Ctrl-C stops the training, writes what there is and exits with status 130. With --checkpoint FILE --resume the same
    command goes on where it stopped, with --threads 1 or --deterministic to the very bytes; it may be repeated until it
    is done.
    """
    from tiedtools.cli.w2vtrainer import W2vTrainer

    W2vTrainer(ctx).train()
