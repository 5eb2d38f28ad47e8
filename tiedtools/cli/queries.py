"""Questions put to files of word vectors, on the command line or on standard input, and their answers side by side."""

import codecs
import itertools
import json
import sys

import click

from tiedtools.cli.options import errors_option, format_option, json_option, option, together
from tiedtools.text.sources import read_once

PROMPTS = {1: "word: ", 3: "a b c: "}
CHUNK = 1 << 16  # bytes of standard input that are answered together, where so many are there


def query_options(words):
    """Decorator: VECTORS, words (`words` in help) and what questions share; `respond` takes all but `top`."""
    return together(
        click.argument("path", metavar="VECTORS"),
        click.argument("words", nargs=-1, metavar=words),
        option("with", "others", multiple=True, metavar="VECTORS", help="Another file, answered beside; repeat."),
        option("top", also="k", type=click.IntRange(min=1), default=10, metavar="N", help="Answers to each question."),
        option("restrict", type=click.IntRange(min=1), metavar="N", help="Only the first N words can be answers."),
        format_option,
        errors_option,
        json_option("Print one JSON object a file instead of lines."),
    )


def respond(size, name, answer, parts, path, words, others, restrict, format, errors, as_json, **settings):
    """Print the answers to questions of `size` words each, and return the exit status: 1 if one had no answer.

    name      what the answers are called in JSON; the `settings` stand there, too
    answer    function (Candidates, list of tuples of words): for each a list of (word, score), None for unknown words
    parts     function (word, index): the (word, sign) that it stands for
    """
    from tiedtools.evaluation.neighbours import Candidates
    from tiedtools.messages import log
    from tiedtools.vectors.vectors import Vectors

    paths = [path, *others]
    if len(words) % size:
        raise click.UsageError(f"words come by {size}, and these are {len(words)}")
    read_once(*paths)
    if not words and "-" in paths:
        raise click.UsageError("VECTORS comes from standard input, so name the words as arguments")
    files = [Candidates(Vectors.read(path, format, errors), restrict) for path in paths]
    batches = [[words[k : k + size] for k in range(0, len(words), size)]] if words else typed(size)
    if as_json:
        batches = [list(itertools.chain.from_iterable(batches))]
    status = 0
    for batch in batches:
        questions = [question for question in batch if len(question) == size]
        answers = [answer(candidates, questions) for candidates in files]
        complaints = [f"{' '.join(words)!r}: give {size} words" for words in batch if len(words) != size]
        for path, candidates, found in zip(paths, files, answers):
            index = candidates.vectors.index
            asked = [part for question in questions for word in question for part, _ in parts(word, index)]
            unknown = [word for word in asked if word not in index]
            complaints += [f"{path}: no vector for {word!r}" for word in unknown]
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
    """Yield questions from standard input, a line each, as many at a time as have come: one that is typed at once.

    The words of a line part at tabs or, where it has none, at blanks; a single word is all of the line.
    """
    terminal = sys.stdin.isatty()
    rest, mark = b"", codecs.BOM_UTF8
    while True:
        if terminal:
            click.echo(PROMPTS[size], nl=False, err=True)
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
    """Lines of a question, an answer and its score from each file, tab separated; `answers`: a list for each file."""
    for question, found in zip(questions, zip(*answers)):
        columns = [[(word, f"{score:.4f}") for word, score in close or []] for close in found]
        for cells in itertools.zip_longest(*columns, fillvalue=("", "")):
            yield "\t".join([*question, *itertools.chain.from_iterable(cells)]) + "\n"
