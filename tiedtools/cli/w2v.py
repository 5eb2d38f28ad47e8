"""`tiedtools w2v`"""

import click

from tiedtools.cli.options import (
    RUN_FILES,
    TEXT_OPTIONS,
    VOCABULARY_FILES,
    Finite,
    SectionedCommand,
    binary_option,
    debug_option,
    flag,
    from_options,
    option,
    output_option,
    precision_option,
    sections,
    seed_option,
    texts_argument,
    threads_option,
    tying,
)
from tiedtools.cli.report import Report
from tiedtools.cli.training import begin, files_of, tell_idle, texts_of, train
from tiedtools.cores import available_cores

READING = "min_count", "max_vocab", "read_vocab", "errors"
WITHOUT_L = "without --tie-linear"

MODEL = {
    "Text": [*TEXT_OPTIONS, *VOCABULARY_FILES],
    "Model": [
        option("size", type=click.IntRange(1, 10**5), default=100, help="Width of the vectors."),
        option("window", type=click.IntRange(1, 10**4), default=5, help="Greatest distance of a context word."),
        option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram."),
        option("negative", type=click.IntRange(0, 10**4), default=5, help="Negative samples for each target; 0: none."),
        option("hs", type=click.IntRange(0, 1), default=0, help="1: hierarchical softmax (untied only)."),
    ],
    "Sharing": [
        flag("tie", "One matrix for input and output vectors."),
        flag("tie-linear", "One matrix, and a map L between them (Gulordava et al. 2018)."),
        option(
            "lr-linear",
            type=Finite(0),
            help="L's learning rate, as a fraction of --lr.  [default: .005; skip-gram .001]",
        ),
        option(
            "init-linear",
            type=click.Choice(["identity", "orthogonal", "uniform"]),
            default="identity",
            help="L's start.",
        ),
        precision_option(
            "Of products with L; sums are float32.  [default: bfloat16 where the processor multiplies it]", None
        ),
        option(
            "skip-input/--allow-input",
            default=None,
            help="Never predict a word from itself.  [default: only if tied]",
        ),
    ],
}
TRAINING = {
    "Training": [
        option("epochs", "iter", also="iter", type=click.IntRange(1, 10**4), default=5, help="Epochs."),
        option(
            "lr",
            "alpha",
            also="alpha",
            type=Finite(0, 10**4, min_open=True),
            help="Starting learning rate.  [default: .05; skip-gram .025]",
        ),
        option("sample", type=Finite(0), default=1e-3, help="Subsample words more frequent than this; 0: none."),
        option(
            "init-range",
            type=Finite(0, min_open=True),
            default=0.05,
            help="Vectors start uniform within +- this (word2vec.c: .5 / size).",
        ),
        option(
            "cbow-grad",
            type=click.Choice(["ctool", "exact"]),
            default="ctool",
            help="CBOW: context words get the whole gradient (word2vec.c) or their share of it.",
        ),
        flag("exact", "Negatives of its own for each target, as in word2vec.c; slower."),
        option(
            "shared-negatives",
            "batch",
            also="batch",
            type=(click.IntRange(1, 2**10), click.IntRange(4, 2**12), click.IntRange(4, 2**16)),
            metavar="RUNS CENTERS NEGATIVES",
            help="How many centers share how many negatives.  [default: by model; see docs/methods.md]",
        ),
        threads_option,
        flag("deterministic", "The same bytes from the same command, also with several threads; slower."),
        seed_option,
    ],
    "Output": [
        output_option,
        option(
            "write",
            type=click.Choice(["in", "out", "sum", "concat"]),
            help="Which vectors: input, output, their sum, or side by side.  [default: in; skip-gram with --tie-linear:"
            " sum]",
        ),
        binary_option,
        option("classes", type=click.IntRange(0, 10**6), default=0, help="Write this many word classes, not vectors."),
        *RUN_FILES,
        debug_option,
    ],
}


@click.command("w2v", cls=SectionedCommand, short_help="Train word vectors: CBOW or skip-gram.")
@texts_argument
@sections({**MODEL, **TRAINING})
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
    from tiedtools.models.word2vec.model import Config
    from tiedtools.models.word2vec.trainer import Word2VecTrainer

    begin(ctx)
    settings = dict(
        options,
        hs=bool(options["hs"]),
        cbow=bool(options["cbow"]),
        tying=tying(options["tie"], options["tie_linear"]),
        threads=options["threads"] or available_cores(),
    )
    config = from_options(Config, settings)
    own = "where each target has negatives of its own"
    idle = {} if options["tie_linear"] else dict.fromkeys(("lr_linear", "init_linear", "precision"), WITHOUT_L)
    tell_idle(ctx, idle | ({"batch": own, "precision": own} if config.exact else {}))
    write = options["write"] or ("sum" if options["tie_linear"] and not options["cbow"] else "in")
    files, reading = files_of(ctx, write=write), {name: options[name] for name in READING}
    more = dict(classes=options["classes"], no_memory_check=options["no_memory_check"])
    train(ctx, Word2VecTrainer(config, texts_of(ctx), files, **reading, **more), Report(options["debug"]))
