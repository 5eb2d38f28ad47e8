"""`tiedtools nmt`: train a translation model."""

from typing import Any

import click

from tiedtools.base.settings import SIDES
from tiedtools.cli.networks import CHANGED, OPTIMIZATION, PRESET, idle_training, log_preset
from tiedtools.cli.options import OUTPUT, Decorator, SectionedCommand, option, sections
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, settings_of, train, warn_idle
from tiedtools.models.translation.config import DEFAULTS, SITES, BitextReading, TranslationConfig
from tiedtools.network.config import Computation
from tiedtools.network.precedence import DROPOUT, Shorthands
from tiedtools.training.schedules import Training


def text_option(name: str, help: str, **attributes: Any) -> Decorator:
    """Return a repeatable option for the files of one language."""
    return option(name, multiple=True, metavar="TEXT", help=help, **attributes)


LAYOUT = {
    "Text": [
        text_option("source", "Training text, one sentence per line; repeatable.", required=True),
        text_option("target", "Its translation, line by line; repeatable.", required=True),
        text_option("valid-source", "Validation text for model selection and learning-rate decay; repeatable."),
        text_option("valid-target", "Its translation; repeatable."),
        "errors tokenize phrases field target_field",
    ],
    "Vocabulary": [BitextReading],
    "Model": [*PRESET, TranslationConfig],
    "Dropout": ["dropout drop_emb drop_annotation drop_out"],
    "Optimization": OPTIMIZATION,
    "Training": [Training, "batch max_length eval_batch bleu", Computation],
    "Output": OUTPUT,
}
CHANGED = CHANGED | dict(
    dropout=dict(help="Dropout probability at all sites; the --drop options set it for one site."),
    lr=dict(help="Initial learning rate.  [default for adadelta and others: 1]"),
    eval_batch=dict(help="Batch size in sentence pairs in validation."),
    write=dict(
        choices=("source", *SIDES),
        help="Vectors to write: of the source words; of the target words, the decoder's input, its output, their sum,"
        " or their concatenation.",
    ),
)
SHOWN = DEFAULTS | {f"drop_{site}": DROPOUT for site in SITES["standard"]}
KINDS = TranslationConfig, Training, Shorthands, BitextReading


@click.command("nmt", cls=SectionedCommand, short_help="Train a translation model.")
@sections(LAYOUT, *KINDS, omit="save_vocab", defaults=SHOWN, **CHANGED)
@click.pass_context
def command(
    ctx: click.Context, debug: int, source: tuple[str, ...], target: tuple[str, ...], valid_source: tuple[str, ...],
    valid_target: tuple[str, ...], no_memory_check: bool, **options: Any
) -> None:  # fmt: skip
    """Train an attention model that translates --source into --target, with untied or tied embeddings.

    Line N of one text translates line N of the other; words are separated by whitespace. Texts may be compressed (.gz
    .bz2 .xz .zst). Validation perplexity and BLEU are reported on stderr. The model's word vectors are written to
    --output. Save the model itself with --save-model, and translate with `tiedtools translate`.

    Ctrl-C, --checkpoint, and --resume are as in `tiedtools lstm`. BPE and BLEU require subword-nmt and sacrebleu:
    pip install "tiedtools[nmt]".
    """
    from tiedtools.api.translation import Translator

    begin(ctx)
    model = Translator(**settings_of(ctx))
    config, schedule, _ = model.configured
    log_preset(ctx, *model.configured)
    warn_idle(ctx, idle(config, schedule, valid_source))
    texts = dict(valid_source=list(valid_source) or None, valid_target=list(valid_target) or None)
    trainer = model.trainer(list(source), list(target), **texts, no_memory_check=no_memory_check, **files_of(ctx))
    train(ctx, trainer, LmReport(debug))


def idle(config: Any, schedule: Any, valid: tuple[str, ...]) -> dict[str, str]:
    """Return the options without effect under these settings, a dict: name -> reason."""
    reasons = idle_training(config, schedule)
    return reasons | ({} if valid else dict.fromkeys(("bleu", "eval_batch"), "without --valid-source"))
