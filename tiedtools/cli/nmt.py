"""`tiedtools nmt`: train a translation model."""

import click

from tiedtools.cli.lmoptions import PRESET, presets_of, tell_preset
from tiedtools.cli.lmtraining import epochs, idle_training, optimization, training_precision
from tiedtools.cli.options import (
    PROBABILITY,
    RUN_FILES,
    Finite,
    SectionedCommand,
    binary_option,
    debug_option,
    errors_option,
    option,
    output_option,
    sections,
    seed_option,
    threads_option,
    write_option,
)
from tiedtools.cli.report import LmReport
from tiedtools.cli.training import begin, files_of, settings_of, tell_idle, train


def text_option(name, help, **attributes):
    """Return a repeatable option for the files of one side of a text."""
    return option(name, multiple=True, metavar="TEXT", help=help, **attributes)


def dropout_option(name, site):
    return option(name, type=PROBABILITY, default=0.3, metavar="P", help=f"Dropout probability of {site}.")


OPTIONS = {
    "Text": [
        text_option("source", "Training text, one sentence per line; repeatable.", required=True),
        text_option("target", "Its translation, line by line; repeatable.", required=True),
        text_option("valid-source", "Validation text for model selection and learning-rate decay; repeatable."),
        text_option("valid-target", "Its translation; repeatable."),
        errors_option,
    ],
    "Vocabulary": [
        option(
            "bpe",
            type=click.IntRange(0, 10**7),
            metavar="N",
            help="Split words by byte-pair encoding, N merges learned from both sides together (subword-nmt)."
            "  [default: words]",
        ),
        option(
            "min-count",
            type=click.IntRange(0),
            default=1,
            help="Replace words, or symbols of --bpe, that occur less often than this with `<unk>`.",
        ),
        option(
            "max-vocab",
            type=click.IntRange(3),
            metavar="N",
            help="Keep only the most frequent words or symbols of each side: N at most, including `</s>` and `<unk>`."
            "  [default: no limit]",
        ),
    ],
    "Model": [
        *PRESET,
        option("size", also="emb", type=click.IntRange(1, 10**5), default=128, help="Embedding dimension."),
        option(
            "hidden",
            type=click.IntRange(1, 10**5),
            default=256,
            help="Hidden units of the encoder, in each direction, and of the decoder.",
        ),
        option(
            "tie",
            type=click.Choice(["none", "decoder", "all"]),
            default="none",
            help="Tie the decoder's input and output embeddings, or these and the source embeddings (three-way; the"
            " vocabulary is then joint) (Press & Wolf 2017).",
        ),
        option(
            "init",
            type=Finite(0),
            help="Standard deviation of initial weights.  [default: 1 / sqrt(rows); embeddings: 1 / sqrt(size)]",
        ),
    ],
    "Dropout": [
        option(
            "dropout",
            type=PROBABILITY,
            metavar="P",
            help="Dropout probability at all sites; the --drop options set it for one site.",
        ),
        dropout_option("drop-emb", "embeddings"),
        dropout_option("drop-annotation", "the encoder's output"),
        dropout_option("drop-out", "the readout, the input of the softmax"),
    ],
    "Optimization": optimization("adam", 0.001, "adadelta and others: 1", 1.0),
    "Training": [
        *epochs(30, 2.0),
        option("batch", type=click.IntRange(1, 10**5), default=32, help="Batch size in sentence pairs."),
        option(
            "max-length",
            type=click.IntRange(1, 10**5),
            default=100,
            metavar="N",
            help="Omit training pairs with more than N words or symbols on either side.",
        ),
        option(
            "eval-batch", type=click.IntRange(1, 10**5), default=32, help="Batch size in sentence pairs in validation."
        ),
        option(
            "bleu/--no-bleu",
            default=True,
            show_default=False,
            help="Validate by BLEU of greedy translations, too, and keep the model with the highest; --no-bleu: that"
            " with the lowest perplexity.",
        ),
        seed_option,
        threads_option,
        training_precision,
    ],
    "Output": [
        output_option,
        write_option(
            "source",
            help="Vectors to write: of the source words; of the target words, the decoder's input, its output, their"
            " sum, or their concatenation.",
        ),
        binary_option,
        *RUN_FILES,
        debug_option,
    ],
}


@click.command("nmt", cls=SectionedCommand, short_help="Train a translation model.")
@sections(OPTIONS)
@click.pass_context
def command(ctx, preset, debug, source, target, valid_source, valid_target, no_memory_check, **options):
    """Train an attention model that translates --source into --target, with untied or tied embeddings.

    Line N of one text translates line N of the other; words are separated by whitespace. Texts may be compressed (.gz
    .bz2 .xz .zst). Validation perplexity and BLEU are reported on stderr. The model's word vectors are written to
    --output. Save the model itself with --save-model, and translate with `tiedtools translate`.

    Ctrl-C, --checkpoint, and --resume are as in `tiedtools lstm`. BPE and BLEU require subword-nmt and sacrebleu:
    pip install "tiedtools[nmt]".
    """
    from tiedtools.api.translation import Translator
    from tiedtools.models.translation.config import settle

    begin(ctx)
    model = Translator(**settings_of(ctx))
    config, schedule, _ = model.configure()
    if preset:
        tell_preset(preset, presets_of(ctx)[preset][1], settle(**model.settings))
    tell_idle(ctx, idle(config, schedule, valid_source))
    texts = dict(valid_source=list(valid_source) or None, valid_target=list(valid_target) or None)
    trainer = model.trainer(list(source), list(target), **texts, no_memory_check=no_memory_check, **files_of(ctx))
    train(ctx, trainer, LmReport(debug))


def idle(config, schedule, valid):
    """Return a dict: name of an option without effect under these settings -> reason."""
    why = idle_training(config, schedule)
    return why | ({} if valid else dict.fromkeys(("bleu", "eval_batch"), "without --valid-source"))
