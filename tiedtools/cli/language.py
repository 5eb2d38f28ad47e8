"""Use and evaluate language and translation models: `predict`, `generate`, `nbest`, `ppl`, `translate`, and `bleu`."""

import collections
import contextlib
import csv
import io
import itertools
import os
import pathlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import in_digits, log, to_json
from tiedtools.cli import report
from tiedtools.cli.command import Answer, command, table
from tiedtools.cli.options import Finite, as_option, choice, explicit, file_option, flag, integer, json_option, option
from tiedtools.cli.shared import cache_options, errors_option, raw_options, split_options, texts_argument
from tiedtools.files.output import STDOUT, open_packed
from tiedtools.text.raw import as_trained, prepared, splitter
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import counted, decoded_lines, shown

model_argument = click.argument("path", metavar="MODEL")
text_argument = click.argument("text", default="-", metavar="[TEXT]")


def load(path: str, **cache: Any) -> Any:
    """Load a language model, with the options of a continuous cache if there are any; return it with its Lexicon."""
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.evaluation.neuralcache import cached
    from tiedtools.files.modelfile import load_language_model

    model = load_language_model(path)
    return cached(model, **cache) if cache else model, Lexicon(model.vocab)


@command("predict", "Predict the next word after each line.", reads="text")
@model_argument
@text_argument
@integer("top", 10, "Number of words per line.", also="k")
@flag("carry", "Carry the model's state over from line to line, with `</s>` in between.")
@cache_options
@raw_options
@json_option("Print one JSON object per line.")
def predict(
    path: str, text: str, top: int, carry: bool, field: str | None, tokenize: str | None, phrases: str | None,
    errors: str, **cache: Any
) -> Iterator[Answer]:  # fmt: skip
    """Print the most probable next words after each line of TEXT: line number, word, and probability, tab-separated.

    TEXT may be compressed; `-` or no argument reads standard input, and each line is answered immediately. A line
    starts at `</s>` and is treated as unfinished: `</s>` among the answers is the end of the line.
    Out-of-vocabulary words are read as `<unk>` or, if the vocabulary has no `<unk>`, skipped.
    """
    from tiedtools.evaluation.continuation import most_probable, read
    from tiedtools.evaluation.lexicon import lines

    model, lexicon = load(path, **cache)
    if carry and not cache["cache"] and getattr(model.config, "independent", False):  # a cache is carried over
        log.warning("--carry has no effect: the model was trained on independent lines, and resets its state")
    how = as_trained(model.settings, tokenize, phrases)
    text = prepared(text, field=field, errors=errors, unit="line", processes=1, **how)
    start = state = model.start(1)
    for number, words in lines(text, errors):
        ids = lexicon.ids(lexicon.codes(words))
        logprobs, state = read(model, [0, *ids], state if carry else start)
        predictions = [(lexicon.words[k], p) for k, p in most_probable(logprobs, top)]
        answer = "".join(f"{number}\t{word}\t{p:.6g}\n" for word, p in predictions)
        yield Answer(answer, {"line": number, "context": " ".join(words), "next": predictions})
    lexicon.log_oovs()


@command("generate", "Sample text from a language model.")
@model_argument
@integer("lines", None, "Stop after N lines.  [default: 10, if --words is not given]")
@integer("words", None, "Stop after N words, not counting line ends and --prompt.")
@option("temperature", type=Finite(0), default=1.0,
        help="Softmax temperature; below 1 favors likely words, 0 always picks the most likely word.")  # fmt: skip
@integer("top-k", None, "Sample only from the N most probable words.")
@option("prompt", metavar="TEXT", help="Continue TEXT on every line, each line independently.")
@flag("no-unk", "Never write `<unk>`.")
@integer("seed", 1, "Random seed; the same seed gives the same text.", least=0, metavar=None)
@json_option("Print one JSON object per line.")
def generate(
    path: str, lines: int | None, words: int | None, temperature: float, top_k: int | None, prompt: str | None,
    no_unk: bool, seed: int,
) -> Iterator[Answer]:  # fmt: skip
    """Sample text from the language model in MODEL, word by word.

    The text starts after `</s>`, and each line continues from the previous ones. At low temperatures, or with a small
    --top-k, a line may never end, or all lines may be empty. With both --lines and --words, sampling stops at whichever
    limit is reached first.
    """
    from tiedtools.evaluation.continuation import sampled

    model, lexicon = load(path)
    prompt_words = splitter(**as_trained(model.settings, tell=False))(prompt) if prompt else []  # has no --tokenize
    ids = None if prompt is None else lexicon.ids(lexicon.codes(prompt_words))
    lexicon.log_oovs()
    choice = dict(temperature=temperature, top_k=top_k, banned=lexicon.unk if no_unk else None)
    number, line = 1, []
    for word in sampled(model, lexicon.words, ids, lines, words, seed, **choice):
        for new in [*([] if line else prompt_words), *([] if word is None else [word])]:
            yield Answer(" " * bool(line) + new)
            line.append(new)
        if word is None:
            yield Answer("\n", {"line": number, "text": " ".join(line)})
            number, line = number + 1, []


@command("nbest", "Rescore n-best lists and compare minimal pairs.", reads="texts")
@model_argument
@click.argument("texts", nargs=-1, metavar="[FILE]...")
@flag("pairs", "Compare minimal pairs: JSON lines as in BLiMP, or tab-separated columns: good, bad, and paradigm.")
@flag("ids", "The first word of each line is an utterance ID.")
@flag("independent", "With --ids, reset the model's state at the start of each utterance.")
@integer("batch", 64, "Batch size in hypotheses; 1 scores each line immediately.", most=4096)
@option("oov-logprob", type=Finite(-1000, 0), default=-5.0, help="Log10 probability of each word outside the"
        " vocabulary if it has no `<unk>`; rnnlm's by default. 0 skips these words, favoring lines of unknown"
        " words.")  # fmt: skip
@cache_options
@split_options
@json_option("Print one JSON object per line or, with --pairs, per paradigm.")
def nbest(
    path: str, texts: list[str], pairs: bool, ids: bool, independent: bool, batch: int, oov_logprob: float,
    tokenize: str | None, phrases: str | None, errors: str, **cache: Any
) -> Iterator[Answer]:  # fmt: skip
    """Print the log10 probability of each line of FILE under MODEL, line end included, in order.

    FILE has one hypothesis per line and may be compressed; `-` or no argument reads standard input. Lines are scored
    independently. With --ids, consecutive lines with the same ID are hypotheses of one utterance and start from the
    model's state after the most probable hypothesis of the previous utterance.
    Out-of-vocabulary words are scored as `<unk>` or, if the vocabulary has no `<unk>`, have the log10 probability
    --oov-logprob.

    With --pairs, print how often the good sentence of a pair is more probable, for each paradigm: accuracy, in which a
    tie counts one half, and 95% interval. Pairs with out-of-vocabulary words are not compared. See docs/surprisal.md.
    """
    from tiedtools.evaluation.lexicon import refuse_empty
    from tiedtools.evaluation.perplexity import fate, rescore
    from tiedtools.evaluation.surprisal import PAIR_COLUMNS, compare, read_pairs

    if independent and not ids:
        raise click.UsageError("--independent requires --ids; without --ids, lines are scored independently")
    if pairs and ids:
        raise click.UsageError("--pairs and --ids are mutually exclusive; choose one")
    waiting = collections.deque()  # lines read but not yet scored

    def hypotheses() -> Iterator[tuple[Any, list[str]]]:
        for text in texts:
            number = 0
            for number, line in enumerate(decoded_lines(text, errors), 1):
                first = WORD.search(line) if ids else None
                utterance, line = (first[0], line[first.end() :]) if first else (None, line)
                if ids and not first:
                    raise TiedtoolsError(f"{shown(text)}:{number}: no utterance ID; remove the line, or omit --ids")
                words = split(line)
                waiting.append({"line": number, **({"id": utterance} if ids else {}), "text": " ".join(words)})
                yield None if independent else utterance, words
            if os.path.isfile(text):  # a program may close a pipe without a question
                refuse_empty(text, number)

    model, lexicon = load(path, **cache)
    split = splitter(**as_trained(model.settings, tokenize, phrases))
    if pairs:
        found = itertools.chain.from_iterable(read_pairs(text, errors, split) for text in texts)
        results = compare(model, lexicon, found, batch, oov_logprob)
        yield Answer(table(PAIR_COLUMNS, results), results)
        return
    for logprob in rescore(model, lexicon, hypotheses(), batch, oov_logprob):
        yield Answer(f"{logprob:.6f}\n", {**waiting.popleft(), "logprob": logprob})
    lexicon.log_oovs(fate(oov_logprob))


@command("ppl", "Compute the perplexity of texts, in SRILM's format.", reads="texts vocabulary")
@model_argument
@texts_argument
@integer("debug", 0, "1: also print each sentence; 2: also print each word.", least=0, most=2, metavar=None)
@flag("words", "Print a table of all words instead: surprisal, entropy of the prediction, and rank, tab-separated.")
@choice("unit", "bits nats", "With --words, the unit of surprisal and entropy.", "bits")
@option("separator", default="@@", metavar="MARK", help="With --words, tokens that end in MARK continue in the next"
        " token, as written by `tiedtools segment`.")  # fmt: skip
@flag("independent", "Reset the model's state at the start of each line.")
@integer("batch", None, "Batch size: split each text into N parallel streams, each from the initial state and an empty"
         " cache, which is faster and changes the perplexity slightly; with --independent, number of lines per batch. "
         " [default: 1; 64 with --independent]", most=4096)  # fmt: skip
@option("average", multiple=True, metavar="WORD", help="Also print WORD's mean probability over all predictions and its"
        " proportion of the tokens, tab-separated; repeatable.")  # fmt: skip
@file_option("vocabulary", "Vocabulary that replaces the model's: words, one per line, alone or as written by"
             " `tiedtools vocab`. Their vectors are composed by a model trained with `lstm --subwords`, but not --reuse"
             " plain; words with unknown subwords are left out.")  # fmt: skip
@flag("repeats", "Also print the mean probability of repeating the previous token, and the proportion of such tokens.")
@cache_options
@raw_options
@json_option("Print one JSON object per TEXT; with --words, per word; with --debug, also per line; with --average and"
             " --repeats, also per mean.")  # fmt: skip
def ppl(
    path: str, texts: list[str], debug: int, words: bool, unit: str, separator: str, independent: bool,
    batch: int | None, average: tuple[str, ...], vocabulary: str | None, repeats: bool, field: str | None,
    tokenize: str | None, phrases: str | None, errors: str, **cache: Any
) -> Iterator[Answer]:  # fmt: skip
    """Print the log10 probability and perplexity of each TEXT under MODEL, in the format of SRILM's `ngram -ppl`.

    TEXT may be compressed (.gz .bz2 .xz .zst); `-` or no argument reads standard input. The end of each line, empty
    lines included, is predicted and counted (ppl1 does not count it). Each TEXT starts from `</s>`, and the state
    carries over from line to line unless --independent is given.

    Words outside the vocabulary are scored as `<unk>`; a last line gives their number, and the totals without them. If
    the vocabulary has no `<unk>`, they are skipped. As in SRILM, only words that are not scored are OOVs: ppl is
    10^(-logprob / (words - OOVs - zeroprobs + sentences)).

    With --words, each word and line end has a line: sentence, position in it, first character and character after the
    last, from 0, word, surprisal, entropy, rank, and whether it is outside the vocabulary. See docs/surprisal.md.
    """
    from tiedtools.evaluation import perplexity
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.evaluation.neuralcache import cached
    from tiedtools.evaluation.surprisal import surprisals
    from tiedtools.files.modelfile import load_language_model
    from tiedtools.models.composing import of_words
    from tiedtools.text.vocab import read_words

    if (debug or words) and not independent and (batch or 1) > 1:
        shown_with = "--words" if words else f"--debug {debug}"
        raise click.UsageError(f"--batch {batch} splits lines: use {shown_with} with --independent or --batch 1")
    if words and (debug or average or repeats or len(texts) > 1):
        raise click.UsageError("--words prints one table: give one TEXT, without --debug, --average, and --repeats")
    for name in sorted(explicit(click.get_current_context()) & {"unit", "separator"}) if not words else ():
        raise click.UsageError(f"--{name} needs --words")
    probed = [*average, *[perplexity.REPEAT] * repeats]
    if probed and any(text == "-" or pathlib.Path(text).is_fifo() for text in texts):
        raise click.UsageError("--average and --repeats read each text twice: give a file, not a pipe")
    if probed and (batch or 1) > 1:
        raise click.UsageError("--average and --repeats read each text as one stream: omit --batch")
    if probed and independent:
        raise click.UsageError("--average and --repeats carry the state over line ends: omit --independent")
    vocabulary_words = vocabulary and read_words(vocabulary)
    model = load_language_model(path)
    inputs = prepared(texts, field=field, errors=errors, **as_trained(model.settings, tokenize, phrases))
    if vocabulary_words:
        model = of_words(model, vocabulary_words, path)
    source = getattr(model.config, "cell", model.kind)
    model = cached(model, **cache)
    lexicon = Lexicon(model.vocab)
    if words:
        yield from word_table(surprisals(model, lexicon, inputs[0], errors, independent, batch, unit, separator), unit)
        return
    perplexity.codes(lexicon, probed)  # fails before the texts are scored
    all_texts = perplexity.Totals(lexicon.unk)
    for name, text in zip(texts, inputs):
        totals = perplexity.Totals(lexicon.unk)
        started = reported = time.monotonic()
        scored = perplexity.score_text(model, lexicon, text, errors, independent, batch)
        for k, piece in enumerate(perplexity.by_line(scored) if debug else scored):
            totals.add(piece)
            if debug:
                carried = k > 0 and not independent
                line = perplexity.line_as_text(piece, lexicon, source, carried, debug > 1)
                yield Answer(line, perplexity.line_as_dict(piece, k + 1, lexicon, debug > 1))
            now = time.monotonic()
            if now - reported >= report.LINE_EVERY and totals.words:
                reported, done = now, totals.words + totals.sentences
                current = in_digits(totals.figures()["ppl"], "g")
                log.info(f"{shown(text)}: {done:,} words, {done / (now - started):,.0f} words/s, ppl {current} so far")
        yield Answer(f"file {name}: {totals.as_text()}", {"file": name, **totals.as_dict()})
        means = perplexity.mean_probabilities(model, Lexicon(model.vocab), text, probed, errors) if probed else {}
        for word, (mean, share) in means.items():  # another Lexicon, which does not count OOVs twice
            answer = f"{'(repeated)' if word is perplexity.REPEAT else word}\t{mean:.6g}\t{share:.6g}\n"
            yield Answer(answer, {"word": word, "mean_probability": mean, "share": share})
        all_texts += totals
    if len(texts) > 1:
        yield Answer(f"total: {all_texts.as_text()}", {"texts": len(texts), **all_texts.as_dict()})
    if lexicon.unk is None:
        lexicon.log_oovs()


def word_table(lines: Iterable[Any], unit: str) -> Iterator[Answer]:
    """Yield the answers of `ppl --words`; R and pandas read the tab-separated lines, with quotes as in CSV."""
    from tiedtools.evaluation.surprisal import columns

    cell = lambda x: f"{x:.6f}" if isinstance(x, float) else str(x).upper() if isinstance(x, bool) else x
    yield Answer("\t".join(columns(unit)) + "\n")
    for _, rows in lines:
        text = io.StringIO()
        csv.writer(text, "excel-tab", lineterminator="\n").writerows(map(cell, row.values()) for row in rows)
        yield Answer(text.getvalue(), rows)


@command("translate", "Translate lines, or score given translations.", reads="text path force", writes="align")
@model_argument
@text_argument
@integer("beam", 5, "Beam size: hypotheses per line; 1: greedy search.", most=1000, metavar=None)
@flag("normalize", "Choose, and score, by log probability per word or symbol, line end included.")
@integer("max-length", None, "End translations after N words or symbols.  [default: 200, or twice the length of the"
         " longest line translated at the same time if that is more]", most=10**5)  # fmt: skip
@integer("n-best", None, "Print the N best translations of each line with their scores, as `LINE ||| TRANSLATION |||"
        " SCORE`; LINE counts from 0, as in Moses.")  # fmt: skip
@option("force", metavar="TARGET", help="Score the lines of TARGET as translations of those of TEXT instead.")
@option("align", metavar="FILE", help="Write the attention weights of each translation to FILE, one JSON object per"
        " line; see `tiedtools plot attention`.")  # fmt: skip
@flag("no-unk", "Never write `<unk>`.")
@integer("batch", 64, "Batch size in lines; 1 translates each line immediately.", most=4096)
@option("target-field", metavar="NAME", help="With --force, read this field of TARGET.  [default: that of --field]")
@raw_options
@json_option("Print one JSON object per line or translation.")
def translate(
    path: str, text: str, beam: int, normalize: bool, max_length: int | None, n_best: int | None, force: str | None,
    align: str | None, no_unk: bool, batch: int, target_field: str | None, field: str | None, tokenize: str | None,
    phrases: str | None, errors: str,
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
    elif target_field is not None:
        raise click.UsageError("--target-field needs --force")
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
        target = lines(prepared(force, **{**raw, "field": target_field or field, "phrases": None}), errors)
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
    for side in "source", "target":
        getattr(interpreter, side).log_oovs(noun=f"{side} {'symbol' if model.codes else 'word'}")


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
