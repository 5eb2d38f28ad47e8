"""What the commands that train a language model share: texts, outputs, and a run that can be stopped and resumed."""

import click

from tiedtools import digests, fit
from tiedtools.cli.options import given
from tiedtools.cli.record import Record
from tiedtools.cli.runs import begin_log, go, open_log, resumed
from tiedtools.fit import Fit, evaluate
from tiedtools.lmtext import LmText
from tiedtools.output import Outputs
from tiedtools.report import LmReport, perplexity

READING = "valid", "test", "valid_share", "min_count", "max_vocab", "read_vocab", "errors"


def vector_writer(model, write, binary):
    """The function that writes a model's vectors to a binary file."""
    vectors = model.vectors(write)
    return vectors.write_binary if binary else vectors.write_text


WRITERS = {
    "save_model": lambda model, options: model.save,
    "output": lambda model, options: vector_writer(model, options["write"], options["binary"]),
}


def train(
    ctx,
    texts,
    training,
    make,
    memory,
    ways,
    talk,
    report=LmReport,
    reading=None,
    inputs=(),
    files=(),
    writers=WRITERS,
    begin=lambda run, resumed: None,
    between=None,
    samples=0,
    origin=None,
):
    """Train a language model as a command's options say, of which those of options.py must be there.

    texts     paths; none: standard input
    training  a Training
    make      LmText -> model
    memory    LmText -> bytes that the model and what is made of it will take; ways: to make it less, in words
    talk      is told what else may be of interest, line by line
    report    of (verbosity, log): an LmReport
    reading   arguments of LmText.read, before the options of that name
    inputs, files  other paths that are read, and written
    writers   option of an output -> function of the model and the options that gives a function of a binary file.
              Every output is opened before hours of training, not after
    begin     called with the Fit before it goes, and whether it is resumed from a checkpoint
    between   as for fit
    samples   of dropout masks, to test with
    origin    path of the model file that training goes on from, if it does

    Returns the model. Raises KeyboardInterrupt or Diverged when all that there is has been written.
    """
    options = ctx.params
    if options["valid"] is not None and "valid_share" in given(ctx):
        raise click.UsageError("-valid and --valid-share are two ways to validate: choose one")
    texts, reading = texts or ["-"], {**{name: options[name] for name in READING}, **(reading or {})}
    inputs = [
        *texts,
        *inputs,
        *(path for name in ("valid", "test", "read_vocab") if (path := reading[name]) is not None),
    ]
    paths = {name: options[name] for name in ("save_vocab", *writers)}
    record = Record(ctx, paths)
    paths |= record.paths
    there = resumed(options, [*paths.values(), *files], inputs)
    with Outputs(paths) as outputs, record(outputs), open_log(options["log_json"]) as log:
        text = LmText.read(texts, talk=talk, **reading)
        if "save_vocab" in outputs:
            outputs.write("save_vocab", text.vocab.write)
        sizes = {"train": text.train, "valid": text.valid, "test": text.test}
        sizes = {name: ids.size for name, ids in sizes.items() if ids is not None}
        told = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        talk(f"text: {told} tokens with line ends; vocabulary of {len(text.vocab):,} words")
        record.check_memory(memory(text) + fit.memory(text.valid, text.test), ways, talk)
        model = make(text)
        record.model(model, training, tokens=sizes, words=len(text.vocab), parameters=model.params.count, resumed=there)
        if origin is not None and not there:
            record.figures["origin"] = dict(path=origin, **digests.of_file(origin))
        run = Fit(model, text.train, text.valid, training, options["checkpoint"], resume=there, between=between)
        if there:
            talk(f"resumed: epoch {run.epoch + 1}, {run.window:,} of its {run.feed.steps:,} steps done")
        begin(run, there)
        begin_log(log)
        report = report(options["debug"], log)
        stopped = go(run, report, record)
        if stopped and not run.worthwhile:
            raise stopped
        for name, writer in writers.items():
            if name in outputs:
                outputs.write(name, writer(model, options))
        if stopped:
            raise stopped
        test_ppl = None
        if text.test is not None:
            test_ppl = perplexity(-float(evaluate(model, text.test, 1, samples=samples).mean()))
            record.figures["test_ppl"] = test_ppl
            talk(f"test ppl {test_ppl:.2f}, {text.test.size:,} tokens, with the model of epoch {run.best_epoch}")
        seconds = round(run.elapsed, 3)
        report.write(best_epoch=run.best_epoch, test_ppl=test_ppl, params=model.params.count, seconds=seconds)
    return model
