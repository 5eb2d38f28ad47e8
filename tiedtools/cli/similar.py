"""`tiedtools similar`: find similar lines by document vectors."""

import click

from tiedtools.cli.docvec import load, unit_option
from tiedtools.cli.options import errors_option, json_option, option


@click.command("similar", short_help="Find similar lines of a text by document vectors.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@option("query", "queries", multiple=True, metavar="SENTENCE", help="Sentence to search for; repeatable.")
@option(
    "line",
    "numbers",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Use line N of TEXT, from 1, as a query; repeatable.",
)
@option("sample", type=click.IntRange(0), default=0, metavar="N", help="Use N random lines of TEXT as queries.")
@option("seed", type=click.IntRange(0), default=1, help="Random seed of --sample.")
@option("top", also="k", type=click.IntRange(1), default=3, metavar="N", help="Number of lines per query.")
@unit_option
@option("center", is_flag=True, help="Subtract the initial document vector.")
@errors_option
@json_option("Print one JSON object instead of lines.")
def command(path, text, queries, numbers, sample, seed, top, unit, center, errors, as_json):
    """Print the lines of TEXT whose document vectors are most similar to those of the queries.

    MODEL is a model trained with `tiedtools rnnlm --doc-dim N`. TEXT may be compressed; `-` or no argument reads
    standard input. Queries are sentences (--query), lines of TEXT (--line), or random lines (--sample); a line is not
    compared with itself. For each query and each of its most similar lines, the query, the line's number, their cosine
    similarity, and the line are printed, tab-separated. With --unit doc, documents are compared, and the first line of
    each is shown.

    Unknown words of a --query are reported on stderr. A query without any known word has no answer, and
    the exit status is 1; the others are still answered.
    """
    import json

    from tiedtools.base.errors import quoted
    from tiedtools.base.messages import log
    from tiedtools.evaluation.documents import similar
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.text.sentences import WORD

    if not (queries or numbers or sample):
        raise click.UsageError(
            "give a sentence (--query), a line number (--line), or a number of random lines (--sample)"
        )
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
        answer = "".join(
            f"{query['text']}\t{line['line']}\t{line['cosine']:.4f}\t{line['text']}\n"
            for query in found
            for line in query["similar"]
        )
    click.echo(answer.encode("utf-8", "surrogateescape"), nl=False)
    lexicon.tell_oovs()
    return int(len(known) < len(queries))
