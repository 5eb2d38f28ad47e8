"""`tiedtools rnnlm`"""

import click

from tiedtools.cli.options import (
    LM_TEXT,
    RUN_FILES,
    Finite,
    SectionedCommand,
    as_given,
    flag,
    from_options,
    given,
    option,
    output_option,
    sections,
    texts_argument,
    write_option,
)
from tiedtools.cli.report import LmReport, RnnlmReport
from tiedtools.cli.training import begin, files_of, reading_of, tell_idle, texts_of, train
from tiedtools.messages import log
from tiedtools.text.sources import read_once, shown

MODEL = {
    "Model": [
        option(
            "hidden",
            also="size",
            type=click.IntRange(1, 10**5),
            help="Width of the hidden layer and of the word vectors.  [default: 30; 100 with --doc-dim]",
        ),
        option("class", "classes", type=click.IntRange(1, 10**6), default=100, help="Classes of words."),
        flag("old-classes", "Classes of equal counts instead of equal square roots of counts; slower."),
        option("direct", type=Finite(0, 10**4), default=0.0, metavar="MILLIONS", help="Weights of n-gram features."),
        option("direct-order", type=click.IntRange(1, 20), default=3, help="Length of the n-grams."),
        flag("independent", "At each line's end, forget what was read."),
        option("doc-dim", type=click.IntRange(0, 10**5), default=0, metavar="D", help="Width of the document vector."),
        option("doc-lr", type=Finite(0), default=0.1, help="Its learning rate, in training and in testing."),
        option(
            "start-doc",
            type=click.Choice(["mean", "sum", "first"]),
            default="mean",
            help="What the vector that lines start from learns of the errors in a line.",
        ),
        option(
            "sentences/--no-sentences",
            default=None,
            help="Rei's training: independent lines in a new order in each epoch, errors go back to their start, which"
            " is learned.  [default: with --doc-dim]",
        ),
    ],
}

TRAINING = {
    "Training": [
        option("lr", also="alpha", type=Finite(0, min_open=True), default=0.1, help="First learning rate."),
        option("beta", type=Finite(0, 1), default=1e-7, help="L2 regularisation."),
        option(
            "bptt",
            type=click.IntRange(0, 10**4),
            default=0,
            help="Steps that errors go back from a block's first word; 0: one, from each word.",
        ),
        option("bptt-block", type=click.IntRange(1, 10**4), default=10, help="Words of a block, with -bptt."),
        option("gradient-cutoff", "cutoff", type=Finite(0), default=15.0, help="Limit of each error; 0: none."),
        flag("defer", "Output weights change only when errors go back in time."),
        option(
            "min-improvement",
            type=Finite(0),
            default=1.003,
            help="Gain in validation log probability, as a ratio, below which the learning rate is halved from then on;"
            " the second time training ends.",
        ),
        flag("one-iter", "A single epoch, without validation."),
        option(
            "epochs",
            "max_iter",
            also="max-iter",
            type=click.IntRange(1),
            default=2**31 - 1,
            show_default=False,
            help="Epochs at most.",
        ),
        option("seed", also="rand-seed", type=click.IntRange(0, 2**32 - 1), default=1, help="Of all random choices."),
        option(
            "threads",
            type=click.IntRange(1, 1024),
            default=1,
            help="1 is exact; more learn different parts of the text at once (Hogwild), faster and not reproducible.",
        ),
    ],
    "Testing, with -rnnlm": [
        flag("nbest", "-test has n-best lists, `utterance words ...` a line, or is - for standard input."),
        option(
            "dynamic",
            type=Finite(0),
            default=0.0,
            metavar="LR",
            help="Learn each word of -test at this rate, after predicting it; 0: none.",
        ),
        option("lm-prob", metavar="FILE", help="Another model's probabilities of -test, one a line, to mix with."),
        option("lambda", "weight", type=Finite(0, 1), default=0.75, help="Weight of this model in the mixture."),
        option("gen", type=click.IntRange(0), default=0, metavar="N", help="Write N words drawn from the model."),
    ],
    "Output": [
        option("rnnlm", metavar="FILE", help="The model: written after each epoch, gone on from where it is there."),
        option(
            "anti-kasparek",
            type=click.IntRange(0),
            default=0,
            metavar="N",
            help="And after every N words, at least 10000; 0: not.",
        ),
        flag("binary", "Write the model, or vectors, in binary; -binary 1 is the same."),
        output_option,
        write_option,
        *RUN_FILES,
        option(
            "debug",
            type=click.IntRange(0),
            default=1,
            help="0: quiet, but for rnnlm's line an epoch; 1: a line an epoch; 2: progress, each word.",
        ),
    ],
}


class RnnlmCommand(SectionedCommand):
    """`-binary`, a flag in rnnlm, also takes word2vec.c's 0 or 1."""

    def parse_args(self, ctx, args):
        for at, value in reversed([*enumerate(args[1:])]):
            if args[at] in ("-binary", "--binary") and value in ("0", "1"):
                args = [*args[: at + int(value)], *args[at + 2 :]]
        return super().parse_args(ctx, args)


@click.command("rnnlm", cls=RnnlmCommand, short_help="Train Mikolov's class-based RNN language model.")
@texts_argument
@sections({**LM_TEXT, **MODEL, **TRAINING})
@click.pass_context
def command(ctx, **options):
    """Train Mikolov's class-based RNN language model on TEXT, with Rei's document vector if --doc-dim says so, and
    write its word vectors.

    TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also without any: words
    between white space, a sentence a line.

    With -rnnlm FILE and no -output it stands in for the program rnnlm: options mean what they do there, its log is
    on standard output, and no vectors are written. FILE has rnnlm's own format where that can hold the model. With
    -test or -gen and no TEXT nothing is trained.

    Ctrl-C stops the training, writes what there is and exits with status 130. With --checkpoint FILE --resume the same
    command goes on where it stopped, with --threads 1 to the very bytes; it may be repeated until it is done.
    """
    import pathlib

    texts, path = [*options["texts"], *options["train"]], options["rnnlm"]
    alone = path is not None and "output" not in given(ctx)
    testing = [name for name in ("nbest", "dynamic", "lm_prob", "gen") if options[name]]
    if testing and not alone:
        raise click.UsageError(f"-{testing[0].replace('_', '-')} needs -rnnlm FILE, and no -output")
    if set(testing) - {"gen"} and options["test"] is None:
        raise click.UsageError(f"-{testing[0].replace('_', '-')} needs -test TEXT")
    if options["valid"] is None and not (options["valid_share"] or options["one_iter"] or "max_iter" in given(ctx)):
        raise click.UsageError("without validation nothing ends the training: give --epochs N")
    if options["one_iter"] and "max_iter" in given(ctx) and options["max_iter"] > 1:
        raise click.UsageError("-one-iter is a single epoch: leave it out, or leave out --epochs")
    reads = [read for read in (options["test"], options["lm_prob"]) if alone and read is not None]
    read_once(*reads)
    for read in reads:
        if read != "-" and not pathlib.Path(read).is_fifo():
            open(read).close()  # a mistake is told before training
    print_text = lambda text: click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
    if texts or not alone or not (options["test"] or options["gen"]):
        model = trained(ctx, alone, reads, print_text)
    else:
        from tiedtools.models.rnnlm.run import load_rnnlm

        for name in ("save_model", "save_vocab", "checkpoint", "resume", "log_json", "manifest"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs a TEXT; without one nothing is trained")
        model = load_rnnlm(path)
    if alone:
        test_model(model, print_text, **options)


def trained(ctx, alone, reads, print_text):
    """Train and return the model.

    alone  log as rnnlm does, through `print_text`, and write no vectors
    reads  as of RnnlmTrainer
    """
    from tiedtools.models.rnnlm.trainer import RnnlmTrainer

    options, tell = ctx.params, print_text if alone and ctx.params["debug"] else lambda text: None

    class Trainer(RnnlmTrainer):
        def make(self, text):
            model = super().make(text)
            if not self.restored:
                tell(f"Vocab size: {len(text.vocab)}\nWords in train file: {text.train.size}\n")
            return model

    begin(ctx)
    reading = reading_of(ctx) | ({"test": None, "predict_oovs": False} if alone else {})
    own = {name: options[name] for name in ("rnnlm", "anti_kasparek", "one_iter", "no_memory_check")}
    lr = options["lr"] if "lr" in given(ctx) else None
    config, texts = configuration(options), texts_of(ctx)
    files = files_of(ctx, **({"output": None} if alone else {}))
    tell_idle(ctx, idle(options))
    tell(f"Starting training using file {shown(*texts)}\n")
    trainer = Trainer(config, schedule(options), texts, files, lr=lr, reads=reads, **own, **reading)
    if trainer.restored:
        message = "Restoring network from file to continue training..."
        print_text(f"{message}\n") if alone and options["debug"] else log.info(message)
        tell_unused(ctx, config, trainer.config)
    report = RnnlmReport if alone else LmReport
    return train(ctx, trainer, report(options["debug"]))


def tell_unused(ctx, asked, found):
    """Report options that have no effect because the model file has its own configuration."""
    spelled = as_given(ctx)
    other = [
        spelled[name]
        for name in sorted(given(ctx))
        if name in ("min_count", "max_vocab", "read_vocab") or getattr(asked, name, None) != getattr(found, name, None)
    ]
    if other:
        files = "options that are those of the file, not of the command line"
        log.info(f"{ctx.params['rnnlm']}: {files}: {', '.join(other)}")


def test_model(model, print_text, test, gen, nbest, lm_prob, weight, dynamic, debug, seed, errors, **_):
    """What rnnlm prints with -test, -nbest and -gen."""
    from tiedtools.evaluation import rnnlmtest

    values = model.params.values.copy() if dynamic and gen else model.params.values
    if test is not None and nbest:
        rnnlmtest.nbest(model, test, print_text, lm_prob, weight, debug, errors)
    elif test is not None:
        rnnlmtest.test(model, test, print_text, lm_prob, weight, dynamic, debug, errors)
    if gen:
        model.params.values[:] = values  # not what -dynamic has made of them
        rnnlmtest.generate(model, gen, print_text, seed)


def idle(options):
    """dict: name of an option that has no effect -> why not."""
    needed = {
        "direct": ["direct_order"],
        "bptt": ["bptt_block"],
        "doc_dim": ["doc_lr", "start_doc"],
        "lm_prob": ["weight"],
        "rnnlm": ["anti_kasparek"],
    }
    return {
        name: f"without --{option.replace('_', '-')}"
        for option, names in needed.items()
        for name in names
        if not options[option]
    }


def schedule(options):
    """The Training by rnnlm's rule."""
    from tiedtools.training.schedules import Training

    return Training(
        epochs=options["max_iter"],
        lr=options["lr"],
        clip=0.0,
        schedule="halving",
        min_improvement=options["min_improvement"],
        eval_batch=1,
    )


def configuration(options):
    """The RnnlmConfig of the options."""
    from tiedtools.models.rnnlm.config import RnnlmConfig

    D = options["doc_dim"]
    sentences = D > 0 if options["sentences"] is None else options["sentences"]
    settings = dict(
        options,
        hidden=options["hidden"] or (100 if D else 30),
        sentences=sentences,
        learn_start=sentences,
        shuffle=sentences,
        direct=round(options["direct"] * 10**6),
    )
    return from_options(RnnlmConfig, settings)
