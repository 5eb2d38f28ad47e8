"""Query word vectors for words from the command line or standard input: `nn` and `analogy`."""

import codecs
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from tiedtools.base.errors import printable
from tiedtools.base.messages import log
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import Decorator, choice, file_option, flag, integer, json_option, option, together
from tiedtools.cli.shared import reading_options
from tiedtools.cli.uncertainty import run_answers

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


def query_command(name: str, short_help: str, words: str) -> Decorator:
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
         " Counts are known for model files, for vectors next to their manifest, and with --vocab.  [default: 100, or 4"
         " per million words of a text below 25 million; 0 with --restrict or without counts]", least=0)  # fmt: skip
@flag("counts", "Also print how often each answer occurs in the training text.")
@file_option("vocab", "Read word counts from FILE, of `word count` lines, as w2v -save-vocab writes.")
def nn(
    top: int, min_count: int | None, counts: bool, vocab: str | None, restrict: int | None, **options: Any
) -> Iterator[Answer]:
    """Print the nearest neighbors of each WORD: the word, the neighbor, and their cosine similarity, tab-separated.

    Without WORD, words are read from standard input, one per line, and answered immediately. VECTORS is a vector file,
    `-` for standard input, or MODEL:out for a model's output vectors; each --with adds a column of neighbors and a
    column of similarities, and a header names the files.

    A WORD with spaces that is not in the vocabulary is a sum, such as "king - man + woman" or "san francisco": the sum
    of its words' unit-length vectors. These words are excluded from its neighbors.

    Rare words are not answers if their counts are known: their vectors are less reliable (--min-count). --counts adds a
    column of counts.

    Words are looked up exactly as written. A model trained with `lstm --subwords` composes the vectors of other words,
    which are not answers. Unknown words are reported on stderr; the others are still answered, and the exit status is
    1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.counts import default_min_count, frequent, word_counts
    from tiedtools.vectors.neighbors import neighbors, summands

    def limit(path: str, words: Any) -> tuple[Any, ...]:
        """Return the number of words that may be answers (None: all), their counts (None: unknown), and the least."""
        all_counts = min_count == 0 or restrict and min_count is None
        known = word_counts(path, words, vocab) if counts or not all_counts else None
        if known is None:
            if counts or min_count:
                problem = f"no word counts for {path}, which is no model and has no manifest; give --vocab FILE"
                raise click.UsageError(f"{'--counts' if counts else '--min-count'}: {problem}")
            return restrict, None, 0
        least = 0 if all_counts else min_count or default_min_count(known)
        if min_count is None and (rare := int((known < least).sum())):
            left_out = f"{rare:,} of {len(known):,} words, which occur less than {least} times"
            log.info(f"{path}: leaving out {left_out}; --min-count 0 includes them")
        return min(frequent(known, least), restrict or len(known)), known, least

    near = lambda candidates, questions: neighbors(candidates, [word for (word,) in questions], top)
    return answers(1, "neighbors", near, summands, limit=limit, counts=counts, top=top, restrict=restrict, **options)


@query_command("analogy", "Solve analogies: A is to B as C is to what?", "[A B C]...")
@choice("method", "add mul", "Scoring method: 3CosAdd or 3CosMul.", "add")
def analogy(top: int, method: str, **options: Any) -> Iterator[Answer]:
    """Print the words that are to C as B is to A: for each triple A B C, the answer and its score, tab-separated.

    Without words, triples are read from standard input, one per line, and answered immediately. VECTORS is a vector
    file, `-` for standard input, or MODEL:out for a model's output vectors; each --with adds a column of answers and a
    column of scores, and a header names the files.

    The score of an answer d is cos(d, B) - cos(d, A) + cos(d, C) (3CosAdd), or cos(d, B) cos(d, C) / (cos(d, A) +
    0.001) with cosines shifted to 0..1 (3CosMul; Levy and Goldberg 2014). A, B, and C are excluded from the answers.

    Words are looked up exactly as written. A model trained with `lstm --subwords` composes the vectors of other words,
    which are not answers. Unknown words are reported on stderr; the others are still answered, and the exit status is
    1. Put words that begin with a dash, such as -lrb-, after `--`.
    """
    from tiedtools.vectors.neighbors import analogies

    solve = functools.partial(analogies, top=top, method=method)
    return answers(3, "analogies", solve, lambda word, _: [(word, 1)], top=top, method=method, **options)


def answers(
    size: int, name: str, answer: Callable[..., list[Any]], parts: Callable[..., Any], path: str,
    words: tuple[str, ...], others: tuple[str, ...], restrict: int | None, format: str, errors: str, skip_bad: bool,
    limit: Callable[..., tuple[Any, ...]] | None = None, counts: bool = False, **settings: Any
) -> Iterator[Answer]:  # fmt: skip
    """Yield the answers to queries of `size` words each, with status 1 if a query had no answer.

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
    if not words and "-" in paths:
        raise click.UsageError("VECTORS is read from standard input; give the words as arguments")
    if any(map(is_runs, paths)):
        if format or settings.get("method", "add") != "add" or counts or not words:
            raise click.UsageError("for files of runs, give words, and no --format, --counts, or --method mul")
        questions = [tuple(words[k : k + size]) for k in range(0, len(words), size)]
        sums = {1: lambda question, index: parts(question[0], index), 3: lambda q, _: list(zip(q, (-1, 1, 1)))}[size]
        yield run_answers(size, paths, questions, settings["top"], limit, sums)
        return
    every = ((path, Vectors.read(path, format, errors, skip_bad)) for path in paths)
    files = [Candidates(vectors, *limit(path, vectors.words)) for path, vectors in every]
    for file in files:
        file.watch = progress_bar
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
            unknown = [word for word in words_asked if word not in index]
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


def progress_bar(blocks: Iterator[Any], length: int) -> Any:
    """Show the progress of an iterator of `length` blocks on a terminal, if it takes long."""
    from tqdm import tqdm

    return tqdm(blocks, total=length, unit=" blocks", delay=1, leave=False, disable=not sys.stderr.isatty())


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
        columns = [[(word, f"{score:.4f}", *map(str, count)) for word, score, *count in near or []] for near in results]
        width = max((len(cells) for column in columns for cells in column), default=2)
        for cells in itertools.zip_longest(*columns, fillvalue=("",) * width):
            yield "\t".join([*question, *itertools.chain.from_iterable(cells)]) + "\n"
