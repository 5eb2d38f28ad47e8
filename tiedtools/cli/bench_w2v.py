"""`tiedtools bench w2v`: benchmark word-vector training."""

import click

from tiedtools.cli.options import Finite, Threads, json_option, listed, option, plain


@click.command("w2v", short_help="Benchmark word vectors against gensim and word2vec.c (default).")
@click.argument("text", required=False, callback=plain)
@option("words", type=click.IntRange(100), default=5_000_000, help="Length of the synthetic text in words.")
@option("size", type=click.IntRange(1, 10**5), default=300, help="Dimension of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Maximum distance between target and context word.")
@option("negative", type=click.IntRange(1, 10**4), default=5, help="Negative samples per target.")
@option("sample", type=Finite(0), default=1e-4, help="Subsampling threshold of frequent words; 0 disables.")
@option("min-count", type=click.IntRange(0), default=5, help="Discard words that occur less often than this.")
@option("threads", type=Threads(), help=Threads.help)
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs per configuration; the median is reported.")
@option(
    "variants",
    callback=listed,
    default="cbow,cbow-signs,sg,sg-signs",
    metavar="NAMES",
    help="Models: cbow, cbow-tied, cbow-signs, cbow-linear (tied+L), or sg instead of cbow.",
)
@option("exact", is_flag=True, help="Also measure each variant with --exact.")
@option("deterministic", is_flag=True, help="Also measure each variant with --deterministic.")
@option("float32", is_flag=True, help="Also measure each tied+L variant with --precision float32.")
@option("against", multiple=True, metavar="RIVAL", help="Compare with gensim or word2vec.c=PATH; repeatable.")
@option("whole", is_flag=True, help="Measure whole processes, text file to vector file: seconds and peak memory.")
@json_option("Print one JSON object instead of a table.")
def command(text, words, threads, runs, variants, against, whole, as_json, min_count, **options):
    """Measure word-vector training speed in words per second, and compare it with the hardware limit.

    TEXT is an uncompressed text file with one sentence per line. Without it, a synthetic text with Zipf-distributed
    words is used, always the same. Words are counted as in the other programs: in the vocabulary, without line ends,
    before subsampling. A run is one epoch.

    Only training is timed: tiedtools has read the text beforehand; gensim, with corpus_file, reads it while training
    but has counted its words; word2vec.c is timed from its first to its last progress line. Learning rates are .05 for
    CBOW and .025 for skip-gram.

    The limit is the time per center word that floating-point operations or memory traffic need at the peak rates
    measured on this machine, whichever is longer (docs/performance.md).
    """
    import json
    import os

    from tiedtools.benchmark.machine import warn_if_busy
    from tiedtools.benchmark.w2v import measure, table
    from tiedtools.benchmark.w2vcontenders import MODES, VARIANTS, Task, refuse_missing
    from tiedtools.benchmark.zipf import text_or_made
    from tiedtools.text.encoding import encode

    if wrong := [name for name in variants if name not in VARIANTS]:
        raise click.UsageError(f"--variants: unknown variant {wrong[0]!r}; choose from {', '.join(VARIANTS)}")
    refuse_missing(against)
    warn_if_busy()
    modes = [mode for mode in MODES if options.pop(mode)]
    with text_or_made(text, words) as (folder, path):
        task = Task(path, encode([path], min_count), min_count, options)
        out = os.path.join(folder, "vectors") if whole else None
        result = measure(task, variants, modes, against, threads or Threads.up_to_all(), runs, out)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
