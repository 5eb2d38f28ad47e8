"""Change of words between texts and over time: `shift`, and `align`."""

import math
import os
from collections.abc import Collection
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.settings import Files, Reading, sort_out
from tiedtools.cli.command import Answer, SectionedCommand, command, sections, warn_idle
from tiedtools.cli.options import explicit, flag, integer, json_option, option, option_names, options_of
from tiedtools.cli.report import Report
from tiedtools.cli.shared import explained, reading_options
from tiedtools.cli.training import files_of, settings_of, train
from tiedtools.cli.uncertainty import aligned, brief, span
from tiedtools.cli.w2v import CHANGED, idle
from tiedtools.files.output import STDOUT, refuse_clashes
from tiedtools.models.word2vec.config import Config, Resampling, configure, default_vectors
from tiedtools.text.sources import numbered_lines, read_once

SHIFT = {
    "Change": [
        option("words", metavar="FILE", help="File of the words to report, one per line.  [default: all]"),
        integer("top", 20, "Number of words to print, by decreasing excess, or by p with --permutations; 0: all, the"
                " default with --words or --json.", least=0),
        integer("permutations", None, "A and B are texts: train on both, and again N times after exchanging documents"
                " between them at random.", most=4999),
        *options_of(Resampling, "document", document=dict(help="Unit that is exchanged; empty lines separate"
                    " paragraphs, and --field reads records.  [default: record with --field, otherwise line]")),
    ],
    "Training, with --permutations": [
        Config, *options_of(Reading), flag("no-memory-check", "Train even if memory looks insufficient."),
    ],
    "Files, with --permutations": ["checkpoint checkpoint_minutes resume"],
}  # fmt: skip
CHECKPOINT = dict(help="Write the models that are finished to FILE, every `checkpoint_minutes` and on interruption.")


@command("shift", "Measure how the use of words differs between texts, or over time.", cls=SectionedCommand)
@click.argument("a", metavar="A|SLICES")
@click.argument("others", nargs=-1, metavar="B|[WORD]...")
@sections(SHIFT, Config, Reading, Resampling, Files, **CHANGED | {"checkpoint": CHECKPOINT})
@json_option("Print one JSON object instead of a table.")
@click.pass_context
def shift(ctx: click.Context, /, a: str, others: tuple[str, ...], permutations: int | None, **options: Any) -> Answer:
    """Print the change of words from A to B: 1 - the cosine of their vectors after orthogonal alignment.

    A and B are files of runs, from `tiedtools w2v --runs`. The table has the words with the greatest excess of their
    change over the change expected by chance: the word, its counts, its change with its 95% interval, and the
    expected change, from the differences between runs of one file. If A or B has single vectors instead of runs,
    intervals are missing, and the expected change is the median change of the 101 words nearest in count. The cosines
    of rare words change most by chance: compare words of similar counts.

    With --permutations, A and B are texts, and the table has p-values: the documents of both are exchanged at random,
    models are trained, and p = (1 + permutations with at least this change) / (1 + permutations). q is adjusted for the
    number of words tested (Benjamini and Hochberg): all words, or those in --words. With M permutations, p is at least
    1 / (M + 1), so give a list of words. Training options are as in `w2v`; --threads models are trained at a time.

    SLICES is a folder from `tiedtools w2v --slices`, whose vectors share a space. The table has the words with the
    greatest excess of their change, from the first slice to the last, over such a median or, for each WORD, its cosine
    to the first slice and its neighbors by slice.
    """
    from tiedtools.api.slices import read_slices
    from tiedtools.evaluation.runsets import runs_of
    from tiedtools.evaluation.shift import adjusted, changes
    from tiedtools.text.vocab import END
    from tiedtools.vectors.vectors import refuse_absent

    path = options["words"]
    named = (line.strip(" \t\r") for _, line in numbered_lines(path)) if path is not None else ()
    listed = None if path is None else dict.fromkeys(filter(None, named))
    if listed == {}:
        raise TiedtoolsError(f"{path}: no words; give one per line")
    training = {o.name for o in ctx.command.params if getattr(o, "setting", None)} | {"no_memory_check"}
    unused = [option for name, option in option_names(ctx).items() if name in explicit(ctx) & training]
    if permutations is None and unused:
        raise click.UsageError(f"{unused[0]} needs --permutations, which trains models")
    if permutations is not None and os.path.isdir(a):
        raise click.UsageError("--permutations needs two texts, not a folder of slices")
    slices = read_slices(a) if os.path.isdir(a) else {}
    if slices and (words := [*others, *(listed or [])]):
        warn_idle(ctx, {"top": "with a folder of slices and words"})
        return over_time(a, slices, words)
    if not slices and len(others) != 1:
        raise click.UsageError("give A and B, with words in --words FILE, or a folder of slices, with words after it")
    one, two = (next(iter(slices)), [*slices][-1]) if slices else (a, others[0])
    read_once(*() if slices else (one, two))
    if slices:
        lines, only_a, only_b = changes(slices[one], slices[two], align=False)
    elif permutations is None:
        refuse_absent([one, two])
        with explained(remedy="; if A and B are texts, give --permutations N"):
            first, second = runs_of(one, skip_bad=None), runs_of(two, skip_bad=None)
        with explained(one, two):
            lines, only_a, only_b = changes(first, second)
    else:
        lines, only_a, only_b = permuted(ctx, one, two, permutations)
    known = {line["word"]: line for line in lines}
    absent = [word for word in listed or () if word not in known]
    lines = [known[word] for word in listed if word in known] if listed else lines
    if permutations is not None:
        lines = sorted(adjusted(lines), key=lambda line: (line["p"], -line["change"]))
    else:
        lines.sort(key=lambda line: (math.isnan(line["expected"]), line["expected"] - line["change"]))
    if "top" in explicit(ctx):
        lines = lines[: options["top"] or None]
    text = aligned(lines if listed else lines[: options["top"] or None])
    text += missing(one, only_a, listed) + missing(two, only_b, listed)
    either = {*only_a, *only_b, END}
    unknown = [word for word in absent if word not in either]
    text += f"in neither vocabulary: {len(unknown):,}: {' '.join(unknown)}\n" if unknown else ""
    return Answer(text, dict(a=one, b=two, results=lines, only_a=only_a, only_b=only_b, absent=absent))


def over_time(folder: str, slices: dict[str, Any], words: list[str]) -> Answer:
    """Return the Answer of `shift` for words in a folder of slices."""
    from tiedtools.evaluation.shift import paths

    lines = paths(slices, words)
    unknown = sorted({*words} - {line["word"] for line in lines})
    for word in unknown:
        log.error(f"tiedtools: {folder}: no slice has {word!r}; check its spelling")
    rows = [
        {"word": line["word"], "slice": line["slice"], "count": line["count"], "cosine": brief(line["cosine"]),
         "95% interval": span(line["low"], line["high"]), "neighbors": " ".join(line["neighbors"])}
        for line in lines
    ]  # fmt: skip
    return Answer(aligned(rows, 2), dict(slices=[*slices], results=lines, unknown=unknown), int(bool(unknown)))


def missing(path: str, words: list[str], listed: Collection[str] | None) -> str:
    """Return a line of the words that only one side has; of those that are `listed`, unless it is None."""
    words = [word for word in words if listed is None or word in listed]
    return f"only in {path}: {len(words):,}: {' '.join(words[:10])}{' ...' * (len(words) > 10)}\n" if words else ""


def permuted(ctx: click.Context, a: str, b: str, permutations: int) -> tuple[Any, list[str], list[str]]:
    """Return the changes between two texts with p-values, and the words of only one; see evaluation.shift.changes."""
    from tiedtools.evaluation.shift import permutation_changes
    from tiedtools.models.word2vec.permutation import PermutationTrainer

    settings, unchecked = settings_of(ctx), ctx.params["no_memory_check"]
    document = settings.pop("document", "record" if "field" in settings else "line")
    reading = dict(permutations=permutations, document=document)
    config, of_text = configure(**settings)
    warn_idle(ctx, idle(config))
    paths = sort_out({"write": default_vectors(config), **files_of(ctx)}, Files)
    trainer = PermutationTrainer(config, [a, b], *paths, unchecked, **reading, **of_text)
    return permutation_changes(train(ctx, trainer, Report(2)))


@command("align", "Rotate word vectors into the space of others.", reads="a b")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option("output", metavar="FILE", help="Write the vectors of B in the space of A to FILE, in the format of its name.")
@flag("center", "Subtract the mean of the common words on each side before the rotation, and add that of A after it.")
@option("normalize/--no-normalize", default=True, show_default=False,
        help="Fit the rotation to vectors of length 1, the default, or to the vectors as they are.")  # fmt: skip
@reading_options
@json_option("Print one JSON object instead of a table.")
def align(a: str, b: str, output: str | None, center: bool, normalize: bool, **reading: Any) -> Answer:
    """Rotate the vectors of B into the space of A (orthogonal Procrustes), and print how well the common words agree.

    A and B are files of word vectors or models of the same dimension. The rotation, which may reflect, minimizes the
    squared distance of the vectors of all common words. The table has a line for each band of ranks in A: the mean
    cosine of a word's two vectors, and its 5 and 95 percentiles over words.
    """
    from tiedtools.vectors.edit import align as fit
    from tiedtools.vectors.vectors import Vectors, files_read, files_written, format_of, refuse_absent

    if output in STDOUT:
        raise click.UsageError("--output cannot be standard output, which has the table; give a file name")
    refuse_absent([a, b], reading["format"])
    if output:
        refuse_clashes(files_written(output, format_of(output))[:1], [*files_read(a), *files_read(b)])
    one, two = Vectors.read(a, **reading), Vectors.read(b, **reading)
    with explained(a, b):
        vectors, lines = fit(one, two, center, normalize)
    if output:
        vectors.write(output)
    return Answer(aligned(lines), dict(a=a, b=b, center=center, normalize=normalize, results=lines))
