"""Vectors of lines and documents: `docvec` and `similar`."""

from collections.abc import Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.base.settings import Files
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import OF_FILES, Finite, choice, flag, integer, json_option, option, options_of, together
from tiedtools.cli.shared import raw_options
from tiedtools.files.families import FAMILIES, LANGUAGE
from tiedtools.text.raw import as_trained, prepared, splitter
from tiedtools.text.sources import shown

output_option, binary_option = options_of(Files, "output", "binary", **OF_FILES)
text_argument = click.argument("text", default="-", metavar="[TEXT]")
document_arguments = together(click.argument("path", metavar="MODEL"), text_argument)
UNITS = {"line": "line", "doc": "document"}  # --unit -> unit of the Raw
unit_option = choice("unit", "line doc", "Compute one vector per line, or per document; documents are separated by"
                     " empty lines.", "line")  # fmt: skip
sif_option = option("sif", type=Finite(0, min_open=True), metavar="A", help="With word vectors: weigh words by A / (A +"
                    " their proportion in TEXT), and remove the common component of TEXT (SIF; Arora et al. use"
                    " 0.001).")  # fmt: skip


def load(path: str, a: float | None) -> Any:
    """Load a language model or word vectors; return DocumentVectors, SentenceVectors, or FastTextSentences.

    Raises TiedtoolsError for a language model without a document vector.
    """
    from tiedtools.evaluation.documents import DocumentVectors, FastTextSentences, SentenceVectors
    from tiedtools.files import modelfile
    from tiedtools.vectors.rows import is_fasttext
    from tiedtools.vectors.vectors import Vectors

    family = FAMILIES.get(str(modelfile.kind(path))) if modelfile.is_model(path) else None
    if a is None and is_fasttext(path):
        return FastTextSentences(Vectors.read(path))
    if family is None or family.says != LANGUAGE:
        return SentenceVectors(Vectors.read(path, skip_bad=None), a)
    if a is not None:
        raise click.UsageError(f"--sif requires word vectors: give {path}:in")
    model = modelfile.load_language_model(path)
    if not getattr(model.config, "doc_dim", 0):
        remedy = f"give its word vectors, {path}:in, or train a model with `tiedtools rnnlm --doc-dim 20`"
        raise TiedtoolsError(f"{path}: has no document vector; {remedy}")
    return DocumentVectors(model)


@command("docvec", "Compute vectors of lines or documents.", reads="path text", writes="output save",
         without_json={"binary": "--json writes text: omit --binary 1"})  # fmt: skip
@document_arguments
@output_option
@unit_option
@sif_option
@option("save", metavar="FILE", help="With --sif, write word vectors to FILE whose means are SIF vectors: for other"
        " texts, give FILE as MODEL, without --sif.")  # fmt: skip
@binary_option
@raw_options
@json_option("Write one JSON object per vector.")
def docvec(
    path: str, text: str, unit: str, sif: float | None, save: str | None, binary: bool, field: str | None,
    tokenize: str | None, phrases: str | None, errors: str,
) -> Iterator[Answer]:  # fmt: skip
    """Write a vector of each line of TEXT: the mean of its word vectors, or a language model's document vector.

    MODEL is a file of word vectors, or a model trained with `tiedtools rnnlm --doc-dim N`, whose vector is taken after
    the line's end. TEXT may be compressed; `-` or no argument reads standard input. The vectors are written in
    word2vec's format, with line or document numbers, from 1, as words, or, if the name of the output ends in .npy, as a
    NumPy matrix. Out-of-vocabulary words are read as `<unk>` or, if the vocabulary has no `<unk>`, skipped.

    For a model of fastText, without --sif, vectors equal those of fastText's get_sentence_vector: means of unit-length
    word vectors or, if it is supervised, of the vectors of words, n-grams, word n-grams, and the line's end.
    """
    import numpy as np

    from tiedtools.vectors import counts
    from tiedtools.vectors.vectors import Vectors, format_of, trained_format

    output = click.get_current_context().params["output"]
    as_npy = output.endswith(".npy") and not binary
    if not as_npy:
        trained_format(output, two_files=False)
    if save:
        if sif is None:
            raise click.UsageError("--save requires --sif")
        format_of(save)
    source = load(path, sif)
    how = as_trained(counts.settings(path), tokenize, phrases)
    text = prepared(text, field=field, errors=errors, unit=UNITS[unit], **how)
    matrix, first_lines = source.encode(text, unit, errors)
    matrix = matrix.astype(np.float32)
    if not len(matrix):
        raise TiedtoolsError(f"{shown(text)}: no lines; give a text")
    if save:
        source.word_vectors.write(save)
    vectors = Vectors([str(number) for number in range(1, len(matrix) + 1)], matrix)
    digits = ([float(str(value)) for value in vector] for vector in matrix)  # the shortest that identify a float32
    rows = ({"line": k, "text": line, "vector": x} for k, (line, x) in enumerate(zip(first_lines, digits), 1))
    form = "binary" if binary else "text"
    yield Answer(lambda file: np.save(file, matrix) if as_npy else vectors.write_stream(file, form), rows)
    source.lexicon.tell_oovs()


@command("similar", "Find similar lines of a text.")
@document_arguments
@option("query", "queries", multiple=True, metavar="SENTENCE", help="Sentence to search for; repeatable.")
@integer("line", None, "Use line N of TEXT, from 1, as a query; repeatable.", python_name="numbers", multiple=True)
@integer("sample", 0, "Use N random lines of TEXT as queries.", least=0)
@integer("seed", 1, "Random seed of --sample.", least=0, metavar=None)
@integer("top", 3, "Number of lines per query.", also="k")
@unit_option
@sif_option
@flag("center", "Subtract the initial document vector.")
@raw_options
@json_option("Print one JSON object instead of lines.")
def similar(
    path: str, text: str, queries: tuple[str, ...], numbers: tuple[int, ...], sample: int, seed: int, top: int,
    unit: str, sif: float | None, center: bool, field: str | None, tokenize: str | None, phrases: str | None,
    errors: str,
) -> Iterator[Answer]:  # fmt: skip
    """Print the lines of TEXT that are most similar to each query, by the cosine of their vectors (see `docvec`).

    MODEL is a file of word vectors, or a model trained with `tiedtools rnnlm --doc-dim N`. TEXT may be compressed; `-`
    or no argument reads standard input. Queries are sentences (--query), lines of TEXT (--line), or random lines
    (--sample); a line is not compared with itself. For each query and each of its most similar lines, the query, the
    line's number, their cosine similarity, and the line are printed, tab-separated. With --unit doc, documents are
    compared, and the first line of each is shown.

    Unknown words of a --query are reported on stderr. A query without any known word has no answer, and
    the exit status is 1; the others are still answered.
    """
    from tiedtools.evaluation import documents
    from tiedtools.vectors import counts

    if not (queries or numbers or sample):
        problem = "give a sentence (--query), a line number (--line), or a number of random lines (--sample)"
        raise click.UsageError(problem)
    source = load(path, sif)
    lexicon, known, unknown, how = source.lexicon, [], [], as_trained(counts.settings(path), tokenize, phrases)
    split, lines = splitter(**how), prepared(text, field=field, errors=errors, unit=UNITS[unit], **how)
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
    find = known or numbers or sample
    results = documents.similar(source, lines, unit, errors, known, numbers, sample, seed, top, center) if find else []
    form = "{text}\t{0[line]}\t{0[cosine]:.4f}\t{0[text]}\n".format
    answer = "".join(form(line, text=query["text"]) for query in results for line in query["similar"])
    about = {"model": path, "text": text, "unit": unit, "center": center, "sif": sif}
    yield Answer(answer, {**about, "queries": results, "unknown": unknown}, status=int(len(known) < len(queries)))
    lexicon.tell_oovs()
