"""`tiedtools lstm`"""

import click

from tiedtools.cli.options import Finite, SectionedCommand, errors_option, option, sections
from tiedtools.cores import available_cores

PROBABILITY = Finite(0, 1, max_open=True)


def list_presets(ctx, parameter, value):
    from tiedtools.models.presets import PRESETS

    if parameter.name == "preset" and value != "help":
        if value is not None and value not in PRESETS:
            raise click.BadParameter(f"{value!r} is none of {', '.join(PRESETS)}.", ctx, parameter)
        return value
    if value:
        for name, (source, values) in PRESETS.items():
            click.echo(f"{name}\n    {source}\n    {shown(values)}")
        ctx.exit()


def flag(name, help):
    return option(name, is_flag=True, help=help, show_default=False)


TEXT = {
    "Text": [
        option("train", multiple=True, metavar="TEXT", help="Another text to train on; as a bare TEXT."),
        option("valid", metavar="TEXT", help="Text that chooses the best epoch and steers the learning rate."),
        option("test", metavar="TEXT", help="Text to measure the best epoch's perplexity on."),
        option("valid-share", type=PROBABILITY, default=0.1, help="Without -valid: this last part, by lines; 0: none."),
        option("min-count", type=click.IntRange(0), default=1, help="Words seen less often become `<unk>`."),
        option("max-vocab", type=click.IntRange(3), metavar="N", help="Keep N words with `</s>` and `<unk>`."),
        option("read-vocab", metavar="FILE", help="Take the vocabulary from FILE instead of counting TEXT."),
        option("save-vocab", metavar="FILE", help="Write the vocabulary, `word count` a line."),
        errors_option,
    ],
}

MODEL = {
    "Model": [
        option(
            "preset",
            metavar="NAME",
            callback=list_presets,
            is_eager=True,
            help="Set options as a paper did; those given win.  `help`: as --list-presets.",
        ),
        option(
            "list-presets",
            is_flag=True,
            callback=list_presets,
            is_eager=True,
            expose_value=False,
            show_default=False,
            help="Show what each preset sets.",
        ),
        option("emb", type=click.IntRange(1, 10**5), default=200, help="Width of the embeddings."),
        option(
            "hidden",
            type=click.IntRange(1, 10**5),
            help="Width of the LSTM layers.  [default: as --emb]",
        ),
        option("layers", type=click.IntRange(1, 100), default=2, help="LSTM layers."),
        flag("tie", "One matrix for input and output embeddings (Press & Wolf, Inan et al. 2017)."),
        flag("tie-linear", "One matrix, and a map L before it as output (Gulordava et al. 2018)."),
        flag("linear-bias", "L has a bias."),
        option(
            "linear-dropout",
            type=click.Choice(["before", "after", "both"]),
            default="before",
            help="Where the output's dropout is, seen from L.",
        ),
        flag("no-output-bias", "Scores have no bias for each word (with --tie: Inan's RE)."),
        option("init", type=Finite(0), default=0.1, help="Parameters start uniform in +- this."),
        option("init-lstm", type=Finite(0), help="Those of the LSTM.  [default: as --init]"),
        option("init-bias", type=click.Choice(["uniform", "zero"]), default="uniform", help="Start of biases."),
        option("forget-bias", type=Finite(-100, 100), default=0.0, help="Added to the biases of forget gates."),
    ],
    "Dropout": [
        option("dropout", "rate", type=PROBABILITY, default=0.3, metavar="P", help="At every place that the kind has."),
        option(
            "dropout-kind",
            "dropout",
            type=click.Choice(["standard", "variational", "gal"]),
            default="standard",
            help="Fresh masks for each token; one over time for a layer's output (Inan); one for each gate (Gal).",
        ),
        option("drop-word", type=PROBABILITY, metavar="P", help="Of word types (gal)."),
        option("drop-emb", type=PROBABILITY, metavar="P", help="Of embeddings (standard, gal)."),
        option("drop-layer", type=PROBABILITY, metavar="P", help="Between layers."),
        option("drop-state", type=PROBABILITY, metavar="P", help="Of what goes on in time (variational, gal)."),
        option("drop-out", type=PROBABILITY, metavar="P", help="Of the top layer's output."),
        option(
            "mask-sharing",
            type=click.Choice(["example", "batch"]),
            default="example",
            help="Masks over time for each stream, or for all of a batch.",
        ),
        option("mc-samples", type=click.IntRange(0), default=0, metavar="N", help="Test with N draws of masks (Gal)."),
    ],
    "Loss": [
        option(
            "augment", type=Finite(0), default=0.0, metavar="GAMMA", help="Inan's augmented loss; theirs: .5 to 1.5."
        ),
        option("tau", type=Finite(0, min_open=True), default=20.0, help="Its temperature."),
        flag("detach", "No gradient through its target."),
        option("projection", type=Finite(0), default=0.0, metavar="LAMBDA", help="Press & Wolf's P; theirs: .154."),
        option("sampled", type=click.IntRange(0), default=0, metavar="N", help="Train by sampled softmax of N words."),
        option(
            "loss-scale",
            type=click.Choice(["mean", "sum"]),
            default="mean",
            help="Mean over tokens, or sum over time of the mean over streams; goes with --lr and --clip.",
        ),
        option("weight-decay", type=Finite(0, 1), default=0.0, help="Share of the parameters taken off at each step."),
    ],
}

TRAINING = {
    "Training": [
        option("epochs", type=click.IntRange(1, 10**6), default=40, help="Passes over the text."),
        option("sessions", type=click.IntRange(1, 1000), default=1, help="So many times, each from the best (Inan)."),
        option("lr", type=Finite(0, min_open=True), default=20.0, help="First learning rate."),
        option("clip", type=Finite(0), default=0.25, help="Limit of the gradient's norm; 0: none."),
        option(
            "schedule",
            type=click.Choice(["plateau", "decay"]),
            default="plateau",
            help="Lower the rate after an epoch that was no new best, or every epoch.",
        ),
        option("decay", type=Finite(1), default=4.0, help="By what the rate is then divided."),
        option("decay-after", type=click.IntRange(1), default=1, help="decay: full epochs at the first rate."),
        option("batch", type=click.IntRange(1, 10**5), default=20, help="Streams of text side by side."),
        option("steps", type=click.IntRange(1, 10**5), default=35, help="Tokens that backpropagation goes back."),
        option("eval-batch", type=click.IntRange(1, 10**5), default=10, help="Streams in validation."),
        option("seed", type=click.IntRange(0, 2**32 - 1), default=1, help="Of all random choices."),
        option("threads", type=click.IntRange(1, 1024), help="Threads to train with.  [default: all cores]"),
    ],
    "Output": [
        option("output", default="-", help="File for the vectors; - is standard output."),
        option(
            "write",
            type=click.Choice(["in", "out", "sum", "concat"]),
            default="in",
            help="Which vectors: input, output, their sum, or side by side.",
        ),
        option("binary", type=click.IntRange(0, 1), default=0, help="1: write word2vec's binary format."),
        option("save-model", metavar="FILE", help="Write all parameters, vocabulary and options as .npz."),
        option("checkpoint", metavar="FILE", help="Write the run to FILE at each epoch's end and when it is stopped."),
        option("checkpoint-minutes", type=Finite(0), default=10.0, help="And so often; 0: no more than that."),
        flag("resume", "Go on from the checkpoint if there is one; otherwise begin."),
        option("log-json", metavar="FILE", help="Write the figures of each epoch, one JSON object a line."),
        option("debug", type=click.IntRange(0), default=2, help="0: quiet; 1: a line an epoch; 2: progress."),
    ],
}


@click.command("lstm", cls=SectionedCommand)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@sections({**TEXT, **MODEL, **TRAINING})
@click.pass_context
def command(ctx, texts, train, **options):
    """Train an LSTM language model on TEXT, with separate, tied, or tied+L embeddings, and write its word vectors.

    TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also without any: words
    between white space, a sentence a line. Perplexities of validation and test are on standard error.

    Ctrl-C stops the training, writes what there is and exits with status 130. With --checkpoint FILE --resume the same
    command goes on where it stopped, with --threads 1 to the very bytes; it may be repeated until it is done.
    """
    import contextlib
    import dataclasses
    import os

    from tiedtools.errors import TiedtoolsError
    from tiedtools.fit import Diverged, Fit, Training
    from tiedtools.lmtext import LmText
    from tiedtools.models.lstmconfig import SHARING, LstmConfig
    from tiedtools.output import Outputs, refuse_clashes
    from tiedtools.report import LmReport, say

    talk = say if options["debug"] else lambda message: None
    settings = settle(ctx, options, talk)
    of = lambda kind: {field.name: settings[field.name] for field in dataclasses.fields(kind) if field.name in settings}
    config, training = LstmConfig(**of(LstmConfig)), Training(**of(Training))
    if options["write"] == "sum" and config.sharing == "untied" and config.emb != config.hidden:
        raise click.UsageError(f"--write sum: input and output vectors are {config.emb} and {config.hidden} wide")
    checkpoint, log_json = options["checkpoint"], options["log_json"]
    if options["resume"] and checkpoint is None:
        raise click.UsageError("--resume needs --checkpoint FILE to resume from")
    if "-" in (log_json, checkpoint):
        raise click.UsageError(f"{'--log-json' if log_json == '-' else '--checkpoint'} needs a file of its own")
    texts = [*texts, *train] or ["-"]
    inputs = [*texts, *(path for name in ("valid", "test", "read_vocab") if (path := options[name]) is not None)]
    if inputs.count("-") > 1:
        raise click.UsageError("standard input can be read only once")

    # Every output is opened before hours of training, not after.
    paths = {name: options[name] for name in ("save_vocab", "save_model", "output")}
    refuse_clashes([*paths.values(), checkpoint, log_json], inputs)
    there = checkpoint is not None and os.path.exists(checkpoint)
    if there and not options["resume"]:
        raise TiedtoolsError(f"{checkpoint}: exists: add --resume to go on from it, or remove it to begin anew")
    from tiedtools.models.lstmlm import LstmLM

    with Outputs(paths) as outputs, contextlib.ExitStack() as files:
        log = files.enter_context(open(log_json, "a")) if log_json is not None else None
        names = "valid", "test", "valid_share", "min_count", "read_vocab", "errors"
        text = LmText.read(texts, max_vocab=settings["max_vocab"], talk=talk, **{name: options[name] for name in names})
        if "save_vocab" in outputs:
            outputs.write("save_vocab", text.vocab.write)
        sizes = {"train": text.train, "valid": text.valid, "test": text.test}
        sizes = ", ".join(f"{name} {ids.size:,}" for name, ids in sizes.items() if ids is not None)
        talk(f"text: {sizes} tokens with line ends; vocabulary of {len(text.vocab):,} words")
        model = LstmLM(text.vocab, config)
        n = model.params.count
        talk(
            f"model: LSTM, {SHARING[config.sharing]}, {config.layers} x {config.hidden}, embeddings of {config.emb},"
            f" {n:,} parameters ({n / 1e6:.2f}M, {n * model.params.values.itemsize / 1e6:,.0f} MB);"
            f" {config.threads} threads, seed {config.seed}"
        )
        run = Fit(model, text.train, text.valid, training, checkpoint, resume=there)
        if there:
            talk(f"resumed: epoch {run.epoch + 1}, {run.window:,} of its {run.feed.steps:,} steps done")
        if log:
            with contextlib.suppress(OSError):  # devices and pipes
                log.truncate(0)
        report = LmReport(options["debug"], log)
        stopped = None
        try:
            run.go(report)
        except (KeyboardInterrupt, Diverged) as stop:
            stopped = stop
        report.close()
        if stopped and not run.finite:
            raise stopped
        if "save_model" in outputs:
            outputs.write("save_model", model.save)
        vectors = model.vectors(options["write"])
        outputs.write("output", vectors.write_binary if options["binary"] else vectors.write_text)
        if stopped:
            raise stopped
        figures = dict(best_epoch=run.best_epoch, test_ppl=test_ppl(model, text.test, talk, run.best_epoch))
        report.write(**figures, params=n, seconds=round(run.elapsed, 3))


def test_ppl(model, ids, talk, epoch):
    """Perplexity of the test text, one stream from end to end; None without one."""
    from tiedtools.fit import evaluate
    from tiedtools.report import perplexity

    if ids is None:
        return None
    ppl = perplexity(-float(evaluate(model, ids, 1, samples=model.config.mc_samples).mean()))
    talk(f"test ppl {ppl:.2f}, {ids.size:,} tokens, with the model of epoch {epoch}")
    return ppl


def settle(ctx, options, talk):
    """The fields of LstmConfig and Training by name: what was given, before the preset, before the defaults."""
    from tiedtools.models.lstmconfig import PLACES
    from tiedtools.models.presets import PRESETS

    if options["tie"] and options["tie_linear"]:
        raise click.UsageError("--tie and --tie-linear are two models: choose one")
    given = {name for name in options if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}
    if options["valid"] is not None and "valid_share" in given:
        raise click.UsageError("-valid and --valid-share are two ways to validate: choose one")
    source, preset = PRESETS[options["preset"]] if options["preset"] else (None, {})
    settings = dict(
        {**options, **{name: value for name, value in preset.items() if name not in given}},
        sharing="linear" if options["tie_linear"] else "tied" if options["tie"] else "untied",
        output_bias=not options["no_output_bias"],
        threads=options["threads"] or available_cores(),
    )
    kind = settings["dropout"]
    rates = dict.fromkeys(PLACES[kind], preset["drop_out"] if preset and "rate" not in given else options["rate"])
    if preset and "rate" not in given and preset["dropout"] == kind:
        rates = {place: preset[f"drop_{place}"] for place in PLACES[kind]}
    for place in PLACES["gal"]:
        if f"drop_{place}" not in given:
            settings[f"drop_{place}"] = rates.get(place, 0.0)
    if preset:
        kept = {name: value for name, value in preset.items() if settings[name] == value}
        changed = {name: settings[name] for name in preset if name not in kept}
        talk(f"preset {options['preset']}: {shown(kept)}" + (f"; changed: {shown(changed)}" if changed else ""))
    return settings


def shown(values):
    """Options as one would give them."""
    names = {"dropout": "dropout-kind"}
    number = lambda value: f"{value:g}" if isinstance(value, float) else value
    return " ".join(f"--{names.get(name, name).replace('_', '-')} {number(value)}" for name, value in values.items())
