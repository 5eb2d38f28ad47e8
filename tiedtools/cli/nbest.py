"""`tiedtools nbest`: rescoring."""

import click

from tiedtools.cli.options import errors_option, json_option, option
from tiedtools.figures import to_json


@click.command("nbest", short_help="Log probabilities of hypotheses, one a line.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[FILE]")
@option("ids", is_flag=True, help="Each line begins with the id of its utterance.")
@option("independent", is_flag=True, help="With --ids: start every utterance anew.")
@option(
    "batch", type=click.IntRange(1, 4096), default=64, metavar="N",
    help="Hypotheses read and scored at a time; 1 answers each line at once.",
)  # fmt: skip
@errors_option
@json_option("Print a JSON object for each line.")
def command(path, text, ids, independent, batch, errors, as_json):
    """Print the log10 probability of each line of FILE, its end included, in order.

    MODEL is a model file; FILE is a file, plain or compressed, or standard input (-, or none), a hypothesis a line,
    each a text of its own. With --ids, consecutive lines with one id are hypotheses of one utterance: they start
    from what the model knows after the most probable hypothesis of the utterance before.
    Words outside the vocabulary are scored as `<unk>` or, where the vocabulary has none, passed over.
    """
    import collections

    from tiedtools.errors import TiedtoolsError
    from tiedtools.evaluation.lexicon import Lexicon, lines
    from tiedtools.evaluation.nbest import rescore
    from tiedtools.models import load_language_model
    from tiedtools.text.sources import shown

    if independent and not ids:
        raise click.UsageError("--independent goes with --ids; without, every line starts anew")

    waiting = collections.deque()  # what JSON has of the lines that are read and not yet scored

    def hypotheses():
        for number, words in lines(text, errors):
            if ids and not words:
                raise TiedtoolsError(f"{shown(text)}:{number}: no utterance id; remove the line, or leave out --ids")
            utterance, words = (words[0], words[1:]) if ids else (None, words)
            if as_json:
                waiting.append({"line": number, **({"id": utterance} if ids else {}), "text": " ".join(words)})
            yield None if independent else utterance, words

    model = load_language_model(path)
    lexicon = Lexicon(model.vocab)
    for logprob in rescore(model, lexicon, hypotheses(), batch):
        click.echo(to_json({**waiting.popleft(), "logprob": logprob}) if as_json else f"{logprob:.6f}")
    lexicon.tell_oovs()
