"""Use and evaluate translation models: `translate` and `bleu`."""

import contextlib
from collections.abc import Iterator

import click

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import to_json
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import choice, explicit, flag, integer, json_option, option
from tiedtools.cli.shared import errors_option, raw_options
from tiedtools.cli.spelling import as_option
from tiedtools.files.output import STDOUT, open_packed
from tiedtools.text.raw import as_trained, prepared
from tiedtools.text.sources import counted, shown


@command("translate", "Translate lines, or score given translations.", reads="text path force", writes="align")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@integer("beam", 5, "Beam size: hypotheses per line; 1: greedy search.", most=1000, metavar=None)
@flag("normalize", "Choose, and score, by log probability per word or symbol, line end included.")
@integer("max-length", 200, "End translations after N words or symbols.", most=10**5)
@integer("n-best", None, "Print the N best translations of each line with their scores, as `LINE ||| TRANSLATION |||"
        " SCORE`; LINE counts from 0, as in Moses.")  # fmt: skip
@option("force", metavar="TARGET", help="Score the lines of TARGET as translations of those of TEXT instead.")
@option("align", metavar="FILE", help="Write the attention weights of each translation to FILE, one JSON object per"
        " line; see `tiedtools plot attention`.")  # fmt: skip
@flag("no-unk", "Never write `<unk>`.")
@integer("batch", 64, "Batch size in lines; 1 translates each line immediately.", most=4096)
@raw_options
@json_option("Print one JSON object per line or translation.")
def translate(
    path: str, text: str, beam: int, normalize: bool, max_length: int, n_best: int | None, force: str | None,
    align: str | None, no_unk: bool, batch: int, field: str | None, tokenize: str | None, phrases: str | None,
    errors: str,
) -> Iterator[Answer]:  # fmt: skip
    """Translate each line of TEXT with the translation model in MODEL, in order.

    TEXT may be compressed; `-` or no argument reads standard input. Lines of similar length are translated together.
    Scores are log10 probabilities, line end included; with --normalize, per word or symbol. With --force, one score is
    printed for each line.

    A model trained with --bpe reads and writes plain words. Words outside the vocabulary are read as `<unk>`. Empty
    lines stay empty. Of a line with more than 1,000 words or symbols, only the first 1,000 are read, with a warning.
    """
    from tiedtools.evaluation.lexicon import lines
    from tiedtools.files.modelfile import load_translator
    from tiedtools.models.translation.interpreter import Interpreter, side_by_side

    if force is not None:
        for name in sorted(explicit(click.get_current_context()) & {"beam", "max_length", "n_best", "no_unk"}):
            raise click.UsageError(f"{as_option(name)} has no effect on the translations given by --force")
    if (n_best or 1) > beam:
        raise click.UsageError(f"--n-best {n_best} needs a --beam of at least {n_best}")
    if align in STDOUT:
        raise click.UsageError("--align cannot be standard output, which has the translations; give a file name")
    search = dict(beam=beam, max_length=max_length, banned=1 if no_unk else None)
    model = load_translator(path)
    interpreter = Interpreter(model, batch, normalize, align is not None, **search)
    raw = dict(unit="line", field=field, errors=errors, **as_trained(model.settings, tokenize, phrases))
    source = lines(prepared(text, **raw, processes=1 if batch == 1 else None), errors)
    if force is None:
        translations = (best[: n_best or 1] for best in interpreter.translations(source))
    else:
        target = lines(prepared(force, **{**raw, "phrases": None}), errors)
        pairs = side_by_side(source, target, (shown(text), shown(force)))
        translations = ([scored] for scored in interpreter.scores(pairs))
    with open_packed(align) if align else contextlib.nullcontext() as file:
        for number, best in enumerate(translations, 1):
            for rank, translation in enumerate(best, 1):
                words, score = translation.text, f"{translation.logprob:.6f}"
                position = {"line": number, **({"rank": rank} if n_best else {})}
                answer = f"{number - 1} ||| {words} ||| {score}" if n_best else words if force is None else score
                yield Answer(answer + "\n", {**position, "text": words, "logprob": translation.logprob})
                if file:
                    file.write((to_json({**position, **translation.alignment()}) + "\n").encode())
    for lexicon in interpreter.source, interpreter.target:
        lexicon.tell_oovs()


@command("bleu", "Compute the BLEU of translations.", reads="hypothesis references")
@click.argument("references", nargs=-1, required=True, metavar="REFERENCE...")
@option("hypothesis", default="-", metavar="TEXT", help="The translations; - is standard input.")
@choice("tokenize", "none 13a intl char zh", "Tokenization of both texts by sacrebleu. none: split at whitespace, for"
        " tokenized text; 13a: that of WMT, for plain text. Scores with different tokenization cannot be compared.",
        "none")  # fmt: skip
@flag("lowercase", "Ignore case.")
@errors_option
@json_option("Print a JSON object.")
def bleu(references: tuple[str, ...], hypothesis: str, tokenize: str, lowercase: bool, errors: str) -> Answer:
    """Print the BLEU of the translations on standard input, line by line, against one or several REFERENCE files.

    The result is that of sacrebleu, with its signature, which names all settings. Requires sacrebleu:
    pip install "tiedtools[nmt]".
    """
    from tiedtools.evaluation.lexicon import lines
    from tiedtools.models.translation.bleu import bleu

    texts = [[" ".join(words) for _, words in lines(path, errors)] for path in (hypothesis, *references)]
    for path, text in zip(references, texts[1:]):
        if len(text) != len(texts[0]):
            what = f"has {counted(len(text), 'line')}, but {shown(hypothesis)} has {len(texts[0]):,}"
            raise TiedtoolsError(f"{shown(path)}: {what}; give a reference for each translation")
    result = bleu(texts[0], texts[1:], tokenize, lowercase)
    return Answer(f"{result.line}\n", {"bleu": result.score, "signature": result.signature, **result.details})
