"""`tiedtools bleu`: compute the BLEU of translations."""

import click

from tiedtools.cli.options import errors_option, flag, json_option, option
from tiedtools.text.sources import counted, read_once, shown


@click.command("bleu", short_help="Compute the BLEU of translations.")
@click.argument("references", nargs=-1, required=True, metavar="REFERENCE...")
@option("hypothesis", default="-", metavar="TEXT", help="The translations; - is standard input.")
@option(
    "tokenize",
    type=click.Choice(["none", "13a", "intl", "char", "zh"]),
    default="none",
    help="Tokenization of both texts by sacrebleu. none: split at whitespace, for tokenized text; 13a: that of WMT, for"
    " plain text. Scores with different tokenization cannot be compared.",
)
@flag("lowercase", "Ignore case.")
@errors_option
@json_option("Print a JSON object.")
def command(references, hypothesis, tokenize, lowercase, errors, as_json):
    """Print the BLEU of the translations on standard input, line by line, against one or several REFERENCE files.

    The result is that of sacrebleu, with its signature, which names all settings. Requires sacrebleu:
    pip install "tiedtools[nmt]".
    """
    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.base.messages import to_json
    from tiedtools.evaluation.lexicon import lines
    from tiedtools.models.translation.bleu import bleu

    read_once(hypothesis, *references)
    texts = [[" ".join(words) for _, words in lines(path, errors)] for path in (hypothesis, *references)]
    for path, text in zip(references, texts[1:]):
        if len(text) != len(texts[0]):
            raise TiedtoolsError(
                f"{shown(path)}: has {counted(len(text), 'line')}, but {shown(hypothesis)} has {len(texts[0]):,}; give"
                " a reference for each translation"
            )
    found = bleu(texts[0], texts[1:], tokenize, lowercase)
    if as_json:
        click.echo(to_json({"bleu": found.score, "signature": found.signature, **found.details}))
    else:
        click.echo(found.line)
