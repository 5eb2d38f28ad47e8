"""`tiedtools lm`, `lstm`, and `nmt`: train language models with recurrent cells, and translation models."""

from typing import Any

import click

from tiedtools.base import settings
from tiedtools.base.messages import log
from tiedtools.base.settings import LmContinuation, LmReading
from tiedtools.cli import training
from tiedtools.cli.command import SectionedCommand, sections, warn_idle
from tiedtools.cli.options import as_option, as_options, flag, text_option
from tiedtools.cli.report import LmReport
from tiedtools.cli.shared import LM_TEXT, OUTPUT, texts_argument
from tiedtools.models.lm import presets
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.translation import config as translation
from tiedtools.models.translation.config import BitextReading, TranslationConfig
from tiedtools.network.config import DROPOUT, Composition, Computation, Dropout, Loss, Optimization, Shorthands, Tying
from tiedtools.training.schedules import Training, of_other_schedules

PRESETS = {  # of each command; `lstm` has only the presets without another cell
    "lm": presets.PRESETS,
    "lstm": {name: preset for name, preset in presets.PRESETS.items() if "cell" not in preset[1]},
    "nmt": translation.PRESETS,
}


def list_presets(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Option callback: validate the name of a preset, or print all presets and exit."""
    if value is None or value is False:
        return value
    known = PRESETS[str(ctx.command.name)]
    if parameter.name == "preset" and value != "help":
        if value not in known:
            raise click.BadParameter(f"{value!r} is not one of {', '.join(known)}.", ctx, parameter)
        return value
    for name, (source, values) in known.items():
        click.echo(f"{name}\n    {source}\n    {as_options(values)}")
    ctx.exit()


# Settings of `lm` only, of the continuation of a model, and of the optimizers of all three commands.
CELL, CONTINUED = "cell depth transform_bias", "init_from grow freeze"
OPTIMIZATION = ["optimizer nonmono average_after lr clip", Optimization]
LISTED: dict[str, Any] = dict(callback=list_presets, is_eager=True)
PRESET = [
    "preset",
    flag("list-presets", "List the presets with their settings and exit.", expose_value=False, **LISTED),
]
completed = lambda ctx, _, start: [name for name in PRESETS[ctx.command.name] if name.startswith(start)]
CHANGED = dict(preset=dict(shell_complete=completed, **LISTED), size=dict(also="emb"))

LM_LAYOUT = {
    "Text": LM_TEXT,
    "Model": [CELL, *PRESET, "size hidden layers layer_widths", Tying, "output_bias", LstmConfig],
    "Subwords": [Composition],
    "Dropout": ["dropout", Dropout],
    "Loss": ["augment augment_share tau detach unit_embeddings projection", Loss],
    "Optimization": OPTIMIZATION,
    "Training": [Training, "batch steps random_steps eval_batch", Computation],
    "Continued training": [CONTINUED],
    "Output": OUTPUT,
}
LM_CHANGED = CHANGED | dict(dropout=dict(default=DROPOUT))
LM_KINDS = LstmConfig, Training, Shorthands, LmReading, LmContinuation

NMT_LAYOUT = {
    "Text": [
        text_option("source", "Training text, one sentence per line; repeatable.", multiple=True, required=True),
        text_option("target", "Its translation, line by line; repeatable.", multiple=True, required=True),
        text_option("valid-source", "Validation text for model selection and learning-rate decay; repeatable.",
                    multiple=True),
        text_option("valid-target", "Its translation; repeatable.", multiple=True),
        "errors tokenize phrases field target_field",
    ],
    "Vocabulary": [BitextReading],
    "Model": [*PRESET, TranslationConfig],
    "Dropout": ["dropout drop_emb drop_annotation drop_out"],
    "Optimization": OPTIMIZATION,
    "Training": [Training, "batch max_length eval_batch bleu", Computation],
    "Output": OUTPUT,
}  # fmt: skip
NMT_CHANGED = CHANGED | dict(
    dropout=dict(help="Dropout probability at all sites; the --drop options set it for one site."),
    write=dict(choices=translation.VECTORS, help="Vectors to write: of the source words; of the target words, the"
               " decoder's input, its output, their sum, or their concatenation."),
)  # fmt: skip
NMT_DEFAULTS = translation.DEFAULTS | {f"drop_{site}": DROPOUT for site in translation.SITES["standard"]}

OF_LAYERS = "init_lstm forget_bias transform_bias".split()  # of a new model
OF_NEW_WORDS = "min_count max_vocab init init_bias init_by_width".split()
# Settings that, with --hidden or --layer-widths, give all dimensions, so that --size gives none.
OF_SIZE = {"morphs": ["subword_dim", "highway_dim"], "syllables": ["highway_dim"], "chars": ["filters"]}
IDLE_WITH_SUBWORDS = {"morphs": "language filters", "chars": "language", "syllables": "filters"}


@click.command("lm", cls=SectionedCommand, short_help="Train a language model: LSTM, GRU, or RHN.")
@texts_argument
@sections(LM_LAYOUT, *LM_KINDS, **LM_CHANGED)
@click.pass_context
def lm(ctx: click.Context, /, **options: Any) -> None:
    """Train a recurrent language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    `tiedtools lstm` is `tiedtools lm --cell lstm`: see there for texts, outputs, and resuming. Models of all cells are
    saved, loaded, and scored alike.
    """
    train_lm(ctx)


@click.command("lstm", cls=SectionedCommand, short_help="Train an LSTM language model.")
@texts_argument
@sections(LM_LAYOUT, *LM_KINDS, omit=CELL, **LM_CHANGED)
@click.pass_context
def lstm(ctx: click.Context, /, **options: Any) -> None:
    """Train an LSTM language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    TEXT has one sentence per line, with words separated by whitespace, and may be compressed (.gz .bz2 .xz .zst); `-`
    or no argument reads standard input. Validation and test perplexity are reported on stderr.

    The model's word vectors are written to --output. Save the model itself with --save-model.

    Ctrl-C stops training, writes the vectors of the best epoch so far (in the first epoch, the current ones), and exits
    with status 130. With --checkpoint FILE, rerun the same command with --resume to continue from the last checkpoint.
    With the same number of threads, the output is byte-identical to that of an uninterrupted run.
    """
    train_lm(ctx)


def train_lm(ctx: click.Context) -> None:
    """Train the model that the options of `lm` or `lstm` describe."""
    from tiedtools.api.language import LanguageModel

    training.begin(ctx)
    model, explicit = LanguageModel(str(ctx.command.name)), training.settings_of(ctx)
    continued = {name: explicit.pop(name) for name in CONTINUED.split() if name in explicit}
    model.settings = explicit  # checked by `trainer`, since a model to continue from has defaults
    texts, files = training.texts_for(ctx), training.files_of(ctx)
    trainer = model.trainer(training.texts_of(ctx), **texts, **files, **continued)
    log_preset(ctx, trainer.config, trainer.schedule, trainer.reading)
    more = {} if ctx.params["test"] else {"mc_samples": "without --test"}
    if ctx.params["valid"] is None and ctx.params["valid_share"] == 0:
        more |= dict.fromkeys(("eval_batch", "keep"), "without a validation text")
    config, (_, preset) = trainer.config, PRESETS["lm"].get(ctx.params["preset"], ("", {}))
    sizes = [*OF_SIZE.get(str(config.subwords), []), "layer_widths" if config.layer_widths else "hidden"]
    if config.subwords and {*sizes} <= {"filters", *preset, *explicit}:
        more["size"] = f"where {' and '.join(map(as_option, sizes))} give all dimensions"
    if "init_from" in continued:
        more |= {} if continued.get("grow") else dict.fromkeys(OF_NEW_WORDS, "with --init-from, without --grow")
        # More syllables in a word add rows to the projection, which --init-by-width initializes.
        names = [*OF_LAYERS, *["init_by_width"] * (config.subwords != "syllables")]
        more |= dict.fromkeys(names, "with --init-from")
    warn_idle(ctx, idle(config, trainer.schedule) | more)
    training.train(ctx, trainer, LmReport(ctx.params["debug"]))


@click.command("nmt", cls=SectionedCommand, short_help="Train a translation model.")
@sections(NMT_LAYOUT, *translation.KINDS, omit="save_vocab", defaults=NMT_DEFAULTS, **NMT_CHANGED)
@click.pass_context
def nmt(ctx: click.Context, /, **options: Any) -> None:
    """Train an attention model that translates --source into --target, with untied or tied embeddings.

    Line N of one text translates line N of the other; words are separated by whitespace. Texts may be compressed (.gz
    .bz2 .xz .zst). Validation perplexity and BLEU are reported on stderr. The model's word vectors are written to
    --output. Save the model itself with --save-model, and translate with `tiedtools translate`.

    Ctrl-C, --checkpoint, and --resume are as in `tiedtools lstm`. BPE and BLEU require subword-nmt and sacrebleu:
    pip install "tiedtools[nmt]".
    """
    from tiedtools.api.translation import Translator

    training.begin(ctx)
    model = Translator(**training.settings_of(ctx))
    config, schedule, reading = model.configured
    log_preset(ctx, config, schedule, reading)
    unused = () if options["valid_source"] else ("bleu", "eval_batch", "keep")
    warn_idle(ctx, idle(config, schedule) | dict.fromkeys(unused, "without --valid-source"))
    texts = {name: [*options[name]] or None for name in ("source", "target", "valid_source", "valid_target")}
    trainer = model.trainer(**texts, no_memory_check=options["no_memory_check"], **training.files_of(ctx))
    training.train(ctx, trainer, LmReport(options["debug"]))


def log_preset(ctx: click.Context, config: Any, schedule: Any, reading: dict[str, Any]) -> None:
    """Log the settings of the preset, if there is one, and its settings that explicit options changed."""
    if name := ctx.params["preset"]:
        values, actual = PRESETS[str(ctx.command.name)][name][1], settings.settings_of(config, schedule) | reading
        changed = {name: actual[name] for name, value in values.items() if actual[name] != value}
        unchanged = {name: value for name, value in values.items() if name not in changed}
        log.info(f"preset {name}: {as_options(unchanged)}" + (f"; changed: {as_options(changed)}" if changed else ""))


def idle(config: Any, schedule: Any) -> dict[str, str]:
    """Return the options without effect, a dict: name -> reason."""
    reasons = {
        f"with --schedule {schedule.schedule}": of_other_schedules(schedule.schedule),
        "with one session": ["restart"] if schedule.sessions == 1 else [],
        "without --optimizer nt-asgd": ["nonmono", "average_after"] if config.optimizer != "nt-asgd" else [],
        "without more --epochs": ["average_after"] if config.average_after >= schedule.epochs else [],
    }
    if isinstance(config, LstmConfig):
        linear = config.tying == "linear" or config.projection
        # Words that `locked` drops, and weights, are always the same for the whole batch.
        shared = any(rate for site, rate in config.rates.items() if (config.dropout_kind, site) != ("locked", "word"))
        reasons = {
            "without --augment": [] if config.augment or config.augment_share else ["tau", "detach"],
            "without masks to share": [] if shared else ["mask_sharing"],
            "with --dropout-kind standard": ["mask_sharing"] if config.dropout_kind == "standard" else [],
            "without --drop-out": [] if config.drop_out else ["linear_dropout"],
            "with one layer": ["drop_layer"] if len(config.units) == 1 else [],
            "with --init-by-width": ["init_lstm"] if config.init_by_width and not linear else [],
            f"with {config.subwords}": IDLE_WITH_SUBWORDS.get(str(config.subwords), "").split(),
            "with --segmentation": ["language"] if config.subwords == "syllables" and config.segmentation else [],
        } | reasons
    return {name: reason for reason, names in reasons.items() for name in names}
