"""`tiedtools predict`: predict the next word."""

import click

from tiedtools.cli.options import cache_options, errors_option, json_option, option


@click.command("predict", short_help="Predict the next word after each line.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@option("top", also="k", type=click.IntRange(1), default=10, metavar="N", help="Number of words per line.")
@option("carry", is_flag=True, help="Carry the model's state over from line to line, with `</s>` in between.")
@cache_options
@errors_option
@json_option("Print one JSON object per line.")
def command(path, text, top, carry, errors, as_json, **cache):
    """Print the most probable next words after each line of TEXT: line number, word, and probability, tab-separated.

    TEXT may be compressed; `-` or no argument reads standard input, and each line is answered immediately. A line
    starts at `</s>` and is treated as unfinished: `</s>` among the answers is the end of the line.
    Out-of-vocabulary words are read as `<unk>` or, if the vocabulary has no `<unk>`, skipped.
    """
    import json

    from tiedtools.evaluation.continuation import most_probable, read
    from tiedtools.evaluation.lexicon import Lexicon, lines
    from tiedtools.evaluation.neuralcache import cached
    from tiedtools.models.families import load_language_model

    model = cached(load_language_model(path), **cache)
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
