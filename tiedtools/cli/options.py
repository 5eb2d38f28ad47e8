"""Options that several commands share."""

import math

import click

from tiedtools.cores import available_cores
from tiedtools.output import split_compression


def option(name, *args, **kwargs):
    """A click option that answers to word2vec's `-name` and to `--name`."""
    kwargs.setdefault("show_default", True)
    return click.option(f"-{name}", f"--{name}", *args, **kwargs)


def given(ctx):
    """Names of the options on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}


def flag(name, help):
    return option(name, is_flag=True, help=help, show_default=False)


class Finite(click.FloatRange):
    """A float in a range; click's own lets nan and inf through."""

    def convert(self, value, param, ctx):
        value = super().convert(value, param, ctx)
        if not math.isfinite(value):
            self.fail(f"{value} is no finite number.", param, ctx)
        return value


def errors_option(command):
    return click.option(
        "--errors",
        type=click.Choice(["strict", "replace", "ignore"]),
        default="strict",
        show_default=True,
        help="Bytes that are no UTF-8: refuse the file, put U+FFFD, or drop them.",
    )(command)


# vectors.FORMATS, for a help without NumPy
VECTOR_FORMATS = click.Choice(["text", "binary", "glove", "npy", "safetensors", "tsv"])


def format_option(command):
    return option("format", type=VECTOR_FORMATS, help="Format of the vectors, else detected.")(command)


def text_options(command):
    """Where the text comes from, and which of its words count."""
    for decorate in reversed(
        [
            click.argument("texts", nargs=-1, metavar="[TEXT]..."),
            option("train", multiple=True, metavar="TEXT", help="Another text; as a bare TEXT."),
            option("min-count", type=click.IntRange(0), default=5, help="Drop words seen less often."),
            click.option("--max-vocab", type=click.IntRange(2), help="Keep N words, `</s>` included.", metavar="N"),
            errors_option,
        ]
    ):
        command = decorate(command)
    return command


PROBABILITY = Finite(0, 1, max_open=True)

# Of the commands that train a language model; see training.py.
LM_TEXT = {
    "Text": [
        option("train", multiple=True, metavar="TEXT", help="Another text to train on; as a bare TEXT."),
        option("valid", metavar="TEXT", help="Text that chooses the best epoch and steers the learning rate."),
        option("test", metavar="TEXT", help="Text to measure the best epoch's perplexity on."),
        option("valid-share", type=PROBABILITY, default=0.1, help="Without -valid: this last part, by lines; 0: none."),
        option("min-count", type=click.IntRange(0), default=1, help="Words seen less often become `<unk>`."),
        option("max-vocab", type=click.IntRange(3), metavar="N", help="Keep N words with `</s>` and `<unk>`."),
        option("read-vocab", metavar="FILE", help="Take the vocabulary from FILE instead of counting TEXT."),
        option("save-vocab", metavar="FILE", help="Write the vocabulary, `word count` a line."),
        errors_option,
    ],
}
VECTORS = [
    option("output", default="-", help="File for the vectors; - is standard output."),
    option(
        "write",
        type=click.Choice(["in", "out", "sum", "concat"]),
        default="in",
        help="Which vectors: input, output, their sum, or side by side.",
    ),
]
RECORD = [
    option("manifest", metavar="FILE", help="Write how the outputs came to be to FILE, too; see `tiedtools rerun`."),
    flag("no-manifest", "Write no .run.json beside the outputs."),
    flag("no-memory-check", "Train even where memory will not do."),
]
RUN_FILES = [
    option("save-model", metavar="FILE", help="Write all parameters, vocabulary and options as .npz."),
    option("checkpoint", metavar="FILE", help="Write the run to FILE at each epoch's end and when it is stopped."),
    option("checkpoint-minutes", type=Finite(0), default=10.0, help="And so often; 0: no more than that."),
    flag("resume", "Go on from the checkpoint if there is one; otherwise begin."),
    option("log-json", metavar="FILE", help="Write the figures of each epoch, one JSON object a line."),
    *RECORD,
]


def run_files(command):
    for add in reversed(RUN_FILES):
        command = add(command)
    return command


class Threads(click.ParamType):
    """`1,2,4` is a list; `4` a maximum, to which one thread is doubled."""

    name = "N[,N]..."
    help = "1,4: 1 and 4; 4: 1, 2 and 4; 4,: only 4.  [default: to all cores]"

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

    @classmethod
    def up_to_all(cls):
        return cls().convert(str(available_cores()), None, None)


def plain(ctx, parameter, path):
    """The callback of a TEXT that other programs read, too."""
    if path == "-" or path and split_compression(path)[1]:
        raise click.UsageError(f"{path}: not all contenders can read it; give a plain text file")
    return path


class SectionedCommand(click.Command):
    """A command whose help shows its options in the sections that `sections` made."""

    def format_options(self, ctx, formatter):
        titles = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                record = parameter.get_help_record(ctx)
                titles.setdefault(getattr(parameter, "section", "Help"), []).append(record)
        for title, records in titles.items():
            with formatter.section(title):
                formatter.write_dl(records)


def sections(options):
    """Decorate a function with click options: title -> list of decorators."""

    def decorate(function):
        for title, decorators in reversed(options.items()):
            for add in reversed(decorators):
                function = add(function)
                function.__click_params__[-1].section = title
        return function

    return decorate
