"""`tiedtools convert`: convert word vectors between file formats."""

import click

from tiedtools.cli.options import VECTOR_FORMATS, errors_option, flag, option, skip_bad_option
from tiedtools.text.sources import read_once


@click.command(short_help="Convert and filter word vectors.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@option("from", "source_format", type=VECTOR_FORMATS, help="Format of IN.  [default: detected]")
@option("to", "format", type=VECTOR_FORMATS, help="Format of OUT.  [default: from the file name]")
@option("words", metavar="FILE", help="Write the words listed in FILE, one per line, in its order.")
@option("lower", type=click.Choice(["first", "mean"]),
        help="Lowercase the words; spellings that become equal get the vector of the first, or the mean of all.",
)  # fmt: skip
@option(
    "spaces",
    type=click.Choice(["skip", "_"]),
    help="Words with spaces: skip them, or replace each space with `_`.  [default: keep them; text and binary reject"
    " them]",
)
@option("top", type=click.IntRange(min=1), metavar="N", help="Keep only the first N of the remaining words.")
@flag("normalize", "Scale each vector to unit length.")
@errors_option
@skip_bad_option
def command(source, target, source_format, format, words, lower, spaces, top, normalize, errors, skip_bad):
    """Convert word vectors from IN to OUT; `-` is standard input and output.

    \b
    text         word2vec's text format: NAME.txt, .vec, .w2v, or without an extension
    binary       word2vec's binary format: NAME.bin
    glove        text format without a header: NAME.glove
    npy          NumPy matrix NAME.npy, and NAME.words with one word per line
    safetensors  NAME.safetensors and NAME.words
    tsv          for TensorBoard's projector: NAME.tsv and NAME.metadata.tsv, or vectors.tsv and metadata.tsv

    Text, binary, and glove files are compressed if the name ends in .gz, .bz2, .xz, or .zst. IN may also be a model
    file: MODEL or MODEL:in for its input vectors, MODEL:out for its output vectors, MODEL:sum for their sum. Options
    apply in the order listed below. OUT is written atomically.

    Words of --words that IN does not have are left out, and their number is reported on stderr. A model trained
    with `lstm --subwords` composes their vectors; only words without any known subword are left out.
    """
    from tiedtools.base.messages import log
    from tiedtools.files.output import refuse_clashes
    from tiedtools.models.composing import composer
    from tiedtools.text.sources import counted, numbered_lines
    from tiedtools.vectors import edit
    from tiedtools.vectors.vectors import Vectors, file_written, files_read, format_of

    read_once(source, words)
    format = format_of(target, format)
    refuse_clashes([file_written(target, format)], [*files_read(source, source_format), *filter(None, [words])])
    vectors = Vectors.read(source, source_format, errors, skip_bad)
    if words:
        wanted = dict.fromkeys(word for _, line in numbered_lines(words) if (word := line.rstrip("\r")))
        if (unknown := wanted.keys() - vectors.index.keys()) and (compose := composer(source)):
            vectors = vectors.joined(compose(sorted(unknown)))
        if missing := len(wanted.keys() - vectors.index.keys()):
            log.info(f"{missing:,} of the {len(wanted):,} words of {words} have no vector in {source}")
        vectors = edit.only(vectors, wanted)
    if lower:
        vectors = edit.lower(vectors, lower)
    if spaces:
        vectors, spaced = edit.spaces(vectors, spaces)
        done = "skipped" if spaces == "skip" else f"written with {spaces}"
        log.info(f"{counted(spaced, 'word')} with spaces {done}")
    if top:
        vectors = edit.first(vectors, top)
    if normalize:
        vectors = edit.normalized(vectors)
    vectors.write(target, format)
    log.info(f"{counted(len(vectors), 'word')} of {counted(vectors.dim, 'number')}")
