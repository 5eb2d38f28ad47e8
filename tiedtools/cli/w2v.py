"""`tiedtools w2v`"""

import click

from tiedtools.cli.options import (
    RUN_FILES,
    VOCABULARY_FILES,
    Finite,
    binary_option,
    debug_option,
    from_options,
    option,
    output_option,
    seed_option,
    sharing,
    text_options,
    threads_option,
    together,
)
from tiedtools.cores import available_cores


@click.command("w2v", short_help="Train word vectors: CBOW or skip-gram.")
@text_options
@output_option
@option("size", type=click.IntRange(1, 10**5), default=100, help="Width of the vectors.")
@option("window", type=click.IntRange(1, 10**4), default=5, help="Greatest distance of a context word.")
@option("sample", type=Finite(0), default=1e-3, help="Subsample words more frequent than this; 0: none.")
@option("hs", type=click.IntRange(0, 1), default=0, help="1: hierarchical softmax (untied only).")
@option("negative", type=click.IntRange(0, 10**4), default=5, help="Negative samples for each target; 0: none.")
@threads_option
@option("iter", type=click.IntRange(1, 10**4), default=5, help="Epochs.")
@option("alpha", type=Finite(0, 10**4, min_open=True), help="Starting learning rate.  [default: .05; skip-gram .025]")
@option("cbow", type=click.IntRange(0, 1), default=1, help="1: CBOW; 0: skip-gram.")
@option("classes", type=click.IntRange(0, 10**6), default=0, help="Write this many word classes instead of vectors.")
@binary_option
@debug_option
@together(*VOCABULARY_FILES)
@click.option("--tie", is_flag=True, help="One matrix for input and output vectors.")
@click.option("--tie-linear", is_flag=True, help="One matrix, and a map L between them (Gulordava et al. 2018).")
@click.option("--lr-linear", type=Finite(0), help="L's learning rate / alpha.  [default: .005; skip-gram .003]")
@click.option(
    "--init-linear",
    type=click.Choice(["identity", "orthogonal", "uniform"]),
    default="identity",
    show_default=True,
    help="L's start.",
)
@click.option(
    "--init-range",
    type=Finite(0, min_open=True),
    default=0.05,
    show_default=True,
    help="Vectors start uniform within +- this (word2vec.c: .5 / size).",
)
@click.option(
    "--cbow-grad",
    type=click.Choice(["ctool", "exact"]),
    default="ctool",
    show_default=True,
    help="CBOW: context words get the whole gradient (word2vec.c) or their share of it.",
)
@click.option(
    "--skip-input/--allow-input", default=None, help="Never predict a word from itself.  [default: only if tied]"
)
@click.option("--exact", is_flag=True, help="Negatives of its own for each target, as in word2vec.c; slower.")
@click.option(
    "--batch",
    type=(click.IntRange(1, 2**10), click.IntRange(4, 2**12), click.IntRange(4, 2**16)),
    metavar="RUNS CENTRES NEGATIVES",
    help="How many centres share how many negatives.  [default: by model; see docs/methods.md]",
)
@click.option(
    "--deterministic", is_flag=True, help="The same bytes from the same command, also with several threads; slower."
)
@option(
    "write",
    type=click.Choice(["in", "out", "sum", "concat"]),
    help="Which vectors: input, output, their sum, or side by side.  [default: in; skip-gram with --tie-linear: sum]",
)
@together(*RUN_FILES)
@seed_option
def command(texts, train, min_count, max_vocab, errors, tie, tie_linear, hs, cbow, threads, **options):
    """Train word vectors on TEXT: CBOW or skip-gram, with separate, tied, or tied+L input and output vectors.

    TEXT is a file, plain or compressed (.gz .bz2 .xz .zst), or - for standard input, also without any: words
    between white space, a sentence a line. All of word2vec.c's options work as they do there, with one dash or two.

    With --threads 1 the same seed gives the same bytes; with more, threads race and results differ slightly, unless
    --deterministic has them wait for each other.
    Ctrl-C stops the training, writes what there is and exits with status 130. With --checkpoint FILE --resume the same
    command goes on where it stopped, with --threads 1 or --deterministic to the very bytes; it may be repeated until it
    is done.
    """
    from tiedtools.cli.record import Record, copied
    from tiedtools.cli.runs import SHARING, begin_log, described, go, open_log, resumed
    from tiedtools.encoding import encode
    from tiedtools.models.word2vec import Config, Word2Vec
    from tiedtools.models.word2vecrun import Run
    from tiedtools.output import Outputs
    from tiedtools.report import Report, compiling, say
    from tiedtools.vocab import Vocab

    settings = dict(options, hs=bool(hs), cbow=bool(cbow), threads=threads or available_cores())
    config = from_options(Config, dict(settings, sharing=sharing(tie, tie_linear)))
    options["write"] = options["write"] or ("sum" if tie_linear and not cbow else "in")
    if options["write"] != "in" and not options["negative"]:
        raise click.UsageError("hierarchical softmax has no output word vectors: use --write in")
    talk = say if options["debug"] else lambda message: None
    texts, read_vocab = [*texts, *train] or ["-"], options["read_vocab"]

    # Every output is opened before hours of training, not after.
    paths = {name: options[name] for name in ("save_vocab", "save_model", "output")}
    record = Record(click.get_current_context(), paths)
    paths |= record.paths
    there = resumed(options, paths.values(), texts if read_vocab is None else [*texts, read_vocab])
    with Outputs(paths) as outputs, record(outputs), open_log(options["log_json"]) as log:
        vocab = Vocab.read(read_vocab, min_count, max_vocab) if read_vocab is not None else None
        text = encode(texts, min_count, max_vocab, vocab, errors)
        vocab = text.vocab
        if "save_vocab" in outputs:
            outputs.write("save_vocab", vocab.write)
        talk(
            f"text: {text.tokens_read:,} tokens with line ends, {text.size:,} of them in the vocabulary of"
            f" {len(vocab):,} words ({4 * text.size / 1e6:,.0f} MB of ids)"
        )
        with compiling(options["debug"]):
            Word2Vec.rehearse(config)
        coming = Word2Vec.memory(vocab, config) + copied(options["write"], len(vocab), options["size"])
        record.check_memory(coming, "lower -size, or the vocabulary by -min-count or --max-vocab, or use --tie", talk)
        model = Word2Vec(vocab, config)
        record.model(
            model,
            tokens=dict(train=text.tokens_read, in_vocabulary=text.size),
            words=len(vocab),
            parameters=model.n_params,
            resumed=there,
        )
        kind = f"{'CBOW' if cbow else 'skip-gram'}, {SHARING[config.sharing]}"
        talk(described(kind, model.n_params, config))
        run = Run(model, text, options["checkpoint"], options["checkpoint_minutes"], there)
        if there:
            talk(f"resumed: {run.next:,} of {run.jobs:,} pieces of text done, of all epochs")
        begin_log(log)
        report = Report(run.total, options["debug"], log, run.done, run.elapsed)
        stopped = go(run, report, record)
        if stopped and not run.done:
            raise stopped
        if "save_model" in outputs:
            outputs.write("save_model", model.save)
        outputs.write("output", lambda file: write_vectors(file, model, **options))
        report.write(params=model.n_params, seconds=round(report.seconds, 3))
        if stopped:
            raise stopped


def write_vectors(file, model, write, binary, classes, **_):
    from tiedtools.kmeans import spherical_kmeans

    vectors = model.vectors(write)
    if classes:
        assigned = spherical_kmeans(vectors.matrix, min(classes, len(vectors)))
        file.writelines(f"{word} {k}\n".encode() for word, k in zip(vectors.words, assigned))
    elif binary:
        vectors.write_binary(file)
    else:
        vectors.write_text(file)
