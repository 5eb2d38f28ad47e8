"""`tiedtools rnnlm`: train and test Mikolov's RNN language model."""

import pathlib
from collections.abc import Callable
from typing import Any

import click

from tiedtools.base.messages import log
from tiedtools.base.settings import Files, LmReading
from tiedtools.cli.command import SectionedCommand, sections, warn_idle
from tiedtools.cli.options import Finite, as_option, as_typed, explicit, file_option, flag, integer, option
from tiedtools.cli.report import LmReport, RnnlmReport
from tiedtools.cli.shared import LM_TEXT, RUN_FILES, texts_argument
from tiedtools.cli.training import begin, files_of, settings_of, texts_for, texts_of, train
from tiedtools.files.output import refuse_clashes
from tiedtools.models.rnnlm.config import DEFAULTS, MILLIONS, RnnlmConfig, configure
from tiedtools.text.raw import as_trained, prepared
from tiedtools.text.sentences import is_url
from tiedtools.text.sources import read_once, shown
from tiedtools.training.schedules import Training, of_other_schedules

LAYOUT = {
    "Text": LM_TEXT,
    "Model": ["hidden classes old_classes direct direct_order independent doc_dim doc_lr start_doc sentences"],
    "Training": [
        "lr schedule decay min_gain decay_after min_improvement beta bptt bptt_block cutoff defer",
        flag("one-iter", "Train for a single epoch, without validation."),
        "epochs seed threads",
        RnnlmConfig,
    ],
    "Testing, with -rnnlm": [
        flag("nbest", "Rescore the n-best lists in --test, one `utterance words ...` per line; - is standard input."),
        option("dynamic", type=Finite(0), default=0.0, metavar="LR", help="Learning rate of dynamic evaluation: train"
               " on each word of --test after predicting it; 0 disables."),
        file_option("lm-prob", "Interpolate with another model's probabilities of --test, one per line in FILE."),
        option("lambda", "weight", type=Finite(0, 1), default=0.75, help="Interpolation weight of this model."),
        integer("gen", 0, "Print N words, line ends included, sampled from the model.", least=0),
    ],
    "Output": [
        file_option("rnnlm", "Model file, written after each epoch; if it exists, training resumes from it."),
        integer("anti-kasparek", 0, "Also write the model file after every N words, N at least 10000; 0 disables.",
                least=0),
        "binary output write",
        *RUN_FILES,
        integer("debug", 1, "Verbosity. 0: quiet, except for rnnlm's line per epoch; 1: one line per epoch; 2:"
                " progress, and each word in testing.", least=0, metavar=None),
    ],
}  # fmt: skip
CHANGED = dict(
    hidden=dict(also="size"),
    classes=dict(name="class", also="classes"),
    direct=dict(type=Finite(0, MILLIONS), default=0.0),
    lr=dict(also="alpha", help="Initial learning rate."),
    cutoff=dict(name="gradient-cutoff", also="cutoff"),
    epochs=dict(also="max-iter", show_default=False, help="Maximum number of epochs.  [default: no limit]"),
    seed=dict(also="rand-seed"),
    binary=dict(help="Write the model or the vectors in binary format; also accepted as -binary 1."),
)  # fmt: skip

# Parameters without effect if an existing model is only tested.
OF_TRAINING = {*vars(RnnlmConfig()), *vars(Training())} - {"seed", "threads"}
OF_TRAINING |= {*"valid valid_share min_count max_vocab read_vocab one_iter anti_kasparek binary write".split()}
OF_TRAINING |= {"checkpoint_minutes", "no_manifest"}


class RnnlmCommand(SectionedCommand):
    """The rnnlm command, whose flag `-binary` also accepts word2vec.c's values 0 and 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for at, value in reversed([*enumerate(args[1:])]):
            if args[at] in ("-binary", "--binary") and value in ("0", "1"):
                args = [*args[: at + int(value)], *args[at + 2 :]]
        return super().parse_args(ctx, args)


@click.command("rnnlm", cls=RnnlmCommand, short_help="Train Mikolov's class-based RNN language model.")
@texts_argument
@sections(LAYOUT, RnnlmConfig, Training, LmReading, defaults=DEFAULTS, **CHANGED)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train Mikolov's class-based RNN language model on TEXT, and write its word vectors.

    With --doc-dim, the model has Rei's document vector. TEXT has one sentence per line, with words separated by
    whitespace, and may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input.

    With --rnnlm FILE and without --output, the command replaces the program rnnlm: it accepts rnnlm command lines
    unchanged (except -compression), logs to standard output as rnnlm does, and writes no vectors. FILE is in rnnlm's
    own format if that can hold the model. With --test or --gen and no TEXT, an existing model is tested without
    training.

    Ctrl-C stops training, writes the vectors of the best epoch so far (in the first epoch, the current ones), and exits
    with status 130. With --checkpoint FILE, rerun the same command with --resume to continue from the last checkpoint.
    With --threads 1, a resumed run writes the same bytes as an uninterrupted one.
    """
    texts, path = [*options["texts"], *options["train"]], options["rnnlm"]
    as_rnnlm = path is not None and "output" not in explicit(ctx)
    testing = [name for name in ("nbest", "dynamic", "lm_prob", "gen") if options[name]]
    if testing and not as_rnnlm:
        raise click.UsageError(f"{as_option(testing[0])} needs --rnnlm FILE, without --output")
    if set(testing) - {"gen"} and options["test"] is None:
        raise click.UsageError(f"{as_option(testing[0])} needs --test TEXT")
    if options["test"] is not None and not texts and not as_rnnlm:
        how = "give --rnnlm FILE without --output, or - to train on standard input"
        raise click.UsageError(f"--test without TEXT tests a model: {how}")
    if options["one_iter"] and "epochs" in explicit(ctx) and options["epochs"] > 1:
        raise click.UsageError("--one-iter trains a single epoch: omit it or --epochs")
    reads = [text for text in (options["test"], options["lm_prob"]) if as_rnnlm and text is not None]
    read_once(*reads)
    refuse_clashes(["-"], [*texts, *reads] if as_rnnlm else [])
    for text in reads:
        if text != "-" and not is_url(text) and not pathlib.Path(text).is_fifo():
            open(text).close()  # report unreadable files before training
    print_text = lambda text: click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
    trains = texts or not as_rnnlm or not (options["test"] or options["gen"])
    idle = {} if options["lm_prob"] else {"weight": "without --lm-prob"}
    if options["nbest"]:
        idle |= dict.fromkeys(("dynamic",) if texts else ("dynamic", "tokenize", "phrases", "field"), "with --nbest")
    if not trains:
        idle |= dict.fromkeys(sorted(OF_TRAINING), "without TEXT")
        if options["test"] is None:
            idle |= dict.fromkeys(("errors", "tokenize", "phrases", "field"), "without --test")
    warn_idle(ctx, idle)
    if trains:
        model = train_model(ctx, as_rnnlm, reads, print_text)
        options["phrases"] = model.settings.get("phrases")  # from a pipe, they are read once
    else:
        from tiedtools.models.rnnlm.program import load_rnnlm

        for name in ("save_model", "save_vocab", "checkpoint", "resume", "log_json", "manifest"):
            if options[name]:
                raise click.UsageError(f"{as_option(name)} needs a TEXT; without one, nothing is trained")
        model = load_rnnlm(path, options["threads"] if "threads" in explicit(ctx) else None)
    if as_rnnlm:
        test_model(model, print_text, **options)


def train_model(ctx: click.Context, as_rnnlm: bool, reads: list[str], print_text: Callable[[str], object]) -> Any:
    """Train and return the model.

    as_rnnlm  log as rnnlm does, through `print_text`, and write no vectors
    reads     paths of other inputs; see RnnlmTrainer
    """
    from tiedtools.models.rnnlm.trainer import RnnlmTrainer

    options, log_as_rnnlm = ctx.params, print_text if as_rnnlm and ctx.params["debug"] else lambda text: None

    class Trainer(RnnlmTrainer):
        def make(self, text: Any) -> Any:
            model = super().make(text)
            if not self.restored:
                log_as_rnnlm(f"Vocab size: {len(text.vocab)}\nWords in train file: {text.train.size}\n")
            return model

    begin(ctx)
    settings, texts = settings_of(ctx), texts_of(ctx)
    config, schedule, reading = configure(**settings)
    reading |= texts_for(ctx) | ({"test": None, "predict_oovs": False} if as_rnnlm else {})
    reading |= {name: options[name] for name in ("rnnlm", "anti_kasparek", "one_iter")}
    files = Files(**files_of(ctx, **({"output": None} if as_rnnlm else {})))
    trainer = Trainer(config, schedule, texts, files, lr=settings.get("lr"), reads=reads, **reading)
    idle = {} if options["rnnlm"] else {"anti_kasparek": "without --rnnlm"}
    if options["one_iter"]:
        idle |= dict.fromkeys(("valid", "valid_share", "schedule", *of_other_schedules("constant")), "with --one-iter")
    else:
        idle |= dict.fromkeys(of_other_schedules(schedule.schedule), f"with --schedule {schedule.schedule}")
    if as_rnnlm:
        idle["write"] = "without --output"
    if trainer.config.block == 1:
        idle["defer"] = "with blocks of one word"
    if not trainer.restored:  # otherwise the model's settings apply, see below
        needed = {"direct": ["direct_order"], "bptt": ["bptt_block"], "doc_dim": ["doc_lr", "start_doc"]}
        idle |= {name: f"without {as_option(n)}" for n, names in needed.items() for name in names if not options[n]}
        if config.doc_dim and not config.independent:
            idle["start_doc"] = "without independent lines"
        idle |= dict.fromkeys(("bptt", "bptt_block") if config.sentences else (), "with --sentences")
    warn_idle(ctx, idle)
    log_as_rnnlm(f"Starting training using file {shown(*texts)}\n")
    if trainer.restored:
        message = "Restoring network from file to continue training..."
        print_text(f"{message}\n") if as_rnnlm and options["debug"] else log.info(message)
        saved = vars(trainer.config)
        without_effect = {name for name, value in vars(config).items() if value != saved[name]}
        without_effect |= {"min_count", "max_vocab", "read_vocab"}
        if changed := sorted(as_typed(ctx, p) for p in ctx.command.params if p.name in explicit(ctx) & without_effect):
            ignored = "these options are ignored; the model file's settings apply"
            log.warning(f"{options['rnnlm']}: {ignored}: {', '.join(changed)}")
    return train(ctx, trainer, (RnnlmReport if as_rnnlm else LmReport)(options["debug"]))


def test_model(
    model: Any, print_text: Callable[[str], object], test: str | None, gen: int, nbest: bool,
    lm_prob: str | None, weight: float, dynamic: float, debug: int, seed: int, errors: str, tokenize: str | None,
    phrases: str | None, field: str | None, **_: Any
) -> None:  # fmt: skip
    """Print the output of rnnlm with -test, -nbest, and -gen. n-best lists are not tokenized."""
    from tiedtools.evaluation import rnnlmtest

    values = model.params.values.copy() if dynamic and gen else model.params.values
    if test is not None and nbest:
        rnnlmtest.nbest(model, test, print_text, lm_prob, weight, debug, errors)
    elif test is not None:
        test = prepared(test, field=field, errors=errors, **as_trained(model.settings, tokenize, phrases))
        rnnlmtest.test(model, test, print_text, lm_prob, weight, dynamic, debug, errors)
    if gen:
        model.params.values[:] = values  # undo the updates of dynamic evaluation
        rnnlmtest.generate(model, gen, print_text, seed)
