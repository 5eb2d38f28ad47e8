"""The commands of the benchmarks: options, checks before a measurement, and output after it."""

import importlib
import json
import os

import click

from benchmarks.history import history
from tiedtools.base import processor
from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.cli.options import Finite, choice, flag, json_option, option, spelled, together
from tiedtools.cli.report import show_messages
from tiedtools.files.output import split_compression


class Threads(click.ParamType):
    """Thread counts: `1,2,4` is a list; `4` stands for the powers of two up to 4, and 4."""

    name = "N[,N]..."

    def convert(self, value, param, ctx):
        try:
            numbers = [int(number) for number in value.split(",") if number.strip()]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1 or max(numbers) > 1024:
            self.fail(f"{value!r} is not a list of numbers from 1 to 1024, such as 1,2,4.", param, ctx)
        if "," in value:
            return list(dict.fromkeys(numbers))
        return [2**k for k in range(20) if 2**k < numbers[0]] + numbers


def listed(ctx, parameter, value):
    """Option callback: split a comma-separated list and drop duplicates."""
    return list(dict.fromkeys(name.strip() for name in value.split(",")))


def plain(ctx, parameter, path):
    """Argument callback: require TEXT to be an uncompressed file, which other programs can also read."""
    if path == "-" or path and split_compression(path)[1]:
        raise click.UsageError(
            f"{path}: must be an uncompressed file, which all benchmarked programs can read; give a plain text file"
        )
    return path


def variants(default, names):
    return option("variants", callback=listed, default=default, metavar="NAMES", help=f"Models: {names}.")


def words(least, default):
    return option("words", type=click.IntRange(least), default=default, help="Length of the synthetic text in words.")


def against(names):
    return option("against", multiple=True, metavar="RIVAL", help=f"Compare with {names}; repeatable.")


def count(name, default, help, least=1, most=10**5, **attributes):
    return option(name, type=click.IntRange(least, most), default=default, help=help, **attributes)


text_argument = click.argument("text", required=False, callback=plain)
runs_option = count("runs", 3, "Runs per configuration; the median is reported.", most=1000)
steps_option = count("windows", 20, "Training steps per run.", most=10**6)
as_json = json_option("Print one JSON object instead of tables.")
dropout_option = option(
    "dropout", type=Finite(0, 1, max_open=True), default=0.3, help="Dropout probability at all sites."
)
threads_option = option(
    "threads",
    type=Threads(),
    default=str(processor.available_cores()),
    help="Thread counts to measure. 1,4: 1 and 4; 4: 1, 2, and 4; 4,: only 4.",
    show_default="up to all cores",
)
measurement = together(threads_option, runs_option, as_json)
model_options = together(
    dropout_option,
    choice("precision", "float32 bfloat16", "Precision of matrix products in tiedtools.", "float32"),
    steps_option,
    against("torch or torch-bf16"),
    measurement,
)
w2v_options = together(
    text_argument,
    words(100, 5_000_000),
    count("size", 300, "Dimension of the vectors."),
    count("window", 5, "Maximum distance between target and context word.", most=10**4),
    count("negative", 5, "Negative samples per target.", most=10**4),
    option("sample", type=Finite(0), default=1e-4, help="Subsampling threshold of frequent words; 0 disables."),
    option("min-count", type=click.IntRange(0), default=5, help="Discard words that occur less often than this."),
)
LSTMS = (
    "HIDDEN/EMB (hidden units per layer / embedding dimension), HIDDEN/EMB-tied, HIDDEN/EMB-linear (tied+L); morphs,"
    " syllables, or chars: Assylbekov & Takhanov's small models with all layers reused; awd, rhn: those of the presets"
    " awd-ptb and rhn-ptb; gru: 650/650-tied with GRU cells"
)
TRANSLATORS = (
    "HIDDEN/EMB (units of the encoder in each direction and of the decoder / embedding dimension), HIDDEN/EMB-decoder,"
    " or HIDDEN/EMB-all (tied)"
)
lm_options = together(
    count("vocabulary", 10_000, "Vocabulary size in words.", least=2, most=10**8),
    count("layers", 2, "Number of recurrent layers.", most=100),
    count("batch", 20, "Batch size (parallel streams)."),
    count("steps", 35, "Truncated-BPTT length in tokens."),
    model_options,
)


class Benchmarks(click.Group):
    """A command group that converts the library's errors to click's errors, with settings spelled as options."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except TiedtoolsError as error:
            kind = click.UsageError if isinstance(error, Contradiction) else click.ClickException
            raise kind(spelled(str(error), self.commands[ctx.invoked_subcommand])) from error


@click.group(cls=Benchmarks, context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]})
def cli():
    """Benchmark training and translation speed against hardware limits and other programs.

    Contenders run in turns; a row is a contender with a number of threads. `ours / its` is the speed of tiedtools
    divided by that of the other program. --json prints what `tiedtools plot speed` reads.
    """
    processor.check()
    processor.choose_processor()
    show_messages()


cli.add_command(history)


@cli.command(hidden=True)
@click.argument("function")
@click.argument("task")
def worker(function, task):
    """Answer the lines of standard input; see processes.worker."""
    from benchmarks.processes import serve

    module, name = function.split(":")
    serve(getattr(importlib.import_module(f"benchmarks.{module}"), name)(json.loads(task)))


def show(result, table, as_json):
    click.echo(json.dumps(result) if as_json else table(result), nl=as_json)


def train(kind, variants, threads, runs, windows, against, as_json, choices=None, **options):
    """Run the benchmark of the module `kind`; see training.py."""
    from benchmarks import training
    from benchmarks.machine import warn_if_busy
    from benchmarks.processes import refuse_missing_torch
    from tiedtools.runs.trainer import log_if_slow

    kind = importlib.import_module(f"benchmarks.{kind}")
    for name in variants:
        kind.shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing_torch(rivals, choices or training.RIVALS)
    warn_if_busy()
    log_if_slow(options["precision"])
    result = training.measure(kind, variants, options, rivals, threads, runs, windows)
    show(result, lambda result: training.table(kind, result), as_json)


@cli.command(short_help="LSTM language models, and PyTorch.")
@variants("200/200,600/300-linear,650/650", LSTMS)
@lm_options
def lstm(**options):
    """Measure LSTM training speed in tokens per second, and compare it with the hardware limit.

    The text is synthetic, with Zipf-distributed words, and always the same. A training step is that of `tiedtools
    lstm` on steps x batch tokens: forward pass, full softmax, backward pass, clipping, and SGD update. torch is the
    same model in PyTorch (nn.Embedding, nn.LSTM, nn.Linear, CrossEntropyLoss on logits, clip_grad_norm_; word vectors
    composed by nn.EmbeddingBag, nn.Linear, nn.Conv1d over the vocabulary, once per window), in float32;
    torch-bf16 uses bfloat16 autocast.

    Each program runs in a process for each number of threads. MB is the peak memory of the process; that of the first
    run includes compilation.

    The limit is the speed of a machine that computes only the required matrix products, at the best rate measured on
    this machine: cache-resident tiles or NumPy's float32 matrices, whichever is faster (docs/internals.md). A second
    table breaks down a training step.
    """
    train("lm", **options)


@cli.command(short_help="Language models with any cell, and PyTorch.")
@variants("650/650-tied,awd,gru,rhn", LSTMS)
@lm_options
def lm(**options):
    """Measure the training speed of language models in tokens per second, and compare it with the hardware limit.

    Like `lstm`, with other models by default. In PyTorch, awd is a dropped-out copy of the recurrent weights and its
    LSTM kernel for each layer, gru is nn.GRU, and rhn is a loop over steps and micro-steps of nn.Linear and elementwise
    operations; the rivals torch-compile and torch-compile-bf16 compile a step of it with torch.compile, which takes a
    minute. awd and rhn have masks fixed over time, and windows of --steps.
    """
    train("lm", **options)


@cli.command(short_help="Translation models, and PyTorch.")
@variants("256/128-all", TRANSLATORS)
@count("vocabulary", 10_000, "Vocabulary size of each side in words.", least=3, most=10**8)
@count("batch", 32, "Sentence pairs in a batch.")
@model_options
def nmt(**options):
    """Measure the training speed of translation models in words per second, source and target together.

    The sentences are synthetic, with the lengths of Multi30k and Zipf-distributed words, and always the same. A
    training step is that of `tiedtools nmt` on a batch: forward pass, full softmax, backward pass, clipping, and Adam.
    torch is the same model in PyTorch (nn.Embedding, nn.GRU with packed sequences, a loop of nn.GRUCell and attention,
    CrossEntropyLoss), in float32; torch-bf16 uses bfloat16 autocast. See `lstm` for the columns and the limit.
    """
    train("nmt", choices=["torch", "torch-bf16"], **options)


@cli.command(short_help="Beam search, and PyTorch.")
@variants("256/128-all", TRANSLATORS)
@count("vocabulary", 10_000, "Vocabulary size of each side in words.", least=3, most=10**8)
@count("sentences", 640, "Sentences per run.", most=10**6)
@count("batch", 64, "Sentences in a batch.", most=4096)
@count("beam", 5, "Beam size.", most=1000)
@count("length", 14, "End translations after N words.", metavar="N")
@against("torch")
@measurement
def translate(variants, threads, runs, against, as_json, **options):
    """Measure the speed of beam search in sentences per second.

    Models have random parameters, so nearly all translations have --length words. The sentences are synthetic, with
    the lengths of Multi30k, and always the same. torch is the same model in PyTorch, with the same search. Programs run
    in turn, in one process.
    """
    from benchmarks import nmt, translate
    from benchmarks.machine import warn_if_busy
    from benchmarks.processes import refuse_missing_torch

    for name in variants:
        nmt.shape(name)
    rivals = list(dict.fromkeys(against))
    refuse_missing_torch(rivals, ["torch"])
    warn_if_busy()
    show(translate.measure(variants, options, rivals, threads, runs), translate.table, as_json)


@cli.command(short_help="RNN language models, rnnlm, and faster-rnnlm.")
@text_argument
@variants(
    "100,100-sentences,100+20-sentences",
    "HIDDEN or HIDDEN+DOC (hidden units, dimension of document vectors), with or without -sentences and -defer",
)
@words(1000, 1_000_000)
@count("vocabulary", 10_000, "Vocabulary size of the synthetic text in words.", least=2, most=10**8)
@count("class", 100, "Number of word classes.", most=10**6, python_name="classes")
@count("bptt", 4, "BPTT steps, as in `tiedtools rnnlm`.", least=0, most=10**4)
@count("bptt-block", 10, "Words per block, as in `tiedtools rnnlm`.", most=10**4, python_name="block")
@against("rnnlm=PATH, faster-rnnlm=PATH, or faster-rnnlm-nce=PATH")
@measurement
def rnnlm(text, variants, words, vocabulary, threads, runs, against, as_json, **options):
    """Measure RNN training speed in words per second, and compare it with the hardware limit.

    TEXT is an uncompressed text file with one sentence per line. Without it, a synthetic text with Zipf-distributed
    words is used, always the same. A run is one epoch; only training is timed. Line ends count as words, as in the
    other programs.

    A variant uses BPTT over blocks of words, as Mikolov's rnnlm, or with -sentences over whole sentences from a learned
    initial state, as Rei's model. With -defer, output weights are updated at the end of a block or sentence.

    rnnlm is Mikolov's program with the same options, on one thread; it reports its speed in CPU time. faster-rnnlm is
    Yandex's program with hierarchical softmax; faster-rnnlm-nce uses 20 noise samples instead. Each runs as a separate
    process on the same text. They are compared with the first variant with the same hidden size and number of threads;
    rnnlm, with the first number of threads.

    The limit is the time per word that floating-point operations or memory traffic need at the peak rates measured on
    this machine, whichever is longer (docs/internals.md).
    """
    from benchmarks import rnnlm
    from benchmarks.machine import warn_if_busy
    from benchmarks.zipf import text_or_made
    from tiedtools.text.lmtext import LmText

    for name in variants:
        rnnlm.shape(name)
    rivals = rnnlm.programs(dict.fromkeys(against))
    warn_if_busy()
    with text_or_made(text, words, vocabulary) as (_, path):
        task = rnnlm.Task(path, LmText.read([path], valid_share=0), **options)
        result = rnnlm.measure(task, variants, rivals, threads, runs)
    show(result, rnnlm.table, as_json)


@cli.command(short_help="Word vectors, gensim, and word2vec.c.")
@w2v_options
@variants("cbow,cbow-signs,sg,sg-signs", "cbow, cbow-tied, cbow-signs, cbow-linear (tied+L), or sg instead of cbow")
@flag("exact", "Also measure each variant with --exact.")
@flag("deterministic", "Also measure each variant with --deterministic.")
@flag("float32", "Also measure each variant with --precision float32.")
@against("gensim or word2vec.c=PATH")
@flag("whole", "Measure whole processes, text file to vector file: seconds and peak memory.")
@measurement
def w2v(text, words, threads, runs, variants, against, whole, as_json, min_count, **options):
    """Measure word-vector training speed in words per second, and compare it with the hardware limit.

    TEXT is an uncompressed text file with one sentence per line. Without it, a synthetic text with Zipf-distributed
    words is used, always the same. Words are counted as in the other programs: in the vocabulary, without line ends,
    before subsampling. A run is one epoch.

    Only training is timed: tiedtools has read the text beforehand; gensim, with corpus_file, reads it while training
    but has counted its words; word2vec.c is timed from its first to its last progress line. Learning rates are .05 for
    CBOW and .025 for skip-gram (fixed signs: .2, .035). tiedtools computes in its default precision, which --json
    names, the others in float32.

    The limit is the time per center word that floating-point operations or memory traffic need at the peak rates
    measured on this machine, whichever is longer (docs/internals.md).
    """
    from benchmarks import w2v
    from benchmarks.machine import warn_if_busy
    from benchmarks.w2vcontenders import MODES, VARIANTS, Task, installed
    from benchmarks.zipf import text_or_made
    from tiedtools.text.encoding import encode

    if wrong := [name for name in variants if name not in VARIANTS]:
        raise click.UsageError(f"--variants: unknown variant {wrong[0]!r}; choose from {', '.join(VARIANTS)}")
    rivals = installed(against)
    warn_if_busy()
    modes = [mode for mode in MODES if options.pop(mode)]
    with text_or_made(text, words) as (folder, path):
        task = Task(path, encode([path], min_count), min_count, options)
        out = os.path.join(folder, "vectors") if whole else None
        result = w2v.measure(task, variants, modes, rivals, threads, runs, out)
    show(result, w2v.table, as_json)


@cli.command(short_help="Word vectors on several ranks under MPI.")
@w2v_options
@option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram.")
@flag("tie-signs", "Train vectors tied with fixed signs instead of untied ones.")
@count("epochs", 1, "Number of epochs.", most=10**4, also="iter")
@option(
    "ranks",
    type=Threads(),
    default="1,2,4",
    help="Numbers of ranks to measure. 1,4: 1 and 4; 4: 1, 2, and 4; 4,: only 4.",
)
@count("threads", 1, "Training threads of each rank.", most=1024)
@runs_option
@option("exchange-words", type=Finite(1), metavar="N", help="As in `tiedtools w2v`.  [default: as there]")
@choice("exchange-precision", "float32 bfloat16", "Precision of the changes that are exchanged.", "float32")
@option(
    "delay", type=Finite(0, 10**6), default=0, metavar="MS", help="Minimum duration of an exchange in milliseconds."
)
@as_json
def mpi(text, words, epochs, min_count, tie_signs, ranks, threads, runs, delay, as_json, **options):
    """Measure how the training speed of word vectors depends on the number of ranks, in words per second.

    Each run is a whole `mpiexec -n N tiedtools w2v` on this machine; words per second count training only, without
    start-up, counting, and writing. TEXT and the counting of words are as for `w2v`. For comparison, one process
    without MPI is measured with one thread and with as many threads as all ranks have, up to the number of cores. All
    take turns.

    \b
    x process     ratio to the process with as many threads, up to the number of cores
    MB exchanged  changes that all ranks have sent into sums, without the repetitions of MPI's algorithm
    waiting       share of the training time that ranks wait for exchanges and for each other, on average

    --delay simulates a slow network. See docs/mpi.md.
    """
    from benchmarks import mpi
    from benchmarks.machine import warn_if_busy
    from benchmarks.zipf import text_or_made

    mpi.launcher()
    warn_if_busy()
    exchange = {f"exchange-{name}": options.pop(f"exchange_{name}") for name in ("words", "precision")}
    options |= {"min-count": min_count, "iter": epochs}
    with text_or_made(text, words) as (folder, path):
        log = os.path.join(folder, "log")
        result = mpi.measure(path, options, tie_signs, ranks, threads, runs, exchange, log, delay)
    show(result, mpi.table, as_json)


@cli.command(short_help="Predicted speed of word vectors on many machines.")
@option("words", type=Finite(1), default=1e10, help="Words of the run, all epochs together.")
@click.argument("settings", nargs=-1, metavar="[NAME=VALUE]...")
def predict(words, settings):
    """Predict the speed of `tiedtools w2v` on many machines, one rank each, from the speed of one; see docs/mpi.md.

    Settings describe the machine and the model, such as words_per_s=2e6 cores=8; the class Setup in mpiprediction.py
    lists them.
    """
    from benchmarks.mpiprediction import Setup, table

    click.echo("\n".join(table(Setup.of(settings), words)))
