"""`tiedtools generate`: text from a model."""

import click

from tiedtools.cli.options import Finite, json_option, option


@click.command("generate", short_help="Text drawn from a language model.")
@click.argument("path", metavar="MODEL")
@option("lines", type=click.IntRange(1), metavar="N", help="Stop after N lines.  [default: 10 without --words]")
@option("words", type=click.IntRange(1), metavar="N", help="Stop after N words; line ends do not count.")
@option(
    "temperature", type=Finite(0), default=1.0,
    help="Below 1: likely words more often; 0: always the likeliest.",
)  # fmt: skip
@option("top-k", type=click.IntRange(1), metavar="N", help="Draw among the N most probable words only.")
@option("prompt", metavar="TEXT", help="Begin every line with TEXT and go on from there, each line on its own.")
@option("no-unk", is_flag=True, help="Never write `<unk>`.")
@option("seed", type=click.IntRange(0), default=1, help="The same seed gives the same text.")
@json_option("Print a JSON object for each line.")
def command(path, lines, words, temperature, top_k, prompt, no_unk, seed, as_json):
    """Write text that a language model makes up, a word at a time, each drawn with its probability.

    MODEL is a model file. The text starts after `</s>`, and each line goes on from those before it. With a low
    temperature a line may never end, or all may be empty: --lines and --words together stop at whichever comes first.
    """
    import functools
    import itertools
    import json

    import numpy as np

    from tiedtools.evaluation.continuation import draw, generate
    from tiedtools.evaluation.lexicon import WORD, Lexicon
    from tiedtools.models import load_language_model

    if lines is None and words is None:
        lines = 10
    model = load_language_model(path)
    lexicon = Lexicon(model.vocab)
    rng = np.random.default_rng(seed)
    typed = WORD.findall(prompt or "")
    ids = None if prompt is None else lexicon.ids(lexicon.codes(typed))
    lexicon.tell_oovs()
    choose = functools.partial(
        draw, rng=rng, temperature=temperature, top_k=top_k, banned=lexicon.unk if no_unk else None
    )
    numbers, line = itertools.count(1), []

    def write(text):
        line.append(text) if as_json else click.echo(text.encode("utf-8", "surrogateescape"), nl=False)

    def end_line():
        click.echo(json.dumps({"line": next(numbers), "text": "".join(line)}) if as_json else "")
        line.clear()

    write(" ".join(typed))
    begun = bool(typed)
    for word in generate(model, choose, ids):
        if word:
            write(" " * begun + lexicon.words[word])
            begun, words = True, words and words - 1
        else:
            lines = lines and lines - 1
        if words == 0 or lines == 0:
            end_line()
            break
        if word == 0:
            end_line()
            write(" ".join(typed))
            begun = bool(typed)
