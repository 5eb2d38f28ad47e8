"""`tiedtools ppl`: compute the perplexity of texts."""

import click

from tiedtools.cli.options import cache_options, errors_option, flag, json_option, option, texts_argument
from tiedtools.text.sources import read_once


@click.command("ppl", short_help="Compute the perplexity of texts, in SRILM's format.")
@click.argument("path", metavar="MODEL")
@texts_argument
@option("debug", type=click.IntRange(0, 2), default=0, help="1: also print each sentence; 2: also print each word.")
@option("independent", is_flag=True, help="Reset the model's state at the start of each line.")
@option(
    "batch",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Batch size: split each text into N parallel streams, each from the initial state and an empty cache, which is"
    " faster and changes the perplexity slightly; with --independent, number of lines per batch.  [default: 1; 64 with"
    " --independent]",
)
@option(
    "average",
    multiple=True,
    metavar="WORD",
    help="Also print WORD's mean probability over all predictions and its proportion of the tokens, tab-separated;"
    " repeatable.",
)
@option(
    "vocabulary",
    metavar="FILE",
    help="Vocabulary that replaces the model's: words, one per line, alone or as written by `tiedtools vocab`. Their"
    " vectors are composed by a model trained with `lstm --subwords`, but not --reuse plain; words with unknown"
    " subwords are left out.",
)
@flag("repeats", "Also print the mean probability of repeating the previous token, and the proportion of such tokens.")
@cache_options
@errors_option
@json_option("Print one JSON object per line.")
def command(path, texts, debug, independent, batch, average, vocabulary, repeats, errors, as_json, **cache):
    """Print the log10 probability and perplexity of each TEXT under MODEL, in the format of SRILM's `ngram -ppl`.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. The end of each line, empty
    lines included, is predicted and counted (ppl1 does not count it). Each TEXT starts from `</s>`, and the state
    carries over from line to line unless --independent is given.

    Words outside the vocabulary are scored as `<unk>`; a last line gives their number, and the totals without them. If
    the vocabulary has no `<unk>`, they are skipped. As in SRILM, only words that are not scored are OOVs: ppl is
    10^(-logprob / (words - OOVs - zeroprobs + sentences)).
    """
    import json
    import time

    from tiedtools.base.messages import in_digits, log
    from tiedtools.cli.report import LINE_EVERY
    from tiedtools.evaluation.averages import REPEAT, mean_probabilities
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.evaluation.neuralcache import cached
    from tiedtools.evaluation.perplexity import Totals, by_line, line_as_dict, line_as_text, score_text
    from tiedtools.models.composing import of_words
    from tiedtools.models.families import load_language_model
    from tiedtools.text.sources import shown
    from tiedtools.text.vocab import read_words

    texts = texts or ["-"]
    read_once(*texts, vocabulary)
    if debug and not independent and (batch or 1) > 1:
        raise click.UsageError(f"--batch {batch} splits lines: use --debug {debug} with --independent or --batch 1")
    wanted = [*average, *[REPEAT] * repeats]
    if wanted and "-" in texts:
        raise click.UsageError("--average and --repeats read each text twice: give a file, not standard input")
    if wanted and independent:
        raise click.UsageError("--average and --repeats carry the state over line ends: omit --independent")
    words = vocabulary and read_words(vocabulary)
    model = load_language_model(path)
    if words:
        model = of_words(model, words, path)
    source = getattr(model.config, "cell", model.kind)
    model = cached(model, **cache)
    lexicon = Lexicon(model.vocab)
    all_texts = Totals(lexicon.unk)

    def echo(as_text, as_dict):
        text = json.dumps(as_dict()) + "\n" if as_json else as_text()
        click.echo(text.encode("utf-8", "surrogateescape"), nl=False)

    for text in texts:
        totals = Totals(lexicon.unk)
        started = spoken = time.monotonic()
        scored = score_text(model, lexicon, text, errors, independent, batch)
        for k, piece in enumerate(by_line(scored) if debug else scored):
            totals.add(piece)
            if debug:
                carried = k > 0 and not independent
                echo(
                    lambda: line_as_text(piece, lexicon, source, carried, debug > 1),
                    lambda: line_as_dict(piece, k + 1, lexicon, debug > 1),
                )
            now = time.monotonic()
            if now - spoken >= LINE_EVERY and totals.words:
                spoken, done = now, totals.words + totals.sentences
                ppl = in_digits(totals.figures()["ppl"], "g")
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
    if lexicon.unk is None:
        lexicon.tell_oovs()
