"""`tiedtools lstm`: train an LSTM language model."""

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
    option,
    output_option,
    precision_option,
    sections,
    seed_option,
    texts_argument,
    threads_option,
    write_option,
)
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, settings_of, tell_idle, texts_for, texts_of, train
from tiedtools.messages import log


def list_presets(ctx, parameter, value):
    """Option callback: validate the name of a preset, or print all presets and exit."""
    if value is None or value is False:
        return value
    from tiedtools.models.lstm.presets import PRESETS

    if parameter.name == "preset" and value != "help":
        if value not in PRESETS:
            raise click.BadParameter(f"{value!r} is not one of {', '.join(PRESETS)}.", ctx, parameter)
        return value
    for name, (source, values) in PRESETS.items():
        click.echo(f"{name}\n    {source}\n    {as_options(values)}")
    ctx.exit()


def complete_preset(ctx, parameter, incomplete):
    """Return the preset names that start with `incomplete`, for shell completion."""
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
            help="Use a paper's settings; options given explicitly override them. `help` lists the presets.",
        ),
        option(
            "list-presets",
            is_flag=True,
            callback=list_presets,
            is_eager=True,
            expose_value=False,
            show_default=False,
            help="List the presets with their settings and exit.",
        ),
        option("size", also="emb", type=click.IntRange(1, 10**5), default=200, help="Embedding dimension."),
        option(
            "hidden",
            type=click.IntRange(1, 10**5),
            help="Hidden units per LSTM layer.  [default: same as --size]",
        ),
        option("layers", type=click.IntRange(1, 100), default=2, help="Number of LSTM layers."),
        flag("tie", "Tie input and output embeddings (Press & Wolf 2017, Inan et al. 2017)."),
        flag("tie-linear", "Tie embeddings, with a linear map L before the output (tied+L; Gulordava et al. 2018)."),
        flag("linear-bias", "Add a bias to L (with --tie-linear)."),
        option(
            "linear-dropout",
            type=click.Choice(["before", "after", "both"]),
            default="before",
            help="With --tie-linear, apply output dropout before L, after it, or both.",
        ),
        flag("no-output-bias", "Omit the bias of the softmax layer (with --tie: model RE of Inan et al.)."),
        option(
            "init",
            type=Finite(0),
            default=0.1,
            help="Initialize parameters uniformly between minus and plus this value.",
        ),
        option(
            "init-lstm",
            type=Finite(0),
            help="Like --init, for the LSTM layers, L, and P (see --projection) only.  [default: same as --init]",
        ),
        option(
            "init-bias",
            type=click.Choice(["uniform", "zero", "lstm"]),
            default="uniform",
            help="Initialization of all biases; lstm: zero in the softmax layer, uniform elsewhere (as in PyTorch).",
        ),
        option(
            "forget-bias",
            type=Finite(-100, 100),
            default=0.0,
            help="Constant added to the initial forget-gate biases.",
        ),
    ],
    "Subwords": [
        option(
            "subwords",
            type=click.Choice(["morphs", "syllables", "chars"]),
            help="Compose word vectors from subwords: sums of morph embeddings (MorphSum), projections of concatenated"
            " syllable embeddings (SylConcat), or convolutions over characters (CharCNN), and highway layers.",
        ),
        option(
            "reuse",
            default="all",
            metavar="plain|none|all|LIST",
            help="Output embeddings with --subwords: a vector per word (plain), or composed, with separate parameters"
            " (none), those of the input (all), or those of the layers in LIST, comma-separated, such as emb,hw1.",
        ),
        option(
            "subword-dim",
            type=click.IntRange(1, 10**5),
            help="Dimension of subword embeddings.  [default: --size for morphs, 50 for syllables, 15 for chars]",
        ),
        option(
            "highway-dim",
            type=click.IntRange(1, 10**5),
            help="Dimension of composed word vectors.  [default: --size; for chars, the number of filters]",
        ),
        option("highways", type=click.IntRange(0, 100), default=2, help="Number of highway layers."),
        option(
            "filters",
            default="25,50,75,100,125,150",
            metavar="LIST",
            help="Numbers of convolution filters of widths 1, 2, ... (chars).",
        ),
        option("language", default="en_US", help="Language of the hyphenation patterns (syllables)."),
        option(
            "segmentation",
            metavar="FILE",
            help="Read the morphs or syllables of words from FILE: `word subword subword` per line, or Morfessor's text"
            " format.",
        ),
    ],
    "Dropout": [
        option(
            "dropout",
            type=PROBABILITY,
            default=0.3,
            metavar="P",
            help="Dropout probability at all sites; the --drop options set it for one site.",
        ),
        option(
            "dropout-kind",
            type=click.Choice(["standard", "variational", "gal"]),
            default="standard",
            help="standard: a new dropout mask for each token; variational: one per layer, fixed over time (Inan et"
            " al.); gal: one per gate, fixed over time (Gal & Ghahramani).",
        ),
        option(
            "drop-word",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of word types (--dropout-kind gal).  [default: --dropout]",
        ),
        option(
            "drop-emb",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of embeddings (standard, gal).  [default: --dropout]",
        ),
        option(
            "drop-layer",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability between layers.  [default: --dropout]",
        ),
        option(
            "drop-state",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of the recurrent state (variational, gal).  [default: --dropout]",
        ),
        option(
            "drop-out",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of the top layer's output.  [default: --dropout]",
        ),
        option(
            "mask-sharing",
            type=click.Choice(["example", "batch"]),
            default="example",
            help="Masks fixed over time: one for each parallel stream (example), or one for the whole batch (batch).",
        ),
        option(
            "mc-samples",
            type=click.IntRange(0),
            default=0,
            metavar="N",
            help="Monte Carlo dropout (variational, gal): average test probabilities over N sampled masks; 0 disables.",
        ),
    ],
    "Loss": [
        option(
            "augment",
            type=Finite(0),
            default=0.0,
            metavar="GAMMA",
            help="Weight of the augmented loss of Inan et al. (their values: .5 to 1.5); 0 disables.",
        ),
        option(
            "augment-share",
            type=Finite(0, 1),
            default=0.0,
            metavar="BETA",
            help="Alternative to --augment: minimize BETA tau^2 V KL + (1 - BETA) cross entropy (Inan et al., equation"
            " 6.1); 0 disables.",
        ),
        option(
            "tau", type=Finite(0, min_open=True), default=20.0, help="Softmax temperature tau of the augmented loss."
        ),
        flag("detach", "Stop gradients through the soft target of the augmented loss."),
        flag("unit-embeddings", "Constrain input embeddings to unit norm (Inan et al., section 6.2)."),
        option(
            "projection",
            type=Finite(0),
            default=0.0,
            metavar="LAMBDA",
            help="Add Press & Wolf's projection P before the softmax, and LAMBDA/2 |P|^2 to the summed loss of each"
            " batch; 0 disables. Their code has LAMBDA .154, their paper the penalty .15 |P|.",
        ),
        option(
            "sampled",
            type=click.IntRange(0),
            default=0,
            metavar="N",
            help="Train with sampled softmax over the target and N sampled words; 0: full softmax.",
        ),
        option(
            "loss-scale",
            type=click.Choice(["mean", "sum"]),
            default="mean",
            help="Mean over tokens, or sum over time of the mean over streams. sum is --steps times as large: choose"
            " --lr and --clip to match.",
        ),
        option(
            "weight-decay",
            type=Finite(0, 1),
            default=0.0,
            help="Fraction by which weights shrink per step, independent of --lr.",
        ),
    ],
}

TRAINING = {
    "Training": [
        option(
            "epochs", type=click.IntRange(1, 10**6), default=40, help="Number of epochs; with --sessions, per session."
        ),
        option(
            "sessions",
            type=click.IntRange(1, 1000),
            default=1,
            help="Number of training sessions; each restarts the schedule from an earlier model (Inan et al.).",
        ),
        option(
            "restart",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model that each later session starts from: best validation loss so far, or last epoch.",
        ),
        option(
            "keep",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model to test and save: best validation loss, or last epoch (Zaremba et al.).",
        ),
        option("lr", type=Finite(0, min_open=True), default=20.0, help="Initial learning rate of SGD."),
        option("clip", type=Finite(0), default=0.25, help="Clip the global gradient norm to this value; 0 disables."),
        option(
            "schedule",
            type=click.Choice(["plateau", "decay"]),
            default="plateau",
            help="Reduce the learning rate after each epoch without improvement, or after every epoch.",
        ),
        option("decay", type=Finite(1), default=4.0, help="Divide the learning rate by this at each reduction."),
        option(
            "min-gain",
            type=Finite(0),
            default=0.0,
            help="With --schedule plateau, reduce the learning rate unless validation perplexity falls by at least this"
            " (Kim et al.: 1); 0: unless it is the lowest so far.",
        ),
        option(
            "decay-after",
            type=click.IntRange(1),
            default=1,
            help="With --schedule decay, number of epochs at the initial learning rate.",
        ),
        option("batch", type=click.IntRange(1, 10**5), default=20, help="Batch size (parallel streams)."),
        option("steps", type=click.IntRange(1, 10**5), default=35, help="Truncated-BPTT length in tokens."),
        option(
            "eval-batch", type=click.IntRange(1, 10**5), default=10, help="Batch size (parallel streams) in validation."
        ),
        seed_option,
        threads_option,
        precision_option(
            "Precision of matrix products in training; bfloat16 is faster on AMD CPUs since Zen 4 and Intel Xeon since"
            " Sapphire Rapids."
        ),
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
    """Train an LSTM language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    TEXT has one sentence per line, with words separated by whitespace, and may be compressed (.gz .bz2 .xz .zst); `-`
    or no argument reads standard input. Validation and test perplexity are reported on stderr.

    The model's word vectors are written to --output. Save the model itself with --save-model.

    Ctrl-C stops training, writes the vectors trained so far, and exits with status 130. With --checkpoint FILE, rerun
    the same command with --resume to continue from the last checkpoint. With the same number of threads, the output is
    byte-identical to that of an uninterrupted run.
    """
    from tiedtools.api.language import LanguageModel

    begin(ctx)
    model = LanguageModel("lstm", **settings_of(ctx))
    config, schedule, _ = model.configure()
    if options["preset"]:
        tell_preset(options["preset"], model.settings)
    tell_idle(ctx, idle(config, schedule))
    train(ctx, model.trainer(texts_of(ctx), **texts_for(ctx), **files_of(ctx)), LmReport(options["debug"]))


def tell_preset(name, given):
    """Log the settings of a preset, and those that the given ones change."""
    from tiedtools.models.lstm.presets import PRESETS
    from tiedtools.models.lstm.settings import settle

    preset, settings = PRESETS[name][1], settle(**given)
    changed = {name: settings[name] for name, value in preset.items() if settings[name] != value}
    kept = {name: value for name, value in preset.items() if name not in changed}
    log.info(f"preset {name}: {as_options(kept)}" + (f"; changed: {as_options(changed)}" if changed else ""))


def idle(config, schedule):
    """Return a dict: name of an option without effect under these settings -> reason."""
    why = {} if config.augment or config.augment_share else dict.fromkeys(("tau", "detach"), "without --augment")
    why |= {"mask_sharing": "with --dropout-kind standard"} if config.dropout_kind == "standard" else {}
    why |= {"decay_after" if schedule.schedule == "plateau" else "min_gain": f"with --schedule {schedule.schedule}"}
    why |= {"restart": "with one session"} if schedule.sessions == 1 else {}
    why |= {"language": f"with {config.subwords}"} if config.subwords in ("morphs", "chars") else {}
    return why | ({"filters": f"with {config.subwords}"} if config.subwords in ("morphs", "syllables") else {})
