"""`tiedtools similar`: lines that are alike."""

import click

from tiedtools.cli.docvec import load, unit_option
from tiedtools.cli.options import errors_option, json_option, option


@click.command("similar", short_help="The lines of a text closest to a sentence, by document vectors.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@option("query", "queries", multiple=True, metavar="SENTENCE", help="A sentence; repeat for more.")
@option("line", "numbers", type=click.IntRange(1), multiple=True, metavar="N", help="Line N of TEXT, from 1.")
@option("sample", type=click.IntRange(0), default=0, metavar="N", help="N lines drawn from TEXT.")
@option("seed", type=click.IntRange(0), default=1, help="For --sample: the same seed draws the same lines.")
@option("top", also="k", type=click.IntRange(1), default=3, metavar="N", help="Lines for each query.")
@unit_option
@option("center", is_flag=True, help="Subtract the vector that documents start from.")
@errors_option
@json_option("Print one JSON object instead of lines.")
def command(path, text, queries, numbers, sample, seed, top, unit, center, errors, as_json):
    """Print, of each query, the lines of TEXT whose document vectors have the largest cosine with the query's.

    MODEL is a model of `tiedtools rnnlm --doc-dim N`; TEXT is a file, plain or compressed, or standard input (-, or
    none). Queries are sentences (--query), lines of TEXT (--line) or drawn from them (--sample); a line is not compared
    with itself. A block for each: the query, then number, cosine and text of the lines, tab separated. With --unit doc,
    the same of documents, of which the first line is shown.

    Unknown words of a --query are reported on stderr. One without any known word has no answer, and the exit status
    is 1; the others are still answered.
    """
    import json

    from tiedtools.errors import quoted
    from tiedtools.evaluation.documents import similar
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.messages import log
    from tiedtools.text.sources import WORD

    if not (queries or numbers or sample):
        raise click.UsageError("give a sentence (--query), a line's number (--line) or a number of lines (--sample)")
    model = load(path)
    lexicon = Lexicon(model.vocab)
    known, unknown = [], []
    for query in queries:
        words = WORD.findall(query)
        missing = [word for word in words if word not in lexicon.index]
        unknown += missing
        if len(missing) < len(words):
            known.append(query)
            if missing:
                log.warning(f"query {quoted(query)}: unknown words: {', '.join(map(quoted, missing))}")
        else:
            log.error(f"tiedtools: query {quoted(query)}: no known word; give words of the model's vocabulary")
    found = []
    if known or numbers or sample:
        found = similar(model, lexicon, text, unit, errors, known, numbers, sample, seed, top, center)
    if as_json:
        about = {"model": path, "text": text, "unit": unit, "center": center}
        answer = json.dumps({**about, "queries": found, "unknown": unknown}) + "\n"
    else:
        blocks = [
            f"{query['line'] or '-'}\t\t{query['text']}\n"
            + "".join(f"{line['line']}\t{line['cosine']:.4f}\t{line['text']}\n" for line in query["similar"])
            for query in found
        ]
        answer = "\n".join(blocks)
    click.echo(answer.encode("utf-8", "surrogateescape"), nl=False)
    lexicon.tell_oovs()
    return int(len(known) < len(queries))
