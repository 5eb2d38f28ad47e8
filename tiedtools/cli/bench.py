"""`tiedtools bench`"""

import click

from tiedtools.cli.options import Finite, option


class Threads(click.ParamType):
    """`1,2,4` is a list; `4` a maximum, to which one thread is doubled."""

    name = "N[,N]..."

    def convert(self, value, param, ctx):
        try:
            numbers = [int(number) for number in value.split(",") if number.strip()]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1 or max(numbers) > 1024:
            self.fail(f"{value!r} is no list of numbers from 1 to 1024, as in 1,2,4.", param, ctx)
        if "," in value:
            return list(dict.fromkeys(numbers))
        return [2**k for k in range(20) if 2**k < numbers[0]] + numbers


@click.command("bench", short_help="Words a second, beside what the machine could do, and beside others.")
@click.argument("text", required=False)
@click.option("--words", type=click.IntRange(100), default=5_000_000, show_default=True, help="Length of a made text.")
@option("size", type=click.IntRange(1, 10**5), default=300, help="Width of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Greatest distance of a context word.")
@option("negative", type=click.IntRange(1, 10**4), default=5, help="Negative samples for each target.")
@option("sample", type=Finite(0), default=1e-4, help="Subsample words more frequent than this; 0: none.")
@option("min-count", type=click.IntRange(0), default=5, help="Drop words seen less often.")
@option("threads", type=Threads(), help="1,4: 1 and 4; 4: 1, 2 and 4; 4,: only 4.  [default: to all cores]")
@option("runs", type=click.IntRange(1, 1000), default=3, help="Runs of each; the median counts.")
@option(
    "variants",
    default="cbow,cbow-linear,sg,sg-linear",
    metavar="NAMES",
    help="Of cbow, cbow-tied, cbow-linear (tied+L), sg, sg-tied, sg-linear.",
)
@click.option("--exact", is_flag=True, help="Each variant also with --exact.")
@click.option("--deterministic", is_flag=True, help="Each variant also with --deterministic.")
@click.option("--against", multiple=True, metavar="RIVAL", help="gensim, or word2vec.c=PATH; any number of times.")
@click.option("--whole", is_flag=True, help="Whole processes, text file to vector file: seconds and peak memory.")
@option("json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(text, words, threads, runs, variants, exact, deterministic, against, whole, as_json, min_count, **options):
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
    import tempfile

    from tiedtools.benchmark import zipf
    from tiedtools.benchmark.contenders import VARIANTS, Task, refuse_missing
    from tiedtools.benchmark.rounds import measure, table
    from tiedtools.cli.w2v import available_cores
    from tiedtools.encoding import encode
    from tiedtools.report import say

    names = list(dict.fromkeys(name.strip() for name in variants.split(",")))
    if wrong := [name for name in names if name not in VARIANTS]:
        raise click.UsageError(f"--variants: no variant {wrong[0]!r}; choose of {', '.join(VARIANTS)}")
    if text is not None and text.endswith((".gz", ".bz2", ".xz", ".zst")) or text == "-":
        raise click.UsageError(f"{text}: not all contenders can read it; give a plain text file")
    refuse_missing(against)
    threads = threads or Threads().convert(str(available_cores()), None, None)
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        say(f"others keep {os.getloadavg()[0]:.1f} cores busy: all figures will be lower than they could be")
    modes = [mode for mode, on in {"exact": exact, "deterministic": deterministic}.items() if on]
    with tempfile.TemporaryDirectory(prefix="tiedtools-") as folder:
        if text is None:
            text = os.path.join(folder, "text")
            say(f"making a text of {words:,} words")
            with open(text, "wb") as file:
                zipf.write(file, words)
        task = Task(text, encode([text], min_count), min_count, options)
        out = os.path.join(folder, "vectors") if whole else None
        result = measure(task, names, modes, against, threads, runs, out)
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)
