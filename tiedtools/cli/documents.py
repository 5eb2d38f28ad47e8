"""Document vectors of language models: `docvec` and `similar`."""

import click

from tiedtools.cli.command import Answer, choice, command, integer
from tiedtools.cli.options import binary_option, flag, json_option, option, output_option, raw_options, together

document_arguments = together(
    click.argument("path", metavar="MODEL"), click.argument("text", default="-", metavar="[TEXT]")
)
UNITS = {"line": "line", "doc": "document"}  # --unit -> unit of the Raw
unit_option = choice(
    "unit",
    "line doc",
    "Compute one vector per line, or per document; documents are separated by empty lines.",
    "line",
)


def load(path):
    """Load the model at `path`; raise TiedtoolsError if it has no document vector."""
    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.models.families import load_language_model

    model = load_language_model(path)
    if not getattr(model.config, "doc_dim", 0):
        raise TiedtoolsError(f"{path}: has no document vector; train a model with `tiedtools rnnlm --doc-dim 20`")
    return model


@command(
    "docvec",
    "Compute document vectors of lines or documents.",
    reads="path text",
    writes="output",
    without_json={"binary": "--json writes text: omit --binary 1"},
)
@document_arguments
@output_option
@unit_option
@binary_option
@raw_options
@json_option("Write one JSON object per vector.")
def docvec(path, text, unit, binary, field, tokenize, errors):
    """Write the document vector of each line of TEXT, taken after the line's end.

    MODEL is a model trained with `tiedtools rnnlm --doc-dim N`. TEXT may be compressed; `-` or no argument reads
    standard input. The vectors are written in word2vec's format, with line or document numbers, from 1, as words.
    Out-of-vocabulary words are read as `<unk>` or, if the vocabulary has no `<unk>`, skipped.
    """
    import numpy as np

    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.evaluation.documents import document_vectors, noted, sentences
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.text.raw import as_trained, prepared
    from tiedtools.text.sources import shown
    from tiedtools.vectors.vectors import Vectors, refuse_name

    refuse_name(click.get_current_context().params["output"])
    model, first_lines = load(path), []
    lexicon = Lexicon(model.vocab)
    text = prepared(text, as_trained(model, tokenize), field, errors, unit=UNITS[unit])
    lines = noted(sentences(text, unit, errors), first_lines)
    parts = [part.astype(np.float32) for part in document_vectors(model, lexicon, lines)]
    if not parts:
        raise TiedtoolsError(f"{shown(text)}: no lines; give a text")
    matrix = np.concatenate(parts)
    vectors = Vectors([str(number) for number in range(1, len(matrix) + 1)], matrix)
    digits = ([float(str(value)) for value in vector] for vector in matrix)  # the shortest that identify a float32
    rows = (
        {"line": number, "text": line, "vector": vector}
        for number, (line, vector) in enumerate(zip(first_lines, digits), 1)
    )
    yield Answer(vectors.write_binary if binary else vectors.write_text, rows)
    lexicon.tell_oovs()


@command("similar", "Find similar lines of a text by document vectors.")
@document_arguments
@option("query", "queries", multiple=True, metavar="SENTENCE", help="Sentence to search for; repeatable.")
@integer("line", None, "Use line N of TEXT, from 1, as a query; repeatable.", python_name="numbers", multiple=True)
@integer("sample", 0, "Use N random lines of TEXT as queries.", least=0)
@integer("seed", 1, "Random seed of --sample.", least=0, metavar=None)
@integer("top", 3, "Number of lines per query.", also="k")
@unit_option
@flag("center", "Subtract the initial document vector.")
@raw_options
@json_option("Print one JSON object instead of lines.")
def similar(path, text, queries, numbers, sample, seed, top, unit, center, field, tokenize, errors):
    """Print the lines of TEXT with the document vectors most similar to the queries' vectors.

    MODEL is a model trained with `tiedtools rnnlm --doc-dim N`. TEXT may be compressed; `-` or no argument reads
    standard input. Queries are sentences (--query), lines of TEXT (--line), or random lines (--sample); a line is not
    compared with itself. For each query and each of its most similar lines, the query, the line's number, their cosine
    similarity, and the line are printed, tab-separated. With --unit doc, documents are compared, and the first line of
    each is shown.

    Unknown words of a --query are reported on stderr. A query without any known word has no answer, and
    the exit status is 1; the others are still answered.
    """
    from tiedtools.base.errors import quoted
    from tiedtools.base.messages import log
    from tiedtools.evaluation import documents
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.text.raw import as_trained, prepared, splitter

    if not (queries or numbers or sample):
        raise click.UsageError(
            "give a sentence (--query), a line number (--line), or a number of random lines (--sample)"
        )
    model = load(path)
    lexicon, tokenize = Lexicon(model.vocab), as_trained(model, tokenize)
    split, source = splitter(tokenize), prepared(text, tokenize, field, errors, unit=UNITS[unit])
    known, unknown = [], []
    for query in queries:
        words = split(query)
        missing = [word for word in words if word not in lexicon.index]
        unknown += missing
        if len(missing) < len(words):
            known.append(" ".join(words))
            if missing:
                log.warning(f"query {quoted(query)}: unknown words: {', '.join(map(quoted, missing))}")
        else:
            log.error(f"tiedtools: query {quoted(query)}: no known word; give words of the model's vocabulary")
    results = []
    if known or numbers or sample:
        results = documents.similar(model, lexicon, source, unit, errors, known, numbers, sample, seed, top, center)
    answer = "".join(
        f"{query['text']}\t{line['line']}\t{line['cosine']:.4f}\t{line['text']}\n"
        for query in results
        for line in query["similar"]
    )
    about = {"model": path, "text": text, "unit": unit, "center": center}
    yield Answer(answer, {**about, "queries": results, "unknown": unknown}, status=int(len(known) < len(queries)))
    lexicon.tell_oovs()
