"""`tiedtools nbest`: rescore n-best lists."""

import click

from tiedtools.base.messages import to_json
from tiedtools.cli.options import Finite, cache_options, errors_option, json_option, option


@click.command("nbest", short_help="Rescore n-best lists: log probability of each line.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[FILE]")
@option("ids", is_flag=True, help="The first word of each line is an utterance ID.")
@option("independent", is_flag=True, help="With --ids, reset the model's state at the start of each utterance.")
@option(
    "batch", type=click.IntRange(1, 4096), default=64, metavar="N",
    help="Batch size in hypotheses; 1 scores each line immediately.",
)  # fmt: skip
@option(
    "oov-logprob", type=Finite(-1000, 0), default=-5.0,
    help="Log10 probability of each word outside the vocabulary if it has no `<unk>`; rnnlm's by default. 0 skips these"
    " words: a line of unknown words would win.",
)  # fmt: skip
@cache_options
@errors_option
@json_option("Print one JSON object per line.")
def command(path, text, ids, independent, batch, oov_logprob, errors, as_json, **cache):
    """Print the log10 probability of each line of FILE under MODEL, line end included, in order.

    FILE has one hypothesis per line and may be compressed; `-` or no argument reads standard input. Lines are scored
    independently. With --ids, consecutive lines with the same ID are hypotheses of one utterance and start from the
    model's state after the most probable hypothesis of the previous utterance.
    Out-of-vocabulary words are scored as `<unk>` or, if the vocabulary has no `<unk>`, have the log10 probability
    --oov-logprob.
    """
    import collections

    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.evaluation.lexicon import Lexicon, lines
    from tiedtools.evaluation.nbest import fate, rescore
    from tiedtools.evaluation.neuralcache import cached
    from tiedtools.models.families import load_language_model
    from tiedtools.text.sources import shown

    if independent and not ids:
        raise click.UsageError("--independent requires --ids; without --ids, lines are scored independently")

    waiting = collections.deque()  # JSON fields of lines read but not yet scored

    def hypotheses():
        for number, words in lines(text, errors):
            if ids and not words:
                raise TiedtoolsError(f"{shown(text)}:{number}: no utterance ID; remove the line, or omit --ids")
            utterance, words = (words[0], words[1:]) if ids else (None, words)
            if as_json:
                waiting.append({"line": number, **({"id": utterance} if ids else {}), "text": " ".join(words)})
            yield None if independent else utterance, words

    model = cached(load_language_model(path), **cache)
    lexicon = Lexicon(model.vocab)
    for logprob in rescore(model, lexicon, hypotheses(), batch, oov_logprob):
        click.echo(to_json({**waiting.popleft(), "logprob": logprob}) if as_json else f"{logprob:.6f}")
    lexicon.tell_oovs(fate(oov_logprob))
