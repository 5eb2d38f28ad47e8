"""`tiedtools bench w2v`"""

import click

from tiedtools.cli.options import Finite, Threads, json_option, listed, option, plain


@click.command("w2v", short_help="Word vectors, beside gensim and word2vec.c; bench without a name is this.")
@click.argument("text", required=False, callback=plain)
@option("words", type=click.IntRange(100), default=5_000_000, help="Length of a made text.")
@option("size", type=click.IntRange(1, 10**5), default=300, help="Width of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Greatest distance of a context word.")
@option("negative", type=click.IntRange(1, 10**4), default=5, help="Negative samples for each target.")
@option("sample", type=Finite(0), default=1e-4, help="Subsample words more frequent than this; 0: none.")
@option("min-count", type=click.IntRange(0), default=5, help="Drop words seen less often.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs of each; the median counts.")
@option(
    "variants",
    callback=listed,
    default="cbow,cbow-linear,sg,sg-linear",
    metavar="NAMES",
    help="Of cbow, cbow-tied, cbow-linear (tied+L), sg, sg-tied, sg-linear.",
)
@option("exact", is_flag=True, help="Each variant also with --exact.")
@option("deterministic", is_flag=True, help="Each variant also with --deterministic.")
@option("float32", is_flag=True, help="Each variant of tied+L also with --precision float32.")
@option("against", multiple=True, metavar="RIVAL", help="gensim, or word2vec.c=PATH; any number of times.")
@option("whole", is_flag=True, help="Whole processes, text file to vector file: seconds and peak memory.")
@json_option("Print one JSON object instead of a table.")
def command(text, words, threads, runs, variants, against, whole, as_json, min_count, **options):
    """Measure how many words a second are trained on, and how near that is to what the machine could do.

    TEXT is a plain text file, a sentence a line; without it, one is made of words as frequent as in a language
    (Zipf), always the same. Words are those of the text that are in the vocabulary, without line ends, before frequent
    ones are thinned out, as others count them too; each is trained on once. Time is that of training alone:
    tiedtools has read the text before; gensim, with corpus_file, reads it on the way but has counted its words;
    of word2vec.c it is the time between its first and last line of progress. The rates are .05, of skip-gram .025.

    The limit is that of a machine which does the work needed for a centre word, in floating point operations or in
    bytes of rows moved, at the peak measured here and now, whichever of the two takes longer (docs/performance.md).
    """
    import json
    import os

    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.w2v import measure, table
    from tiedtools.benchmark.w2vcontenders import MODES, VARIANTS, Task, refuse_missing
    from tiedtools.benchmark.zipf import text_or_made
    from tiedtools.text.encoding import encode

    if wrong := [name for name in variants if name not in VARIANTS]:
        raise click.UsageError(f"--variants: no variant {wrong[0]!r}; choose of {', '.join(VARIANTS)}")
    refuse_missing(against)
    warn_if_busy()
    modes = [mode for mode in MODES if options.pop(mode)]
    with text_or_made(text, words) as (folder, path):
        task = Task(path, encode([path], min_count), min_count, options)
        out = os.path.join(folder, "vectors") if whole else None
        result = measure(task, variants, modes, against, threads or Threads.up_to_all(), runs, out)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
