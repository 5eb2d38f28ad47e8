"""Files of word vectors: `convert`, `check`, and `pca`."""

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError, printable
from tiedtools.base.messages import log
from tiedtools.cli.command import Answer, command, table
from tiedtools.cli.options import choice, file_option, flag, integer, json_option, option, spelled
from tiedtools.cli.shared import VECTOR_FORMATS, errors_option, format_option, reading_options, skip_bad_option
from tiedtools.files.output import refuse_clashes
from tiedtools.text.sources import counted, numbered_lines


@command("convert", "Convert and filter word vectors.", reads="source words")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@option("from", "source_format", type=VECTOR_FORMATS, help="Format of IN.  [default: detected]")
@option("to", "format", type=VECTOR_FORMATS, help="Format of OUT.  [default: from the file name]")
@file_option("words", "Write the words listed in FILE, one per line, in its order.")
@choice("lower", "first mean", "Lowercase the words; spellings that become equal get the vector of the first, or the"
        " mean of all.")  # fmt: skip
@choice("spaces", "skip _", "Words with spaces: skip them, or replace each space with `_`.  [default: keep them;"
        " text, binary, fasttext, and model2vec reject them]")  # fmt: skip
@integer("top", None, "Keep only the first N of the remaining words.")
@flag("normalize", "Scale each vector to unit length.")
@choice("dtype", "float32 float16", "Type of the numbers in npy, safetensors, and model2vec; others have float32.",
        "float32")  # fmt: skip
@flag("quantize", "Quantize the vectors (.ftz): a tenth of the space at 300 dimensions.")
@errors_option
@skip_bad_option
def convert(
    source: str, target: str, source_format: str | None, format: str | None, words: str | None, lower: str | None,
    spaces: str | None, top: int | None, normalize: bool, dtype: str, quantize: bool, errors: str, skip_bad: bool,
) -> None:  # fmt: skip
    """Convert word vectors from IN to OUT; `-` is standard input and output.

    \b
    text         word2vec's text format: NAME.txt, .vec, .w2v, or no extension
    binary       word2vec's binary format: NAME.bin
    glove        text format without a header: NAME.glove
    npy          NumPy matrix NAME.npy, and NAME.words with one word per line
    safetensors  NAME.safetensors and NAME.words
    fasttext     model of fastText: NAME.bin; NAME.ftz with --quantize
    tsv          for TensorBoard's projector: NAME.tsv and NAME.metadata.tsv
    model2vec    folder DIR/ for model2vec and sentence-transformers

    Text, binary, and glove files are compressed if the name ends in .gz, .bz2, .xz, or .zst. IN may also be a model
    file: MODEL or MODEL:in for its input vectors, MODEL:out for its output vectors, MODEL:sum for their sum. Options
    apply in the order listed below. OUT is written atomically.

    Words of --words that IN does not have are left out, and their number is reported on stderr. A model of fastText
    with n-grams, or one trained with `--subwords`, composes their vectors; only words without any known subword
    are left out.
    """
    from tiedtools.models.composing import composer
    from tiedtools.vectors import edit
    from tiedtools.vectors.formats import FOLDER
    from tiedtools.vectors.norms import unit
    from tiedtools.vectors.vectors import Vectors, files_read, files_written, format_of

    format = format_of(target, format, dtype, quantize, ", or choose `format`")
    outputs = files_written(target, format)
    refuse_clashes(outputs, filter(None, [words]))
    refuse_clashes(outputs[:1], files_read(source, source_format))  # both may have the same word list
    vectors = Vectors.read(source, source_format, errors, skip_bad)
    if words:
        selected = dict.fromkeys(word for _, line in numbered_lines(words) if (word := line.rstrip("\r")))
        if not selected:
            raise TiedtoolsError(f"{words}: no words; give one per line")
        known = vectors.restrict(selected)
        if (unknown := sorted(selected.keys() - known.index.keys())) and (compose := composer(source, vectors)):
            known = known.joined(compose(unknown)).restrict(selected)
        if missing := len(selected) - len(known):
            log.info(f"{words}: {counted(missing, 'word')} of {len(selected):,} without a vector in {source}")
        vectors = known
    if lower:
        vectors = edit.lower(vectors, lower)
    if spaces:
        vectors, changed, dropped = edit.spaces(vectors, spaces)
        why = "skipped" if spaces == "skip" else f"skipped, since there are words with {spaces} that are the same"
        for n, action in (changed, f"written with {spaces}"), (dropped, why):
            if n:
                log.info(f"{counted(n, 'word')} with spaces {action}")
    if top:
        vectors = vectors.restrict(top)
    if normalize:
        counts, vectors = vectors.counts, Vectors(vectors.words, unit(vectors.matrix))
        vectors.counts = counts
    vectors.write(target, format, dtype, quantize)
    written = len(vectors.index) if format in ("fasttext", FOLDER) else len(vectors)
    repeats = f"; {counted(n, 'repeated word')} left out" if (n := len(vectors) - written) else ""
    log.info(f"{counted(written, 'word')} of {counted(vectors.dim, 'number')}{repeats}")


@command("check", "Check vector files for errors.", reads="files", gather=lambda results: {"files": results})
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@format_option
@integer("examples", 3, "Maximum number of problems shown per kind.", also="n")
@json_option("Print one JSON object instead of lines.")
def check(files: tuple[str, ...], format: str | None, examples: int) -> Iterator[Answer]:
    """Check vector files for errors, reported as `FILE:LINE: problem` or `FILE: row ROW: problem`.

    Problems detected: a header that contradicts the rest, duplicate words, words with whitespace of any kind, control
    characters or invalid UTF-8, nan and infinities, all-zero vectors, norms above 10,000 (diverged training), lines
    with too few or too many numbers, empty lines, tabs or multiple spaces between fields, CRLF line ends, a byte order
    mark, truncated files, and trailing data. tiedtools reads files with some of these problems; other programs may
    not. The whole FILE is read despite problems; `-` is standard input.

    Other files that tiedtools writes, such as vocabularies, run manifests, logs, and checkpoints, are recognized; the
    last line says what reads or wrote them, and whether they were checked.

    For each kind of problem, the first cases and the number of further ones are shown; the last line summarizes the
    file. The exit status is 1 if any problem was found.
    """
    from tiedtools.vectors.check import Check

    for file in files:
        checked = Check(file, format, examples)
        total, lines, kinds = checked.counts.total(), [], {}
        for kind, cases in checked.problems.items():
            n, shown = checked.counts[kind], [f"{file}{position}: {spelled(text, check)}" for position, text in cases]
            kinds[kind] = {"count": n, "examples": shown}
            lines += [*shown, *[f"{file}: {kind}: {n - len(shown):,} more, {n:,} in all"] * (n > len(shown))]
        verdict = counted(total, "problem") if total else "all well"
        words = counted(checked.rows, "word")
        summary = f"{checked.format or 'no format'}, {words} of {counted(checked.E or 0, 'number')}, {verdict}"
        if checked.use:
            words = f", {words}" * (checked.rows > 0)
            summary = f"{checked.format}{words}, {verdict if checked.checked else 'not checked'}; {checked.use}"
        text = "".join(printable(line) + "\n" for line in [*lines, f"{file}: {summary}"])
        result = {"file": file, "format": checked.format, "words": checked.rows, "dim": checked.E}
        result |= {"checked": checked.checked, "problems": kinds}
        yield Answer(text, result, status=int(bool(kinds)))


@command("pca", "Report the variance retained by principal components.", reads="files", writes="plot",
         without_json={"components": "--json includes the curves; omit --components"})  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="VECTORS...")
@flag("components", "Print the retained variance for each number of components.")
@file_option("plot", "Plot the curves to FILE (.png or .svg); requires tiedtools[plot].")
@reading_options
@json_option("Print one JSON object with the whole curves.")
def pca(files: tuple[str, ...], components: bool, plot: str | None, **reading: Any) -> Answer:
    """Print how many principal components retain 50, 75, 90, 95, and 99% of the variance of word vectors.

    VECTORS is a vector file, `-` for standard input, or a matrix of a model file, MODEL:in or MODEL:out. Words are
    weighted equally, and the mean vector is subtracted. With --components, print a line for each file and number of
    components: file, number, and proportion of variance retained, tab-separated.
    """
    from tiedtools.evaluation import pictures
    from tiedtools.evaluation.comparison import SHARES, components_for, retained_variance
    from tiedtools.vectors.vectors import Vectors

    results = []
    with pictures.picture(plot) if plot is not None else contextlib.nullcontext() as axes:
        for file in files:
            vectors = Vectors.read(file, **reading)
            retained = retained_variance(vectors.matrix)
            counts = {f"{share:.0%}": count for share, count in zip(SHARES, components_for(retained))}
            line = {"file": file, "words": len(vectors), "dim": vectors.dim, "components": counts}
            results.append({**line, "retained": retained.tolist()})
        if plot is not None:
            pictures.retained(axes, [(result["file"], result["retained"]) for result in results])
    if components:
        shares = [(result["file"], k, share) for result in results for k, share in enumerate(result["retained"], 1)]
        text = "".join(f"{file}\t{k}\t{share:.6f}\n" for file, k, share in shares)
    else:
        columns = ["words", "dim", *results[0]["components"], "file"]
        text = table(columns, [{**result, **result["components"]} for result in results])
    return Answer(text, {"results": results})
