"""`tiedtools lstm`"""

import click

from tiedtools.cli.options import (
    LM_TEXT,
    PROBABILITY,
    RUN_FILES,
    Finite,
    SectionedCommand,
    as_options,
    binary_option,
    debug_option,
    flag,
    from_options,
    given,
    option,
    output_option,
    precision_option,
    sections,
    seed_option,
    texts_argument,
    threads_option,
    tying,
    write_option,
)
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, reading_of, tell_idle, texts_of, train
from tiedtools.cores import available_cores
from tiedtools.messages import log


def list_presets(ctx, parameter, value):
    if value is None or value is False:
        return value
    from tiedtools.models.lstm.presets import PRESETS

    if parameter.name == "preset" and value != "help":
        if value not in PRESETS:
            raise click.BadParameter(f"{value!r} is none of {', '.join(PRESETS)}.", ctx, parameter)
        return value
    for name, (source, values) in PRESETS.items():
        click.echo(f"{name}\n    {source}\n    {as_options(values)}")
    ctx.exit()


def complete_preset(ctx, parameter, incomplete):
    from tiedtools.models.lstm.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)]


MODEL = {
    "Model": [
        option(
            "preset",
            metavar="NAME",
            callback=list_presets,
            is_eager=True,
            shell_complete=complete_preset,
            help="Set options as a paper did; what is given besides wins.  `help`: as --list-presets.",
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
        option("size", "emb", also="emb", type=click.IntRange(1, 10**5), default=200, help="Embedding dimension."),
        option(
            "hidden",
            type=click.IntRange(1, 10**5),
            help="Width of the LSTM layers.  [default: as --size]",
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
        option("init-lstm", type=Finite(0), help="Those of the LSTM, of L, and of P.  [default: as --init]"),
        option(
            "init-bias",
            type=click.Choice(["uniform", "zero", "lstm"]),
            default="uniform",
            help="Start of biases; lstm: those of the softmax zero, others uniform (PyTorch).",
        ),
        option("forget-bias", type=Finite(-100, 100), default=0.0, help="Added to the biases of forget gates."),
    ],
    "Dropout": [
        option("dropout", "rate", type=PROBABILITY, default=0.3, metavar="P", help="At every site that the kind has."),
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
        option(
            "augment-share",
            type=Finite(0, 1),
            default=0.0,
            metavar="BETA",
            help="Proportion of the augmented loss: BETA tau^2 V KL + (1 - BETA) cross entropy (Inan's equation 6.1).",
        ),
        option("tau", type=Finite(0, min_open=True), default=20.0, help="Temperature of the augmented loss."),
        flag("detach", "Stop gradients through the soft target of the augmented loss."),
        flag("unit-embeddings", "Keep the norm of each input embedding at 1 (Inan et al., section 6.2)."),
        option(
            "projection",
            type=Finite(0),
            default=0.0,
            metavar="LAMBDA",
            help="Press & Wolf's P before the softmax, with the penalty LAMBDA/2 |P|^2 on a window's summed loss (their"
            " code: .154; their paper: .15 |P|).",
        ),
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
        option(
            "sessions",
            type=click.IntRange(1, 1000),
            default=1,
            help="Number of training sessions; each restarts the schedule (Inan et al.).",
        ),
        option(
            "restart",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model from which further sessions start: best validation loss so far, or last epoch (Inan et al.).",
        ),
        option(
            "keep",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model that is tested and written: best validation loss, or last epoch (Zaremba et al.).",
        ),
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
        seed_option,
        threads_option,
        precision_option("Of products in training; bfloat16 is faster on processors that multiply it."),
    ],
    "Output": [
        output_option,
        write_option,
        binary_option,
        *RUN_FILES,
        debug_option,
    ],
}


@click.command("lstm", cls=SectionedCommand, short_help="Train an LSTM language model.")
@texts_argument
@sections({**LM_TEXT, **MODEL, **TRAINING})
@click.pass_context
def command(ctx, **options):
    """Train an LSTM language model on TEXT, with separate, tied, or tied+L embeddings, and write its word vectors.

    TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also without any: words
    between white space, a sentence a line. Perplexities of validation and test are on standard error.

    Ctrl-C stops the training, writes what there is and exits with status 130. With --checkpoint FILE --resume the same
    command goes on where it stopped, on as many threads to the very bytes; it may be repeated until it is done.
    """
    from tiedtools.models.lstm.config import LstmConfig
    from tiedtools.models.lstm.trainer import LstmTrainer
    from tiedtools.training.schedules import Training

    begin(ctx)
    settings = settle(ctx, options)
    config, schedule = from_options(LstmConfig, settings), from_options(Training, settings)
    tell_idle(ctx, idle(config, schedule))
    reading = reading_of(ctx) | {"max_vocab": settings["max_vocab"]}
    more = dict(reading, no_memory_check=options["no_memory_check"])
    train(ctx, LstmTrainer(config, schedule, texts_of(ctx), files_of(ctx), **more), LmReport(options["debug"]))


def idle(config, schedule):
    """dict: option that these settings make idle -> why."""
    why = {} if config.augment or config.augment_share else dict.fromkeys(("tau", "detach"), "without --augment")
    why |= {"mask_sharing": "on masks that are fresh for each token"} if config.dropout == "standard" else {}
    why |= {"decay_after": "with --schedule plateau"} if schedule.schedule == "plateau" else {}
    return why | ({"restart": "with one session"} if schedule.sessions == 1 else {})


def settle(ctx, options):
    """The fields of LstmConfig and Training by name: what was given, before the preset, before the defaults."""
    from tiedtools.models.lstm.presets import PRESETS
    from tiedtools.network.config import SITES

    set_here = given(ctx)
    source, preset = PRESETS[options["preset"]] if options["preset"] else (None, {})
    settings = dict(
        {**options, **{name: value for name, value in preset.items() if name not in set_here}},
        tying=tying(options["tie"], options["tie_linear"]),
        output_bias=not options["no_output_bias"],
        threads=options["threads"] or available_cores(),
    )
    kind = settings["dropout"]
    rates = dict.fromkeys(SITES[kind], preset["drop_out"] if preset and "rate" not in set_here else options["rate"])
    if preset and "rate" not in set_here and preset["dropout"] == kind:
        rates = {site: preset[f"drop_{site}"] for site in SITES[kind]}
    for site in SITES["gal"]:
        if f"drop_{site}" not in set_here:
            settings[f"drop_{site}"] = rates.get(site, 0.0)
    if preset:
        kept = {name: value for name, value in preset.items() if settings[name] == value}
        changed = {name: settings[name] for name in preset if name not in kept}
        log.info(
            f"preset {options['preset']}: {as_options(kept)}" + (f"; changed: {as_options(changed)}" if changed else "")
        )
    return settings
