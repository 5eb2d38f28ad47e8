"""Query word vectors for words from the command line or standard input, and print answers from several files."""

import codecs
import functools
import itertools
import json
import sys

import click

from tiedtools.cli.options import json_option, option, reading_options, together
from tiedtools.text.sources import read_once

HEADERS = {1: ("word", "cosine"), 3: ("a b c", "score")}  # by size of a query: its words, and their answers' scores
CHUNK = 1 << 16  # maximum bytes of standard input answered as one batch


def query_options(words):
    """Return a decorator that adds VECTORS, words (metavar `words`), and the shared options of query commands."""
    return together(
        click.argument("path", metavar="VECTORS"),
        click.argument("words", nargs=-1, metavar=words),
        option("with", "others", multiple=True, metavar="VECTORS", help="Additional vector file to query; repeatable."),
        option(
            "top", also="k", type=click.IntRange(min=1), default=10, metavar="N", help="Number of answers per query."
        ),
        option("restrict", type=click.IntRange(min=1), metavar="N", help="Consider only the first N words as answers."),
        reading_options,
        json_option("Print one JSON object per file instead of lines."),
    )


def respond(
    size, name, answer, parts, path, words, others, restrict, format, errors, skip_bad, as_json, limit=None, **settings
):
    """Print the answers to queries of `size` words each; return the exit status, 1 if a query had no answer.

    name      JSON key of the answers; `settings` are added to the JSON object
    answer    function (Candidates, list of tuples of words) -> for each tuple a list of (word, score), or None if a
              word is unknown
    parts     function (word, index) -> the (word, sign) pairs of a sum
    limit     function (path, V) -> how many of the V words of a file may be answers; None: `restrict`
    """
    from tiedtools.base.errors import printable
    from tiedtools.base.messages import log
    from tiedtools.models.composing import composer
    from tiedtools.vectors.neighbors import Candidates, spellings
    from tiedtools.vectors.vectors import Vectors

    paths = [path, *others]
    if len(words) % size:
        raise click.UsageError(f"the number of words must be a multiple of {size}, not {len(words)}")
    read_once(*paths)
    if not words and "-" in paths:
        raise click.UsageError("VECTORS is read from standard input; give the words as arguments")
    files = []
    for path in paths:
        vectors = Vectors.read(path, format, errors, skip_bad)
        files.append(Candidates(vectors, limit(path, len(vectors)) if limit else restrict))
    batches = [[words[k : k + size] for k in range(0, len(words), size)]] if words else typed(size)
    if as_json:
        batches = [list(itertools.chain.from_iterable(batches))]
    elif others:
        words, score = HEADERS[size]
        columns = [part for path in paths for part in (printable(path), score)]
        click.echo("\t".join([*words.split(), *columns]).encode())
    composers = functools.cache(composer)
    status = 0
    for batch in batches:
        questions = [question for question in batch if len(question) == size]
        answers = []
        complaints = [f"{' '.join(words)!r}: give {size} words" for words in batch if len(words) != size]
        for path, candidates in zip(paths, files):
            index = candidates.vectors.index
            asked = [part for question in questions for word in question for part, _ in parts(word, index)]
            unknown = [word for word in asked if word not in index]
            if unknown and (compose := composers(path)):
                candidates = candidates.knowing(compose(unknown))
                unknown = [word for word in unknown if word not in candidates.vectors]
            answers.append(found := answer(candidates, questions))
            meant = {word: f"; did you mean {near!r}?" for word, near in spellings(unknown, index).items()}
            complaints += [f"{path}: no vector for {word!r}{meant.get(word, '')}" for word in unknown]
            if as_json:
                answered = {" ".join(q): close for q, close in zip(questions, found) if close is not None}
                about = {"vectors": path, **settings, "restrict": restrict}
                click.echo(json.dumps({**about, name: answered, "unknown": unknown}))
        if not as_json:
            click.echo("".join(side_by_side(questions, answers)).encode(), nl=False)
        for complaint in complaints:
            log.error(f"tiedtools: {complaint}")
            status = 1
    return status


def typed(size):
    """Yield batches of queries from standard input, one query per line, as soon as they are available.

    The words of a line are separated by tabs or, if it has none, by spaces; with size 1, the line is the word.
    """
    terminal = sys.stdin.isatty()
    rest, mark = b"", codecs.BOM_UTF8
    while True:
        if terminal:
            click.echo(f"{HEADERS[size][0]}: ", nl=False, err=True)
        data = sys.stdin.buffer.read1(CHUNK)  # type: ignore[union-attr]
        *lines, rest = (rest + (data or b"\n")).split(b"\n")
        if lines:
            lines[0], mark = lines[0].removeprefix(mark), b""
        if size > 1:
            questions = [line.split(b"\t") if b"\t" in line else line.split() for line in lines]
        else:
            questions = [[line] for line in lines]
        questions = [[word.decode("utf-8", "replace").rstrip("\r") for word in words] for words in questions]
        yield [tuple(words) for words in questions if any(words)]
        if not data:
            break
    if terminal:
        click.echo(err=True)


def side_by_side(questions, answers):
    """Yield tab-separated lines of a query and each file's answer and score; `answers`: one list per file."""
    for question, found in zip(questions, zip(*answers)):
        columns = [[(word, f"{score:.4f}") for word, score in close or []] for close in found]
        for cells in itertools.zip_longest(*columns, fillvalue=("", "")):
            yield "\t".join([*question, *itertools.chain.from_iterable(cells)]) + "\n"
