"""Options that several commands share."""

import functools
import re

import click

from tiedtools.cores import available_cores
from tiedtools.files.output import split_compression


class Option(click.Option):
    """An option that answers to `-name`, as word2vec.c's do, and to `--name`, which is what help and messages show."""

    def __init__(self, names=None, **attributes):
        super().__init__(names, **attributes)
        for forms in self.opts, self.secondary_opts:
            forms[:] = [form for name in forms for form in (name, *[name[1:]] * name.startswith("--"))]

    def get_help_record(self, ctx):
        if record := super().get_help_record(ctx):
            return re.sub(r"(?<![\w-])-\w[\w-]*, ", "", record[0]), record[1]

    def get_error_hint(self, ctx):
        return f"'{self.opts[0]}'"


def option(name, python_name=None, also="", **attributes):
    """A click option.

    name         without dashes; of a flag perhaps "name/--no-name"
    python_name  of the command's parameter; None: `name`
    also         synonyms: the names of other programs and of earlier versions, between blanks
    """
    attributes.setdefault("show_default", True)
    names = ["-" * min(len(name), 2) + name for name in (name, *also.split())]
    return click.option(*names, *[python_name] * (python_name is not None), cls=Option, **attributes)


def given(ctx):
    """Names of the options on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}


def as_given(ctx):
    """dict: name of a parameter of the command -> the option as one would give it, or the argument's name."""
    return {parameter.name: parameter.opts[0] for parameter in ctx.command.params}


def precision_option(help, default="float32"):
    return option("precision", type=click.Choice(["float32", "bfloat16"]), default=default, help=help)


def flag(name, help):
    return option(name, is_flag=True, help=help, show_default=False)


def json_option(help):
    """The flag `as_json`."""
    return option("json", "as_json", is_flag=True, help=help, show_default=False)


class Finite(click.FloatRange):
    """A float in a range that float32 can compute with; click's own lets nan and inf through."""

    def convert(self, value, param, ctx):
        value = super().convert(value, param, ctx)
        if value and not 1e-30 <= abs(value) <= 1e30:
            self.fail(f"{value} is no finite number of a size to compute with, 1e-30 to 1e30.", param, ctx)
        return value


def together(*decorators):
    """One decorator that adds several options, in the order in which they stand."""
    return lambda function: functools.reduce(lambda decorated, add: add(decorated), reversed(decorators), function)


errors_option = option(
    "errors",
    type=click.Choice(["strict", "replace", "ignore"]),
    default="strict",
    help="Bytes that are no UTF-8: refuse the file, put U+FFFD, or drop them.",
)

# vectors.FORMATS, for a help without NumPy
VECTOR_FORMATS = click.Choice(["text", "binary", "glove", "npy", "safetensors", "tsv"])
format_option = option("format", type=VECTOR_FORMATS, help="Format of the vectors, else detected.")
binary_option = option("binary", type=click.IntRange(0, 1), default=0, help="1: write word2vec's binary format.")

# Of the commands that score vectors on test sets.
data_option = option(
    "data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder of named sets, tried before TIEDTOOLS_DATA and the downloads.",
)
case_option = option(
    "case",
    type=click.Choice(["as-is", "lower", "fallback"]),
    default="fallback",
    help="Look a word up as it is written, lower-cased, or as written and then lower-cased.",
)

texts_argument = click.argument("texts", nargs=-1, metavar="[TEXT]...")
# Where the text of words and their counts comes from, and which of its words count.
TEXT_OPTIONS = [
    option("train", multiple=True, metavar="TEXT", help="Another text; as a bare TEXT."),
    option("min-count", type=click.IntRange(0), default=5, help="Drop words seen less often."),
    option("max-vocab", type=click.IntRange(2), help="Keep N words, `</s>` included.", metavar="N"),
    errors_option,
]
VOCABULARY_FILES = [
    option("read-vocab", metavar="FILE", help="Take the vocabulary from FILE instead of counting TEXT."),
    option("save-vocab", metavar="FILE", help="Write the vocabulary, `word count` a line."),
]

PROBABILITY = Finite(0, 1, max_open=True)

# Of the commands that train a language model; see lmtrainer.py.
LM_TEXT = {
    "Text": [
        option("train", multiple=True, metavar="TEXT", help="Another text to train on; as a bare TEXT."),
        option("valid", metavar="TEXT", help="Text that chooses the best epoch and steers the learning rate."),
        option("test", metavar="TEXT", help="Text to measure the best epoch's perplexity on."),
        option("valid-share", type=PROBABILITY, default=0.1, help="Without -valid: this last part, by lines; 0: none."),
        option("min-count", type=click.IntRange(0), default=1, help="Words seen less often become `<unk>`."),
        option("max-vocab", type=click.IntRange(3), metavar="N", help="Keep N words, `</s>` and `<unk>` included."),
        *VOCABULARY_FILES,
        errors_option,
    ],
}
output_option = option("output", default="-", help="File for the vectors; - is standard output.")
write_option = option(
    "write",
    type=click.Choice(["in", "out", "sum", "concat"]),
    default="in",
    help="Which vectors: input, output, their sum, or side by side.",
)
debug_option = option("debug", type=click.IntRange(0), default=2, help="0: quiet; 1: a line an epoch; 2: progress.")
threads_option = option("threads", type=click.IntRange(1, 1024), help="Threads to train with.  [default: all cores]")
seed_option = option("seed", type=click.IntRange(0, 2**32 - 1), default=1, help="Of all random choices.")
RECORD = [
    option("manifest", metavar="FILE", help="Write how the outputs came to be to FILE, too; see `tiedtools rerun`."),
    flag("no-manifest", "Write no .run.json beside the outputs of a run that finishes."),
    flag("no-memory-check", "Train even where memory will not do."),
]
RUN_FILES = [
    option("save-model", metavar="FILE", help="Write all parameters, vocabulary and options as .npz."),
    option("checkpoint", metavar="FILE", help="Write the run to FILE at each epoch's end and when it is stopped."),
    option("checkpoint-minutes", type=Finite(0), default=10.0, help="And after so many minutes; 0: not."),
    flag("resume", "Go on from the checkpoint if there is one; otherwise begin."),
    option("log-json", metavar="FILE", help="Write the figures of each epoch, one JSON object a line."),
    *RECORD,
]


def tying(tie, tie_linear):
    """The models' name for what --tie and --tie-linear say."""
    if tie and tie_linear:
        raise click.UsageError("--tie and --tie-linear are two models: choose one")
    return "linear" if tie_linear else "tied" if tie else "untied"


def from_options(kind, options):
    """A dataclass `kind`, its fields as the options (a dict) have them, where they do."""
    import dataclasses

    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind) if field.name in options})


def as_options(values):
    """Options as one would give them."""
    names = {"dropout": "dropout-kind", "emb": "size"}
    number = lambda value: f"{value:g}" if isinstance(value, float) else value
    return " ".join(f"--{names.get(name, name).replace('_', '-')} {number(value)}" for name, value in values.items())


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


def listed(ctx, parameter, value):
    """The callback of an option for names between commas."""
    return list(dict.fromkeys(name.strip() for name in value.split(",")))


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
