"""`tiedtools generate`: sample text from a language model."""

import click

from tiedtools.cli.options import Finite, json_option, option


@click.command("generate", short_help="Sample text from a language model.")
@click.argument("path", metavar="MODEL")
@option(
    "lines", type=click.IntRange(1), metavar="N", help="Stop after N lines.  [default: 10, if --words is not given]"
)
@option("words", type=click.IntRange(1), metavar="N", help="Stop after N words, not counting line ends.")
@option(
    "temperature", type=Finite(0), default=1.0,
    help="Softmax temperature; below 1 favors likely words, 0 always picks the most likely word.",
)  # fmt: skip
@option("top-k", type=click.IntRange(1), metavar="N", help="Sample only from the N most probable words.")
@option("prompt", metavar="TEXT", help="Continue TEXT on every line, each line independently.")
@option("no-unk", is_flag=True, help="Never write `<unk>`.")
@option("seed", type=click.IntRange(0), default=1, help="Random seed; the same seed gives the same text.")
@json_option("Print one JSON object per line.")
def command(path, lines, words, temperature, top_k, prompt, no_unk, seed, as_json):
    """Sample text from the language model in MODEL, word by word.

    The text starts after `</s>`, and each line continues from the previous ones. At low temperatures, a line may never
    end, or all lines may be empty. With both --lines and --words, sampling stops at whichever limit is reached first.
    """
    import json

    from tiedtools.evaluation.continuation import sampled
    from tiedtools.evaluation.lexicon import WORD, Lexicon
    from tiedtools.models.families import load_language_model

    model = load_language_model(path)
    lexicon = Lexicon(model.vocab)
    typed = WORD.findall(prompt or "")
    ids = None if prompt is None else lexicon.ids(lexicon.codes(typed))
    lexicon.tell_oovs()
    number, line = 1, []

    def add(words):
        for word in words:
            if not as_json:
                click.echo((" " * bool(line) + word).encode("utf-8", "surrogateescape"), nl=False)
            line.append(word)

    choice = dict(temperature=temperature, top_k=top_k, banned=lexicon.unk if no_unk else None)
    for word in sampled(model, lexicon.words, ids, lines, words, seed, **choice):
        add([] if line else typed)
        if word is not None:
            add([word])
            continue
        click.echo(json.dumps({"line": number, "text": " ".join(line)}) if as_json else "")
        number += 1
        line.clear()
