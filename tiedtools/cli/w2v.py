"""`tiedtools w2v`: train word vectors."""

from typing import Any

import click

from tiedtools.base.settings import SIDES, Continuation, Reading
from tiedtools.cli.command import SectionedCommand, sections, warn_idle
from tiedtools.cli.options import ZERO_ONE, Finite, choice, explicit, flag, integer, option, option_names, text_option
from tiedtools.cli.report import Report
from tiedtools.cli.shared import RUN_FILES, TEXT_OPTIONS, debug_option, read_vocab_option, texts_argument
from tiedtools.cli.training import begin, files_of, settings_of, texts_of, train
from tiedtools.models.word2vec.config import LEAST, MOST, Config, Resampling, Shorthand

# Settings that need L, n-grams, CBOW, several runs, or negative sampling; see `idle`.
OF_L = "lr_linear", "init_linear"
OF_NGRAMS = "min_n", "max_n", "buckets"
OF_CBOW = "cbow_grad", "cbow_sum"
SEVERAL = "runs", "resample", "document"
OF_RUN = "init_from", "grow", "freeze", *SEVERAL  # settings of a training, not of the model
OF_SAMPLING = "fit_pmi", "shift", "ns_exponent"

LAYOUT = {
    "Text": [
        *TEXT_OPTIONS, read_vocab_option, "save_vocab",
        text_option("valid", "Held-out text; its loss is reported after each epoch."),
    ],
    "Model": ["preset size window architecture negative hs"],
    "Subwords": ["subwords min_n max_n buckets"],
    "Weight tying": ["tying negated lr_linear init_linear skip_input"],
    "Training": [
        "epochs lr min_alpha sample ns_exponent fixed_window fit_pmi shift init_range cbow_grad cbow_sum exact"
        " shared_negatives threads precision deterministic seed",
        Config,
    ],
    "Continued training": [Continuation],
    "Several runs": [
        Resampling,
        flag("slices", "The texts are time slices: write a folder of comparable vectors of each; see docs/time.md."),
    ],
    "Parallel training": [
        option("exchange-words", type=Finite(1), metavar="N", help="Under MPI: exchange changes each time all ranks"
               " together have trained on N words.  [default: depends on ranks and network; see docs/mpi.md]"),
        choice("exchange-precision", "float32 bfloat16", "Under MPI: precision of the changes that are exchanged.",
               "float32"),
    ],
    "Output": [
        "output write binary",
        integer("classes", 0, "Cluster the vectors into N classes with k-means, and write each word's class instead of"
                " its vector; 0 writes vectors.", least=0, most=10**6),
        *RUN_FILES, debug_option,
    ],
}  # fmt: skip
CHANGED = dict(
    cbow=dict(help="1: CBOW; 0: skip-gram.", is_flag=False, type=click.IntRange(0, 1), default=1, show_default=True),
    hs=ZERO_ONE,
    tie=dict(name="tie"),
    skip_input=dict(name="skip-input/--allow-input"),
    epochs=dict(also="iter"),
    lr=dict(also="alpha"),
    min_alpha=dict(also="min-lr"),
    shared_negatives=dict(also="batch", type=tuple(map(click.IntRange, LEAST, MOST))),
    output=dict(default="-", show_default="-; on a terminal, a new file or, with --save-model, none"),
    save_model=dict(help="Write the model (parameters, vocabulary, and options) to FILE in .npz format."
                    " With `subwords`, NAME.bin here and, without `binary=1`, in `output` is a model of fastText."),
    checkpoint=dict(help="Write a checkpoint to FILE after each epoch and on interruption. With `runs`, it has the"
                    " finished runs, and is not written after epochs; see `checkpoint_minutes`."),
    write=dict(choices=SIDES, help="Vectors to write: input, output, their sum, or their concatenation.  [default: in;"
               " sum for skip-gram with `tying=linear`]"),
)  # fmt: skip


@click.command("w2v", cls=SectionedCommand, short_help="Train word vectors: CBOW or skip-gram.")
@texts_argument
@sections(LAYOUT, Config, Shorthand, Reading, Continuation, Resampling, **CHANGED)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
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

    if options["slices"] and ("output" not in explicit(ctx) or options["output"] == "-"):
        raise click.UsageError("--slices needs --output FOLDER")
    begin(ctx)
    settings, mpi = settings_of(ctx), ranks.current
    if options["slices"] and mpi:
        raise click.UsageError("--slices needs a single process; start one without an MPI launcher")
    if mpi:
        settings.setdefault("threads", mpi.threads(available_cores()))
    several = {name: settings.pop(name) for name in OF_RUN if name in settings}
    files, parallel, trainer = files_of(ctx), None, None
    if mpi:
        parallel = dict(ranks=mpi, **{name: options[name] for name in ("exchange_words", "exchange_precision")})
        if mpi.rank:
            files = {name: value for name, value in files.items() if name in ("write", "binary")}
    model = Word2Vec()
    model.settings = settings  # checked by `trainer`, since a model to continue from has defaults
    if not options["slices"]:
        arguments = {name: options[name] for name in ("valid", "read_vocab", "no_memory_check", "classes")}
        trainer = model.trainer(texts_of(ctx), parallel=parallel, **arguments, **several, **files)
    config, source = trainer.config if trainer else model.configured[0], getattr(trainer, "source", None)
    unread, runs = "init_from" in several and not several.get("grow"), several.get("runs") or 0
    more = {
        "without --runs": SEVERAL[1:] if not runs else (),
        "with --runs": ("binary",) if runs else (),
        "with --classes": ("binary",) if options["classes"] else (),
        "with --resample none": ("document",) if several.get("resample") == "none" else (),
        "with --runs, whose runs have one thread each": ("deterministic",) if runs >= config.threads else (),
        "with --init-from, without --grow": ("min_count", "max_vocab", "init_range") if unread else (),
        "with --init-from": ("init_linear",) if source and "proj" in source.arrays else (),
        "with --freeze old": ("lr_linear",) if several.get("freeze") == "old" else (),
        "without an MPI launcher": () if mpi else ("exchange_words", "exchange_precision"),
    }
    warn_idle(ctx, idle(config) | {name: reason for reason, names in more.items() for name in names})
    if trainer:
        train(ctx, trainer, Report(options["debug"]))
    else:
        train_time_slices(ctx, settings, several)


def idle(config: Config) -> dict[str, str]:
    """Return the settings of a Config without effect, a dict: name -> reason."""
    reasons = {
        "without --tie-signs": ("negated",) if config.tying != "signs" else (),
        "without --tie-linear": OF_L if config.tying != "linear" else (),
        "with --cbow 0": OF_CBOW if not config.cbow else (),
        "with --cbow-sum": ("cbow_grad",) if config.cbow and config.cbow_sum else (),
        "with --negative 0": OF_SAMPLING if not config.negative else (),
        "without --subwords": OF_NGRAMS if not config.subwords else (),
        "with --max-n 0": ("min_n", "buckets") if config.subwords and not config.max_n else (),
        "with --buckets 0": ("min_n", "max_n") if config.subwords and not config.buckets else (),
        "with separate negatives per target": ("shared_negatives", "precision") if config.exact else (),
    }
    return {name: reason for reason, names in reasons.items() for name in names}


def train_time_slices(ctx: click.Context, settings: dict[str, Any], several: dict[str, Any]) -> None:
    """Train the slices in the texts of `w2v --slices`."""
    from tiedtools.api.slices import train_slices

    refused = {*files_of(ctx), "valid", "read_vocab", "classes", "init_from", "grow", "freeze"} - {"output", "write"}
    names = option_names(ctx)
    if wrong := [names[name] for name in explicit(ctx) if name in refused]:
        raise click.UsageError(f"{wrong[0]} does not apply to --slices")
    write = {name: value for name, value in files_of(ctx).items() if name == "write"}
    others = several | write | {"no_memory_check": ctx.params["no_memory_check"]}
    run = lambda trainer: train(ctx, trainer, Report(ctx.params["debug"]))
    train_slices(settings, texts_of(ctx), ctx.params["output"], run, **others)
