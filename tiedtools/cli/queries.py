"""Query word vectors for words, `nn` and `analogy`, and vectors of lines and documents, `docvec` and `similar`."""

import codecs
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError, printable, quoted
from tiedtools.base.messages import log
from tiedtools.base.settings import NONE, WORDS, Files
from tiedtools.cli.command import Answer, command, warn_idle
from tiedtools.cli.options import OF_FILES, Finite, choice, flag, integer, json_option, option, options_of, together
from tiedtools.cli.shared import raw_options, reading_options
from tiedtools.cli.uncertainty import run_answers
from tiedtools.files.families import FAMILIES, LANGUAGE
from tiedtools.files.output import refuse_clashes
from tiedtools.text.raw import as_trained, prepared, splitter
from tiedtools.text.sources import STDIN, shown

HEADERS = {1: ("word", "cosine"), 3: ("a b c", "score")}  # size of a query -> columns of its words and of scores
CHUNK = 1 << 16  # maximum bytes of standard input answered as one batch


def merged(batches: list[Any]) -> list[dict[str, Any]]:
    """Merge the JSON objects of several batches of queries; each batch has one object per file."""
    first, *others = filter(None, batches)
    for rows in others:
        for row, more in zip(first, rows):
            for name, value in more.items():
                if isinstance(value, dict | list):
                    row[name] = row[name] | value if isinstance(value, dict) else row[name] + value
    return first


def query_command(name: str, short_help: str, words: str) -> Callable[[Any], Any]:
    """Return a decorator of a query command: VECTORS, words (metavar `words`), and the shared options."""
    return together(
        command(name, short_help, reads="path others", gather=merged),
        click.argument("path", metavar="VECTORS"),
        click.argument("words", nargs=-1, metavar=words),
        option("with", "others", multiple=True, metavar="VECTORS", help="Additional vector file to query; repeatable."),
        integer("top", 10, "Number of answers per query.", also="k"),
        integer("restrict", None, "Consider only the first N words as answers."),
        reading_options,
        json_option("Print one JSON object per file instead of lines."),
    )


@query_command("nn", "Find the nearest neighbors of words by cosine similarity.", "[WORD]...")
@integer("min-count", None, "Leave out answers that occur less often than this in the training text; 0 includes all."
         " Counts are known for model files, for vectors next to their manifest, for matrices whose words are in"
         " NAME.vocab, and with --vocab."
         "  [default: 100, or 4 per million words of a text below 25 million; 0 with --restrict or without counts]",
         least=0)  # fmt: skip
@flag("counts", "Also print how often each answer occurs in the training text.")
@option("vocab", metavar="FILE", help="Read word counts from FILE, of `word count` lines, as w2v -save-vocab writes.")
def nn(
    top: int, min_count: int | None, counts: bool, vocab: str | None, restrict: int | None, **options: Any
) -> Iterator[Answer]:
    """Print the nearest neighbors of each WORD: the word, the neighbor, and their cosine similarity, tab-separated.

    Without WORD, words are read from standard input, one per line, and answered immediately, with --json at the end of
    the input. VECTORS is a vector file, `-` for standard input, or MODEL:out for a model's output vectors; each --with
    adds a column of neighbors and a column of similarities, and a header names the files. Files of runs need WORD, and
    have a table.

    A WORD with spaces that is not in the vocabulary is a sum, such as "king - man + woman" or "san francisco": the sum
    of its words' unit-length vectors. These words are excluded from its neighbors.

    Rare words are not answers if their counts are known: their vectors are less reliable (--min-count). --counts adds a
    column of counts.

    Words are looked up exactly as written. A model of fastText or trained with `--subwords` composes the vectors of
    other words, which are not answers. Unknown words are reported on stderr; the others are still answered, and the
    exit status is 1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.counts import default_min_count, frequent, word_counts
    from tiedtools.vectors.neighbors import neighbors, summands

    def limit(path: str, words: Any) -> tuple[Any, ...]:
        """Return the number of words that may be answers (None: all), their counts (None: unknown), and the least."""
        all_counts = min_count == 0 or restrict and min_count is None
        known = word_counts(path, words, vocab) if counts or vocab or not all_counts else None
        if known is None:
            if counts or min_count:
                problem = f"no word counts for {path}, which is no model and has no manifest; give --vocab FILE"
                raise click.UsageError(f"{'--counts' if counts else '--min-count'}: {problem}")
            return restrict, None, 0
        least = 0 if all_counts else min_count or default_min_count(known)
        if min_count is None and (rare := int((known < least).sum())):
            left_out = f"{rare:,} of {len(known):,} words, with counts below {least}"
            log.info(f"{path}: leaving out {left_out}; --min-count 0 includes them")
        return min(frequent(known, least), restrict or len(known)), known, least

    near = lambda candidates, questions: neighbors(candidates, [word for (word,) in questions], top)
    return answers(1, "neighbors", near, summands, limit=limit, counts=counts, top=top, restrict=restrict, **options)


@query_command("analogy", "Solve analogies: A is to B as C is to what?", "[A B C]...")
@choice("method", "add mul", "Scoring method: 3CosAdd or 3CosMul.", "add")
def analogy(top: int, method: str, **options: Any) -> Iterator[Answer]:
    """Print the words that are to C as B is to A: for each triple A B C, the answer and its score, tab-separated.

    Without words, triples are read from standard input, one per line, and answered immediately, with --json at the end
    of the input. VECTORS is a vector file, `-` for standard input, or MODEL:out for a model's output vectors; each
    --with adds a column of answers and a column of scores, and a header names the files. Files of runs need A B C, and
    have a table.

    The score of an answer d is cos(d, B) - cos(d, A) + cos(d, C) (3CosAdd), or cos(d, B) cos(d, C) / (cos(d, A) +
    0.001) with cosines shifted to 0..1 (3CosMul; Levy and Goldberg 2014). A, B, and C are excluded from the answers.

    Words are looked up exactly as written. A model of fastText or trained with `--subwords` composes the vectors of
    other words, which are not answers. Unknown words are reported on stderr; the others are still answered, and the
    exit status is 1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.neighbors import analogies

    solve = functools.partial(analogies, top=top, method=method)
    return answers(3, "analogies", solve, lambda word, _: [(word, 1)], top=top, method=method, **options)


def answers(
    size: int, name: str, answer: Callable[..., list[Any]], parts: Callable[..., Any], path: str,
    words: tuple[str, ...], others: tuple[str, ...], restrict: int | None, format: str, errors: str, skip_bad: bool,
    limit: Callable[..., tuple[Any, ...]] | None = None, counts: bool = False, **settings: Any
) -> Iterator[Answer]:  # fmt: skip
    """Yield the answers to queries of `size` words each, with status 1 if one was malformed or had an unknown word.

    name      JSON key of the answers; `settings` are added to the JSON object
    answer    function (Candidates, list of tuples of words) -> for each tuple a list of (word, score), or None if a
              word is unknown
    parts     function (word, index) -> the (word, sign) pairs of a sum
    limit     function (path, words) -> the arguments of Candidates besides the vectors; None: only `restrict`
    counts    whether to print the counts of the answers
    """
    from tiedtools.models.composing import composer
    from tiedtools.vectors.neighbors import Candidates, spellings
    from tiedtools.vectors.runs import is_runs
    from tiedtools.vectors.vectors import Vectors

    paths, limit = [path, *others], limit or (lambda *_: (restrict,))
    if len(words) % size:
        raise click.UsageError(f"the number of words must be a multiple of {size}, not {len(words)}")
    if not words and {*STDIN} & {*paths}:
        raise click.UsageError("VECTORS is read from standard input; give the words as arguments")
    refuse_clashes(["-"] * (not words), ["-"])
    if any(map(is_runs, paths)):
        given = {"--format": format, "--counts": counts, "--method mul": settings.get("method") == "mul"}
        if wrong := next((name for name, value in given.items() if value), None):
            raise click.UsageError(f"{wrong} does not apply to files of runs; omit it")
        if not words:
            raise click.UsageError("for files of runs, give the words as arguments")
        questions = [tuple(words[k : k + size]) for k in range(0, len(words), size)]
        sums = {1: lambda question, index: parts(question[0], index), 3: lambda q, _: list(zip(q, (-1, 1, 1)))}[size]
        yield run_answers(size, paths, questions, limit, sums, settings["top"], restrict)
        return
    every = ((path, Vectors.read(path, format, errors, skip_bad)) for path in paths)
    files = [Candidates(vectors, *limit(path, vectors.words)) for path, vectors in every]
    show_progress()
    if others:
        title, score = HEADERS[size]
        columns = [part for path in paths for part in (printable(path), score, *["count"] * counts)]
        yield Answer("\t".join([*title.split(), *columns]) + "\n", [])
    composers = functools.cache(lambda file: composer(paths[file], files[file].vectors))
    for batch in [[words[k : k + size] for k in range(0, len(words), size)]] if words else read_queries(size):
        questions = [question for question in batch if len(question) == size]
        complaints = [f"{' '.join(words)!r}: give {size} words" for words in batch if len(words) != size]
        results, rows = [], []
        for file, (path, candidates) in enumerate(zip(paths, files)):
            index = candidates.index
            words_asked = [part for question in questions for word in question for part, _ in parts(word, index)]
            unknown = [word for word in dict.fromkeys(words_asked) if word not in index]
            if unknown and (compose := composers(file)):
                candidates = candidates.knowing(compose(unknown))
                unknown = [word for word in unknown if word not in candidates.index]
            results.append(answer(candidates, questions))
            if counts:
                counted = lambda nearest: nearest and [(*pair, candidates.count(pair[0])) for pair in nearest]
                results[-1] = [*map(counted, results[-1])]
            suggested = {word: f"; did you mean {near!r}?" for word, near in spellings(unknown, index).items()}
            complaints += [f"{path}: no vector for {word!r}{suggested.get(word, '')}" for word in unknown]
            answers_of = {" ".join(q): nearest for q, nearest in zip(questions, results[-1]) if nearest is not None}
            rows.append({"vectors": path, **settings, "restrict": restrict, name: answers_of, "unknown": unknown})
        yield Answer("".join(side_by_side(questions, results)), rows, status=int(bool(complaints)))
        for complaint in complaints:
            log.error(f"tiedtools: {complaint}")


def progress_bar(blocks: Iterator[Any], length: int, unit: str = " blocks") -> Any:
    """Show the progress of an iterator of `length` blocks on a terminal, if it takes long."""
    from tqdm import tqdm

    return tqdm(blocks, total=length, unit=unit, delay=1, leave=False, disable=not sys.stderr.isatty())


def show_progress() -> None:
    """Show the progress of all searches for answers in this process."""
    from tiedtools.vectors.neighbors import Candidates

    Candidates.watch = staticmethod(progress_bar)


def read_queries(size: int) -> Iterator[list[tuple[str, ...]]]:
    """Yield batches of queries from standard input, one query per line, as soon as they are available.

    The words of a line are separated by tabs or, if it has none, by spaces; with size 1, the line is the word.
    """
    terminal, rest, mark = sys.stdin.isatty(), b"", codecs.BOM_UTF8
    split = lambda line: [line] if size == 1 else line.split(b"\t" if b"\t" in line else None)
    while True:
        if terminal:
            click.echo(f"{HEADERS[size][0]}: ", nl=False, err=True)
        data = sys.stdin.buffer.read1(CHUNK)  # type: ignore[union-attr]
        *lines, rest = (rest + (data or b"\n")).split(b"\n")
        if lines:
            lines[0], mark = lines[0].removeprefix(mark), b""
        questions = [tuple(word.decode("utf-8", "replace").rstrip("\r") for word in split(line)) for line in lines]
        yield [words for words in questions if any(words)]
        if not data:
            break
    if terminal:
        click.echo(err=True)


def side_by_side(questions: list[tuple[str, ...]], answers: list[Any]) -> Iterator[str]:
    """Yield tab-separated lines of a query and each file's answer, score, and count if known; `answers`: per file."""
    for question, results in zip(questions, zip(*answers)):
        text = lambda word, score, *count: (word, f"{score:.4f}", *("-" if n is None else str(n) for n in count))
        columns = [[text(*answer) for answer in near or []] for near in results]
        width = max((len(cells) for column in columns for cells in column), default=2)
        for cells in itertools.zip_longest(*columns, fillvalue=("",) * width):
            yield "\t".join([*question, *itertools.chain.from_iterable(cells)]) + "\n"


OUTPUT_HELP = "Output file for the vectors; - is standard output. NAME.npy is written as a NumPy matrix."
output_option, binary_option = options_of(
    Files, "output", "binary", **OF_FILES | {"output": dict(default="-", help=OUTPUT_HELP)}
)
arguments = together(click.argument("path", metavar="MODEL"), click.argument("text", default="-", metavar="[TEXT]"))
UNITS = {"line": "line", "doc": "record"}  # --unit -> unit of the Raw
document_unit = lambda unit, field: "record" if field and unit == "doc" else unit  # see evaluation.documents.read
unit_option = choice("unit", "line doc", "Compute one vector per line, or per document; documents are separated by"
                     " empty lines.", "line")  # fmt: skip
sif_option = option("sif", type=Finite(0, min_open=True), metavar="A", help="With word vectors: weight words by A / (A"
                    " + proportion in TEXT), and remove the common component of TEXT (SIF; Arora et al. use"
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
@arguments
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
    from tiedtools.vectors.matrixfiles import write_npy
    from tiedtools.vectors.vectors import Vectors, files_read, files_written, format_of, trained_format

    output = click.get_current_context().params["output"]
    as_npy = output.endswith(".npy") and not binary
    if as_npy and click.get_current_context().params["as_json"]:
        raise click.UsageError("--json writes text: choose another name than .npy")
    if not as_npy:
        trained_format(output, two_files=False)
    if save and sif is None:
        raise click.UsageError("--save requires --sif")
    saved = files_written(save, format_of(save)) if save else []
    refuse_clashes([output, *saved], [text])
    refuse_clashes([output, *saved[:1]], files_read(path))
    source = load(path, sif)
    how = as_trained(counts.settings(path), tokenize, phrases)
    text = prepared(text, field=field, errors=errors, unit=UNITS[unit], **how)
    matrix, _, first_lines = source.encode(text, document_unit(unit, field), errors)
    matrix = matrix.astype(np.float32, copy=False)
    if not len(matrix):
        raise TiedtoolsError(f"{shown(text)}: no lines; give a text")
    if save:
        source.word_vectors.write(save)
        if (how["tokenize"], how["phrases"]) != (WORDS, NONE):
            log.warning(f"{save} does not store `tokenize` and `phrases`: repeat them when you use it")
    vectors = Vectors([str(number) for number in range(1, len(matrix) + 1)], matrix)
    digits = ([float(str(value)) for value in vector] for vector in matrix)  # the shortest that identify a float32
    rows = ({"line": k, "text": line, "vector": x} for k, (line, x) in enumerate(zip(first_lines, digits), 1))
    form = "binary" if binary else "text"
    yield Answer(lambda file: write_npy(file, matrix) if as_npy else vectors.write_stream(file, form), rows)
    source.lexicon.log_oovs()


@command("similar", "Find similar lines of a text.", reads="path text")
@arguments
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
    line's number, their cosine similarity, and the line are printed, tab-separated. With --unit doc, documents take the
    place of lines, and the first line of each is shown.

    Unknown words of a --query are reported on stderr. A query without any known word has no answer, and
    the exit status is 1; the others are still answered.
    """
    from tiedtools.evaluation import documents
    from tiedtools.vectors import counts

    if not (queries or numbers or sample):
        problem = "give a sentence (--query), a line number (--line), or a number of random lines (--sample)"
        raise click.UsageError(problem)
    warn_idle(click.get_current_context(), {} if sample else {"seed": "without --sample"})
    source = load(path, sif)
    if center and not hasattr(source, "model"):
        raise click.UsageError("--center requires a document vector: give a model of `rnnlm --doc-dim`, or omit it")
    lexicon, known, unknown, how = source.lexicon, [], [], as_trained(counts.settings(path), tokenize, phrases)
    split, lines = splitter(**how), prepared(text, field=field, errors=errors, unit=UNITS[unit], **how)
    for query in queries:
        words = split(query)
        missing = [word for word in words if word not in lexicon.index]
        unknown += missing
        if len(missing) < len(words):
            known.append(" ".join(words))
            if missing:
                log.warning(f"query {quoted(query)}: not in the vocabulary: {', '.join(map(quoted, missing))}")
        else:
            log.error(f"tiedtools: query {quoted(query)}: no known word; give words of the model's vocabulary")
    show_progress()
    find = known or numbers or sample
    choice = document_unit(unit, field), errors, known, numbers, sample, seed, top, center
    results = documents.similar(source, lines, *choice) if find else []
    form = "{text}\t{0[line]}\t{0[cosine]:.4f}\t{0[text]}\n".format
    answer = "".join(form(line, text=query["text"]) for query in results for line in query["similar"])
    about = {"model": path, "text": text, "unit": unit, "center": center, "sif": sif}
    yield Answer(answer, {**about, "queries": results, "unknown": unknown}, status=int(len(known) < len(queries)))
    lexicon.log_oovs()
