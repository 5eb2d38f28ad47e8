"""`tiedtools predict`: the next word."""

import click

from tiedtools.cli.options import errors_option, json_option, option


@click.command("predict", short_help="The most probable next words of each line.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@option("top", also="k", type=click.IntRange(1), default=10, metavar="N", help="Words for each line.")
@option("carry", is_flag=True, help="Read the lines as one text: keep what was before, with `</s>` between.")
@errors_option
@json_option("Print a JSON object for each line.")
def command(path, text, top, carry, errors, as_json):
    """Print the most probable words after each line of TEXT: its number, the word and the probability, tab separated.

    MODEL is a model file; TEXT is a file, plain or compressed, or standard input (-, or none), and each line is
    answered at once. A line starts at `</s>` and does not end: `</s>` among the answers says that it may end here.
    Words outside the vocabulary are read as `<unk>` or, where the vocabulary has none, passed over.
    """
    import json

    from tiedtools.evaluation.continuation import most_probable, read
    from tiedtools.evaluation.lexicon import Lexicon, lines
    from tiedtools.models import load_language_model

    model = load_language_model(path)
    lexicon = Lexicon(model.vocab)
    start = state = model.start(1)
    for number, words in lines(text, errors):
        ids = lexicon.ids(lexicon.codes(words))
        logprobs, state = read(model, [0, *ids], state if carry else start)
        found = [(lexicon.words[k], p) for k, p in most_probable(logprobs, top)]
        if as_json:
            answer = json.dumps({"line": number, "context": " ".join(words), "next": found}) + "\n"
        else:
            answer = "".join(f"{number}\t{word}\t{p:.6g}\n" for word, p in found)
        click.echo(answer.encode(), nl=False)
    lexicon.tell_oovs()
