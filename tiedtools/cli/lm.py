"""`tiedtools lm` and `tiedtools lstm`: train a language model with any recurrent cell, or an LSTM."""

from typing import Any

import click

from tiedtools.base.settings import LmContinuation, LmReading
from tiedtools.cli.networks import CHANGED, OPTIMIZATION, PRESET, idle_training, log_preset
from tiedtools.cli.options import LM_TEXT, OUTPUT, SectionedCommand, sections, texts_argument
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, settings_of, texts_for, texts_of, train, warn_idle
from tiedtools.models.lm.config import LstmConfig
from tiedtools.network.config import DROPOUT, Composition, Computation, Dropout, Loss, Shorthands, Tying
from tiedtools.training.schedules import Training

CELL = "cell depth transform_bias"  # settings of `lm` only
CONTINUED = "init_from grow freeze"
LAYOUT = {
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
CHANGED = CHANGED | dict(
    dropout=dict(default=DROPOUT), lr=dict(help="Initial learning rate.  [default for adadelta: 1, for adam: .001]")
)
KINDS = LstmConfig, Training, Shorthands, LmReading, LmContinuation


@click.command("lm", cls=SectionedCommand, short_help="Train a language model: LSTM, GRU, or RHN.")
@texts_argument
@sections(LAYOUT, *KINDS, **CHANGED)
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Train a recurrent language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    `tiedtools lstm` is `tiedtools lm --cell lstm`: see there for texts, outputs, and resuming. Models of all cells are
    saved, loaded, and scored alike.
    """
    train_model(ctx, **options)


@click.command("lstm", cls=SectionedCommand, short_help="Train an LSTM language model.")
@texts_argument
@sections(LAYOUT, *KINDS, omit=CELL, **CHANGED)
@click.pass_context
def lstm(ctx: click.Context, **options: Any) -> None:
    """Train an LSTM language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    TEXT has one sentence per line, with words separated by whitespace, and may be compressed (.gz .bz2 .xz .zst); `-`
    or no argument reads standard input. Validation and test perplexity are reported on stderr.

    The model's word vectors are written to --output. Save the model itself with --save-model.

    Ctrl-C stops training, writes the vectors trained so far, and exits with status 130. With --checkpoint FILE, rerun
    the same command with --resume to continue from the last checkpoint. With the same number of threads, the output is
    byte-identical to that of an uninterrupted run.
    """
    train_model(ctx, **options)


def train_model(ctx: click.Context, debug: int, **options: Any) -> None:
    """Train the model that the options of `lm` or `lstm` describe."""
    from tiedtools.api.language import LanguageModel

    begin(ctx)
    model, settings = LanguageModel(str(ctx.command.name)), settings_of(ctx)
    continued = {name: settings.pop(name) for name in CONTINUED.split() if name in settings}
    model.settings = settings  # checked by `trainer`, since a model to continue from has defaults
    trainer = model.trainer(texts_of(ctx), **texts_for(ctx), **files_of(ctx), **continued)
    log_preset(ctx, trainer.config, trainer.schedule, trainer.reading)
    warn_idle(ctx, idle(trainer.config, trainer.schedule))
    train(ctx, trainer, LmReport(debug))


def idle(config: Any, schedule: Any) -> dict[str, str]:
    """Return the options without effect under these settings, a dict: name -> reason."""
    reasons = {} if config.augment or config.augment_share else dict.fromkeys(("tau", "detach"), "without --augment")
    reasons |= {"mask_sharing": "with --dropout-kind standard"} if config.dropout_kind == "standard" else {}
    reasons |= idle_training(config, schedule)
    reasons |= {"language": f"with {config.subwords}"} if config.subwords in ("morphs", "chars") else {}
    linear = config.tying == "linear" or config.projection
    reasons |= {"init_lstm": "with --init-by-width"} if config.init_by_width and not linear else {}
    return reasons | ({"filters": f"with {config.subwords}"} if config.subwords in ("morphs", "syllables") else {})
