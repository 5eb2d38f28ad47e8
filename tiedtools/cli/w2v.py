"""`tiedtools w2v`: train word vectors."""

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
    option,
    output_option,
    precision_option,
    sections,
    seed_option,
    texts_argument,
    threads_option,
)
from tiedtools.cli.report import Report
from tiedtools.cli.training import begin, files_of, settings_of, tell_idle, texts_of, train

# Options without effect: condition -> names of parameters
OF_L = "lr_linear", "init_linear", "precision"
OF_CBOW = "cbow_grad", "cbow_sum"
OF_SAMPLING = "fit_pmi", "shift", "ns_exponent"

MODEL = {
    "Text": [
        *TEXT_OPTIONS,
        *VOCABULARY_FILES,
        option("valid", metavar="TEXT", help="Held-out text; its loss is reported after each epoch."),
    ],
    "Model": [
        option("size", type=click.IntRange(1, 10**5), default=100, help="Dimension of the vectors."),
        option(
            "window",
            type=click.IntRange(1, 10**4),
            default=5,
            help="Context window: maximum distance between target and context word.",
        ),
        option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram."),
        option("negative", type=click.IntRange(0, 10**4), default=5, help="Negative samples per target; 0 disables."),
        option(
            "hs",
            type=click.IntRange(0, 1),
            default=0,
            help="1: use hierarchical softmax, in addition to negative samples unless --negative 0; untied only.",
        ),
    ],
    "Weight tying": [
        flag("tie", "Use the same vectors as input and output vectors."),
        flag(
            "tie-signs",
            "Tie input and output vectors, with some dimensions of the input negated: tied, fixed signs. Implies"
            " --fit-pmi.",
        ),
        flag(
            "tie-linear",
            "Tie input and output vectors, with a learned linear map L between them: tied+L (Gulordava et al. 2018).",
        ),
        option(
            "negated",
            type=Finite(0, 1),
            default=0.25,
            help="Fraction of the dimensions that --tie-signs negates.",
        ),
        option(
            "lr-linear",
            type=Finite(0),
            help="Learning rate of L, as a fraction of --lr.  [default: .005 for CBOW, .001 for skip-gram]",
        ),
        option(
            "init-linear",
            type=click.Choice(["identity", "orthogonal", "uniform"]),
            default="identity",
            help="Initialization of L.",
        ),
        precision_option(
            "Precision of products with L; accumulation is float32.  [default: bfloat16 on AMD CPUs since Zen 4"
            " and Intel Xeon since Sapphire Rapids]",
            None,
        ),
        option(
            "skip-input/--allow-input",
            default=None,
            help="Never predict a word from itself, or allow it.  [default: never if tied]",
        ),
    ],
}
TRAINING = {
    "Training": [
        option("epochs", also="iter", type=click.IntRange(1, 10**4), default=5, help="Number of epochs."),
        option(
            "lr",
            also="alpha",
            type=Finite(0, 10**4, min_open=True),
            help="Initial learning rate.  [default: .05 for CBOW, .025 for skip-gram; with --fit-pmi .2, .035]",
        ),
        option(
            "min-alpha",
            also="min-lr",
            type=Finite(0, 10**4),
            help="Final learning rate, reached linearly, as in gensim.  [default: --lr / 10000, as in word2vec.c]",
        ),
        option(
            "sample",
            type=Finite(0),
            default=1e-3,
            help="Subsampling threshold: relative frequency above which words are subsampled; 0 disables.",
        ),
        option(
            "ns-exponent",
            type=Finite(-10, 10),
            default=0.75,
            help="Draw negative samples in proportion to count ^ N. With 1, skip-gram's optimal scores are symmetric.",
        ),
        flag("fixed-window", "Always use the whole window, instead of a random radius up to --window."),
        option(
            "fit-pmi/--no-fit-pmi",
            default=None,
            help="Let scores approximate pointwise mutual information: the defaults of --shift, --cbow-grad, and --lr"
            " become -log(--negative), exact, and .2 (CBOW) or .035 (skip-gram).  [default: only with --tie-signs]",
        ),
        option(
            "shift",
            type=Finite(-100, 100),
            help="Constant added to all scores of negative sampling. With -log(--negative), scores approximate"
            " pointwise mutual information itself.  [default: 0; with --fit-pmi -log(--negative)]",
        ),
        option(
            "init-range",
            type=Finite(0, min_open=True),
            default=0.05,
            help="Initialize input vectors uniformly between minus and plus this value (word2vec.c: .5 / size).",
        ),
        option(
            "cbow-grad",
            type=click.Choice(["ctool", "exact"]),
            help="CBOW: give each context word the full gradient of the mean (ctool, as in word2vec.c), or the gradient"
            " divided by the number of context words (exact).  [default: ctool; with --fit-pmi exact]",
        ),
        flag("cbow-sum", "CBOW: sum the context vectors instead of averaging them, as in Gulordava et al."),
        flag("exact", "Draw separate negatives per target, as in word2vec.c; slower."),
        option(
            "shared-negatives",
            also="batch",
            type=(click.IntRange(1, 2**10), click.IntRange(4, 2**12), click.IntRange(4, 2**16)),
            metavar="RUNS CENTERS NEGATIVES",
            help="Batch shape: RUNS runs of CENTERS consecutive center words; the words of a run share NEGATIVES"
            " negative samples. The last two are multiples of 4.  [default: depends on the model; see docs/methods.md]",
        ),
        threads_option,
        flag("deterministic", "Make results byte-identical from run to run with the same number of threads; slower."),
        seed_option,
    ],
    "Parallel training": [
        option(
            "exchange-words",
            type=Finite(1),
            metavar="N",
            help="Under MPI: exchange changes each time all ranks together have trained on N words.  [default: depends"
            " on their number; see docs/mpi.md]",
        ),
        option(
            "exchange-precision",
            type=click.Choice(["float32", "bfloat16"]),
            default="float32",
            help="Under MPI: precision of the changes that are exchanged.",
        ),
    ],
    "Output": [
        output_option,
        option(
            "write",
            type=click.Choice(["in", "out", "sum", "concat"]),
            help="Vectors to write: input, output, their sum, or their concatenation.  [default: in; sum for skip-gram"
            " with --tie-linear]",
        ),
        binary_option,
        option(
            "classes",
            type=click.IntRange(0, 10**6),
            default=0,
            metavar="N",
            help="Cluster the vectors into N classes with k-means, and write each word's class instead of its vector; 0"
            " writes vectors.",
        ),
        *RUN_FILES,
        debug_option,
    ],
}


@click.command("w2v", cls=SectionedCommand, short_help="Train word vectors: CBOW or skip-gram.")
@texts_argument
@sections({**MODEL, **TRAINING})
@click.pass_context
def command(ctx, **options):
    """Train word vectors on TEXT: CBOW or skip-gram, with separate or tied input and output vectors.

    TEXT has one sentence per line, with words separated by whitespace, and may be compressed (.gz .bz2 .xz .zst); `-`
    or no argument reads standard input. All options of word2vec.c are accepted with the same meaning.

    With --threads 1, the same seed gives byte-identical output. With several threads, results vary slightly from run to
    run unless --deterministic is given.

    Started with `mpiexec -n N`, or srun, N processes train one model, each on its share of TEXT; see docs/mpi.md.

    Ctrl-C stops training, writes the vectors trained so far, and exits with status 130. With --checkpoint FILE, rerun
    the same command with --resume to continue from the last checkpoint. With --threads 1 or --deterministic, the output
    is byte-identical to that of an uninterrupted run.
    """
    from tiedtools.api.word2vec import Word2Vec
    from tiedtools.base.processor import available_cores
    from tiedtools.parallel import ranks

    begin(ctx)
    settings, together = settings_of(ctx), ranks.current
    if together:
        settings.setdefault("threads", together.threads(available_cores()))
    if "cbow" in settings:
        settings["architecture"] = "cbow" if settings.pop("cbow") else "skipgram"
    if "hs" in settings:
        settings["hs"] = bool(settings["hs"])
    model = Word2Vec(**settings)
    config = model.configure()[0]
    idle = {
        "without --tie-signs": ("negated",) if config.tying != "signs" else (),
        "without --tie-linear": OF_L if config.tying != "linear" else (),
        "with --cbow 0": OF_CBOW if not config.cbow else (),
        "with --cbow-sum": ("cbow_grad",) if config.cbow and config.cbow_sum else (),
        "with --negative 0": OF_SAMPLING if not config.negative else (),
        "with separate negatives per target": ("shared_negatives", "precision") if config.exact else (),
    }
    tell_idle(ctx, {name: reason for reason, names in idle.items() for name in names})
    more = {name: options[name] for name in ("valid", "read_vocab", "no_memory_check", "classes")}
    files, parallel = files_of(ctx), None
    if together:
        parallel = dict(ranks=together, **{name: options[name] for name in ("exchange_words", "exchange_precision")})
        if together.rank:
            files = {name: files[name] for name in ("write", "binary") if name in files}
    else:
        tell_idle(ctx, dict.fromkeys(("exchange_words", "exchange_precision"), "without an MPI launcher"))
    train(ctx, model.trainer(texts_of(ctx), parallel=parallel, **more, **files), Report(options["debug"]))
