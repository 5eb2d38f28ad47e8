"""`tiedtools lstm`: train an LSTM language model. `tiedtools lm` has the same options and more."""

import click

from tiedtools.cli.lmoptions import MODEL, presets_of, tell_preset
from tiedtools.cli.lmtraining import TRAINING, idle_training
from tiedtools.cli.options import LM_TEXT, SectionedCommand, sections, texts_argument
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, settings_of, tell_idle, texts_for, texts_of, train


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
    train_model(ctx, **options)


def train_model(ctx, preset, debug, **options):
    """Train the model that the options of `lm` or `lstm` describe."""
    from tiedtools.api.language import LanguageModel
    from tiedtools.models.lm.config import settle

    begin(ctx)
    model = LanguageModel(ctx.command.name, **settings_of(ctx))
    config, schedule, _ = model.configure()
    if preset:
        tell_preset(preset, presets_of(ctx)[preset][1], settle(**model.settings))
    tell_idle(ctx, idle(config, schedule))
    train(ctx, model.trainer(texts_of(ctx), **texts_for(ctx), **files_of(ctx)), LmReport(debug))


def idle(config, schedule):
    """Return a dict: name of an option without effect under these settings -> reason."""
    why = {} if config.augment or config.augment_share else dict.fromkeys(("tau", "detach"), "without --augment")
    why |= {"mask_sharing": "with --dropout-kind standard"} if config.dropout_kind == "standard" else {}
    why |= idle_training(config, schedule)
    why |= {"language": f"with {config.subwords}"} if config.subwords in ("morphs", "chars") else {}
    linear = config.tying == "linear" or config.projection
    why |= {"init_lstm": "with --init-by-width"} if config.init_by_width and not linear else {}
    return why | ({"filters": f"with {config.subwords}"} if config.subwords in ("morphs", "syllables") else {})
