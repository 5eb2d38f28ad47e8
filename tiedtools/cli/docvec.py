"""`tiedtools docvec`: document vectors."""

import click

from tiedtools.cli.options import binary_option, errors_option, json_option, option, output_option
from tiedtools.figures import to_json

unit_option = option(
    "unit",
    type=click.Choice(["line", "doc"]),
    default="line",
    help="A vector for each line, or for each document, empty lines lying between.",
)


def load(path):
    """The model at `path`, if it has a document vector."""
    from tiedtools.errors import TiedtoolsError
    from tiedtools.models import load_language_model

    model = load_language_model(path)
    if model.kind != "rnnlm" or not model.config.doc_dim:
        raise TiedtoolsError(f"{path}: has no document vector; train a model with `tiedtools rnnlm --doc-dim 20`")
    return model


@click.command("docvec", short_help="The document vectors of lines or documents.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@output_option
@unit_option
@binary_option
@errors_option
@json_option("Write a JSON object for each vector.")
def command(path, text, output, unit, binary, errors, as_json):
    """Write the vector that a model of `tiedtools rnnlm --doc-dim N` has of each line of TEXT after reading its end.

    TEXT is a file, plain or compressed, or standard input (-, or none). The vectors are in word2vec's format, and in
    the place of words are the numbers of the lines or documents, from 1.
    Words outside the vocabulary are read as `<unk>` or, where the vocabulary has none, passed over.
    """
    import numpy as np

    from tiedtools.errors import TiedtoolsError
    from tiedtools.evaluation.documents import document_vectors, noted, sentences
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.files.output import open_packed, refuse_clashes
    from tiedtools.text.sources import shown
    from tiedtools.vectors.vectors import Vectors, refuse_name

    if as_json and binary:
        raise click.UsageError("--json writes text: leave out -binary 1")
    refuse_clashes([output], [path, text])
    refuse_name(output)
    with open_packed(output) as file:
        model = load(path)
        lexicon = Lexicon(model.vocab)
        lines, first_lines = sentences(text, unit, errors), []
        lines = noted(lines, first_lines) if as_json else lines
        found = [part.astype(np.float32) for part in document_vectors(model, lexicon, lines)]
        if not found:
            raise TiedtoolsError(f"{shown(text)}: no lines; give a text")
        matrix = np.concatenate(found)
        if as_json:
            for number, (line, vector) in enumerate(zip(first_lines, matrix), 1):
                digits = [float(str(value)) for value in vector]  # as few as tell float32 apart
                file.write(to_json({"line": number, "text": line, "vector": digits}).encode() + b"\n")
        else:
            vectors = Vectors([str(number) for number in range(1, len(matrix) + 1)], matrix)
            (vectors.write_binary if binary else vectors.write_text)(file)
    lexicon.tell_oovs()
