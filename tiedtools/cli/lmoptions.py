"""Options of the commands that train a network: presets, and the sections Model, Subwords, and Dropout."""

import click

from tiedtools.base.messages import log
from tiedtools.cli.options import PROBABILITY, Finite, as_options, flag, option


def list_presets(ctx, parameter, value):
    """Option callback: validate the name of a preset, or print all presets and exit."""
    if value is None or value is False:
        return value
    presets = presets_of(ctx)
    if parameter.name == "preset" and value != "help":
        if value not in presets:
            raise click.BadParameter(f"{value!r} is not one of {', '.join(presets)}.", ctx, parameter)
        return value
    for name, (source, values) in presets.items():
        click.echo(f"{name}\n    {source}\n    {as_options(values)}")
    ctx.exit()


def presets_of(ctx):
    """Return the presets of a command: of `lstm`, those that do not set another cell."""
    if ctx.command.name == "nmt":
        from tiedtools.models.translation.config import PRESETS

        return PRESETS
    from tiedtools.models.lm.presets import PRESETS

    return {name: preset for name, preset in PRESETS.items() if ctx.command.name != "lstm" or "cell" not in preset[1]}


def complete_preset(ctx, parameter, incomplete):
    """Return the preset names that start with `incomplete`, for shell completion."""
    return [name for name in presets_of(ctx) if name.startswith(incomplete)]


PRESET = [
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
]


def tell_preset(name, values, settings):
    """Log the settings of a preset, a dict, and those that the settings of a run change."""
    changed = {name: settings[name] for name, value in values.items() if settings[name] != value}
    kept = {name: value for name, value in values.items() if name not in changed}
    log.info(f"preset {name}: {as_options(kept)}" + (f"; changed: {as_options(changed)}" if changed else ""))


MODEL = {
    "Model": [
        *PRESET,
        option("size", also="emb", type=click.IntRange(1, 10**5), default=200, help="Embedding dimension."),
        option(
            "hidden",
            type=click.IntRange(1, 10**5),
            help="Hidden units per layer.  [default: same as --size]",
        ),
        option(
            "layers",
            type=click.IntRange(1, 100),
            help="Number of recurrent layers.  [default: 2, or as many as --layer-widths has]",
        ),
        option(
            "layer-widths",
            metavar="LIST",
            help="Hidden units of each layer, such as 1150,1150,400; instead of --hidden and --layers.",
        ),
        flag("tie/--no-tie", "Tie input and output embeddings (Press & Wolf 2017, Inan et al. 2017)."),
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
            help="Like --init, for the recurrent layers, L, and P (see --projection) only.  [default: same as --init]",
        ),
        option(
            "init-bias",
            type=click.Choice(["uniform", "zero", "lstm"]),
            default="uniform",
            help="Initialization of all biases; lstm: zero in the softmax layer, uniform elsewhere (as in PyTorch).",
        ),
        flag(
            "init-by-width",
            "Initialize a recurrent layer of n units uniformly between -1/sqrt(n) and 1/sqrt(n), as PyTorch does; with"
            " --subwords, the same for weights of highways, projections, and convolutions with n inputs.",
        ),
        option(
            "forget-bias",
            type=Finite(-100, 100),
            default=0.0,
            help="Constant added to the initial forget-gate biases (GRU: update gate).",
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
        flag("atomic-unk/--no-atomic-unk", "Read `<unk>` as one subword (Kim et al.), not split like other words."),
    ],
    "Dropout": [
        option(
            "dropout",
            type=PROBABILITY,
            default=0.3,
            metavar="P",
            help="Dropout probability at all sites, not of --drop-weights; the --drop options set it for one site.",
        ),
        option(
            "dropout-kind",
            type=click.Choice(["standard", "variational", "gal", "locked"]),
            default="standard",
            help="standard: a new dropout mask for each token; variational: one per layer, fixed over time (Inan et"
            " al.); gal: one per gate, fixed over time (Gal & Ghahramani); locked: like standard, but fixed over time,"
            " with words dropped for the whole batch (Merity et al.).",
        ),
        option(
            "drop-word",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of word types (gal, locked).  [default: --dropout]",
        ),
        option(
            "drop-emb",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability of embeddings (standard, gal, locked).  [default: --dropout]",
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
            "drop-weights",
            type=PROBABILITY,
            default=0.0,
            metavar="P",
            help="Dropout probability of recurrent weights, one mask per window (weight drop; Merity et al.).",
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
            help="Monte Carlo dropout (not standard): average test probabilities over N samples of all masks but those"
            " of words; 0 disables.",
        ),
    ],
}
