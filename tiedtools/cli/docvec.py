"""`tiedtools docvec`: compute document vectors."""

import click

from tiedtools.base.messages import to_json
from tiedtools.cli.options import binary_option, errors_option, json_option, option, output_option

unit_option = option(
    "unit",
    type=click.Choice(["line", "doc"]),
    default="line",
    help="Compute one vector per line, or per document; documents are separated by empty lines.",
)


def load(path):
    """Load the model at `path`; raise TiedtoolsError if it has no document vector."""
    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.models.families import load_language_model

    model = load_language_model(path)
    if not getattr(model.config, "doc_dim", 0):
        raise TiedtoolsError(f"{path}: has no document vector; train a model with `tiedtools rnnlm --doc-dim 20`")
    return model


@click.command("docvec", short_help="Compute document vectors of lines or documents.")
@click.argument("path", metavar="MODEL")
@click.argument("text", default="-", metavar="[TEXT]")
@output_option
@unit_option
@binary_option
@errors_option
@json_option("Write one JSON object per vector.")
def command(path, text, output, unit, binary, errors, as_json):
    """Write the document vector of each line of TEXT, taken after the line's end.

    MODEL is a model trained with `tiedtools rnnlm --doc-dim N`. TEXT may be compressed; `-` or no argument reads
    standard input. The vectors are written in word2vec's format, with line or document numbers, from 1, as words.
    Out-of-vocabulary words are read as `<unk>` or, if the vocabulary has no `<unk>`, skipped.
    """
    import numpy as np

    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.evaluation.documents import document_vectors, noted, sentences
    from tiedtools.evaluation.lexicon import Lexicon
    from tiedtools.files.output import open_packed, refuse_clashes
    from tiedtools.text.sources import shown
    from tiedtools.vectors.vectors import Vectors, refuse_name

    if as_json and binary:
        raise click.UsageError("--json writes text: omit --binary 1")
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
                digits = [float(str(value)) for value in vector]  # the shortest that identify a float32
                file.write(to_json({"line": number, "text": line, "vector": digits}).encode() + b"\n")
        else:
            vectors = Vectors([str(number) for number in range(1, len(matrix) + 1)], matrix)
            (vectors.write_binary if binary else vectors.write_text)(file)
    lexicon.tell_oovs()
