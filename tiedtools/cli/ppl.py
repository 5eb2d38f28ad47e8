"""`tiedtools ppl`: the perplexity of a text."""

import click

from tiedtools.cli.options import errors_option, flag, json_option, option, texts_argument
from tiedtools.text.sources import read_once


@click.command("ppl", short_help="Perplexity of texts, as SRILM prints it.")
@click.argument("path", metavar="MODEL")
@texts_argument
@option("debug", type=click.IntRange(0, 2), default=0, help="1: every sentence, too; 2: every word.")
@option("independent", is_flag=True, help="Start every line anew instead of reading on from the line before.")
@option(
    "batch",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Cut a text into N streams of equal length and score them side by side, which is faster; with --independent,"
    " the lines that are scored side by side.  [default: 1; 64]",
)
@option(
    "average",
    multiple=True,
    metavar="WORD",
    help="Also print WORD's mean probability in all predictions and its share of the tokens, tab separated; may be"
    " repeated.",
)
@flag("repeats", "Also print the mean probability that a token follows itself, and how often it does.")
@errors_option
@json_option("Print a JSON object a line.")
def command(path, texts, debug, independent, batch, average, repeats, errors, as_json):
    """Print what SRILM's `ngram -ppl` prints of each TEXT: log10 probability and perplexity under a language model.

    MODEL is a model file; TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also
    without any. The end of each line is predicted and counted (ppl1: not counted), of empty lines, too. A text
    is read in one go, from `</s>` on, over the ends of its lines; each TEXT starts anew.

    Words outside the vocabulary (OOVs) are scored as `<unk>` and count, and a last line has the totals without them.
    Where the vocabulary has no `<unk>`, they are passed over and count in no total, as in SRILM.
    """
    import json
    import time

    from tiedtools.cli.report import LINE_EVERY
    from tiedtools.evaluation.averages import REPEAT, mean_probabilities
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.evaluation.perplexity import Totals, by_line, line_as_dict, line_as_text, score_text
    from tiedtools.figures import in_digits
    from tiedtools.messages import log
    from tiedtools.models import load_language_model
    from tiedtools.text.sources import shown

    texts = texts or ["-"]
    read_once(*texts)
    if debug and not independent and (batch or 1) > 1:
        raise click.UsageError(f"--batch {batch} cuts lines apart: use -debug {debug} with --independent or --batch 1")
    wanted = [*average, *[REPEAT] * repeats]
    if wanted and "-" in texts:
        raise click.UsageError("--average and --repeats read a text twice: give a file, not standard input")
    if wanted and independent:
        raise click.UsageError("--average and --repeats read on over the ends of lines: leave out --independent")
    model = load_language_model(path)
    lexicon = Lexicon(model.vocab)
    scores_oovs = lexicon.unk is not None
    all_texts = Totals(scores_oovs)

    def echo(as_text, as_dict):
        text = json.dumps(as_dict()) + "\n" if as_json else as_text()
        click.echo(text.encode("utf-8", "surrogateescape"), nl=False)

    for text in texts:
        totals = Totals(scores_oovs)
        started = spoken = time.monotonic()
        scored = score_text(model, lexicon, text, errors, independent, batch)
        for k, piece in enumerate(by_line(scored) if debug else scored):
            totals.add(piece)
            if debug:
                carried = k > 0 and not independent
                echo(
                    lambda: line_as_text(piece, lexicon, model.kind, carried, debug > 1),
                    lambda: line_as_dict(piece, k + 1, lexicon, debug > 1),
                )
            now = time.monotonic()
            if now - spoken >= LINE_EVERY and totals.words:
                spoken, done = now, totals.words + totals.sentences
                ppl = in_digits(totals.figures(scores_oovs)["ppl"], "g")
                log.info(f"{shown(text)}: {done:,} words, {done / (now - started):,.0f} words/s, ppl {ppl} so far")
        echo(lambda: f"file {text}: {totals.as_text()}", lambda: {"file": text, **totals.as_dict()})
        for word, (mean, share) in mean_probabilities(model, lexicon, text, wanted, errors).items() if wanted else ():
            echo(
                lambda: f"{'(repeated)' if word is REPEAT else word}\t{mean:.6g}\t{share:.6g}\n",
                lambda: {"word": word, "mean_probability": mean, "share": share},
            )
        all_texts += totals
    if len(texts) > 1:
        echo(lambda: f"total: {all_texts.as_text()}", lambda: {"texts": len(texts), **all_texts.as_dict()})
    if not scores_oovs:
        lexicon.tell_oovs()
