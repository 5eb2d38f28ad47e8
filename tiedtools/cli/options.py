"""Options, option types, and decorators shared by several commands."""

import functools
import re

import click

from tiedtools.vectors.formats import FORMATS


class Option(click.Option):
    """An option accepted as both `-name` (as in word2vec.c) and `--name`; help and messages show `--name`."""

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
    """Return a click option decorator.

    name         option name without dashes; a flag may be "name/--no-name"
    python_name  name of the command's parameter; None: derived from `name`
    also         synonyms, separated by spaces: names used by other programs and earlier versions
    """
    attributes.setdefault("show_default", True)
    names = ["-" * min(len(name), 2) + name for name in (name, *also.split())]
    return click.option(*names, *[python_name] * (python_name is not None), cls=Option, **attributes)


def given(ctx):
    """Return the names of the parameters given on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}


def as_given(ctx):
    """Return a dict: parameter name -> option as typed, or the argument's name."""
    return {parameter.name: parameter.opts[0] for parameter in ctx.command.params}


def precision_option(help, default="float32"):
    return option("precision", type=click.Choice(["float32", "bfloat16"]), default=default, help=help)


def flag(name, help):
    return option(name, is_flag=True, help=help, show_default=False)


def json_option(help):
    """Return the `--json` flag; its parameter is `as_json`."""
    return option("json", "as_json", is_flag=True, help=help, show_default=False)


class Finite(click.FloatRange):
    """A float range that rejects nan, infinities, and magnitudes outside float32's safe range."""

    def convert(self, value, param, ctx):
        value = super().convert(value, param, ctx)
        if value and not 1e-30 <= abs(value) <= 1e30:
            self.fail(f"{value} must be finite, with magnitude 1e-30 to 1e30.", param, ctx)
        return value


def together(*decorators):
    """Combine option decorators into one, preserving their order."""
    return lambda function: functools.reduce(lambda decorated, add: add(decorated), reversed(decorators), function)


errors_option = option(
    "errors",
    type=click.Choice(["strict", "replace", "ignore"]),
    default="strict",
    help="Invalid UTF-8: reject the file, replace with U+FFFD, or skip.",
)

VECTOR_FORMATS = click.Choice(list(FORMATS))
format_option = option("format", type=VECTOR_FORMATS, help="Format of the vectors.  [default: detected]")
skip_bad_option = flag("skip-bad", "Skip lines and rows of vectors that cannot be read; report their number on stderr.")
reading_options = together(format_option, errors_option, skip_bad_option)
binary_option = option(
    "binary", type=click.IntRange(0, 1), default=0, help="1: write word2vec's binary format; 0: text."
)

# Options of the commands that evaluate vectors on test sets.
data_option = option(
    "data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with named data sets, searched before $TIEDTOOLS_DATA and the downloads.",
)
case_option = option(
    "case",
    type=click.Choice(["as-is", "lower", "fallback"]),
    default="fallback",
    help="Look up words as written, lowercased, or as written with a lowercase fallback.",
)


def with_cache(ctx, parameter, value):
    """Option callback: require --cache, which is parsed first."""
    source = ctx.get_parameter_source(parameter.name)
    if source is click.core.ParameterSource.COMMANDLINE and not ctx.params.get("cache"):
        raise click.UsageError(f"{parameter.opts[0]} requires --cache N")
    return value


# A continuous cache, for the commands that score with a language model; defaults as in evaluation/neuralcache.py.
cache_options = together(
    option(
        "cache",
        type=click.IntRange(0),
        default=0,
        is_eager=True,
        metavar="N",
        help="Interpolate the model with a continuous cache of the last N words (Grave et al.); 0: no cache.",
    ),
    option(
        "cache-theta",
        type=Finite(0, 1000),
        default=1.0,
        callback=with_cache,
        help="With --cache, factor of the scores of the cache: the greater, the more similar the contexts it repeats.",
    ),
    option(
        "cache-lambda",
        type=Finite(0, 1, min_open=True, max_open=True),
        default=0.1,
        callback=with_cache,
        help="With --cache, weight of the cache's probabilities. Tune both on a validation text.",
    ),
)

texts_argument = click.argument("texts", nargs=-1, metavar="[TEXT]...")
# Training text and vocabulary selection.
TEXT_OPTIONS = [
    option("train", multiple=True, metavar="TEXT", help="Additional text, same as the TEXT argument; repeatable."),
    option("min-count", type=click.IntRange(0), default=5, help="Discard words that occur less often than this."),
    option(
        "max-vocab",
        type=click.IntRange(2),
        metavar="N",
        help="Keep only the most frequent words: N at most, including `</s>`.  [default: no limit]",
    ),
    errors_option,
]
VOCABULARY_FILES = [
    option("read-vocab", metavar="FILE", help="Read the vocabulary from FILE instead of counting words in TEXT."),
    option("save-vocab", metavar="FILE", help="Write the vocabulary to FILE, one `word count` per line."),
]

PROBABILITY = Finite(0, 1, max_open=True)

# Text options of the commands that train a language model; see lmtrainer.py.
LM_TEXT = {
    "Text": [
        option(
            "train",
            multiple=True,
            metavar="TEXT",
            help="Additional training text, same as the TEXT argument; repeatable.",
        ),
        option(
            "valid",
            metavar="TEXT",
            help="Validation text for model selection and learning-rate decay.  [default: see --valid-share]",
        ),
        option("test", metavar="TEXT", help="Test text; its perplexity is reported after training."),
        option(
            "valid-share",
            type=PROBABILITY,
            default=0.1,
            help="Without --valid, proportion of the lines held out for validation, from the end of TEXT; 0 disables.",
        ),
        option(
            "min-count",
            type=click.IntRange(0),
            default=1,
            help="Replace words that occur less often than this with `<unk>`.",
        ),
        option(
            "max-vocab",
            type=click.IntRange(3),
            metavar="N",
            help="Keep only the most frequent words: N at most, including `</s>` and `<unk>`.  [default: no limit]",
        ),
        *VOCABULARY_FILES,
        errors_option,
    ],
}
output_option = option("output", default="-", help="Output file for the vectors; - is standard output.")


def write_option(*more, help="Vectors to write: input, output, their sum, or their concatenation."):
    return option("write", type=click.Choice([*more, "in", "out", "sum", "concat"]), default="in", help=help)


debug_option = option(
    "debug", type=click.IntRange(0), default=2, help="Verbosity. 0: quiet; 1: one line per epoch; 2: progress."
)
threads_option = option(
    "threads", type=click.IntRange(1, 1024), help="Number of training threads.  [default: all cores]"
)
seed_option = option("seed", type=click.IntRange(0, 2**32 - 1), default=1, help="Random seed.")
RECORD = [
    option(
        "manifest",
        metavar="FILE",
        help="Also write the run's manifest (command, inputs, environment) to FILE; see `tiedtools rerun`.",
    ),
    flag("no-manifest", "Do not write a .run.json manifest next to the vectors or the model."),
    flag("no-memory-check", "Train even if memory looks insufficient."),
]
RUN_FILES = [
    option(
        "save-model",
        metavar="FILE",
        help="Write the model (parameters, vocabulary, and options) to FILE in .npz format.",
    ),
    option("checkpoint", metavar="FILE", help="Write a checkpoint to FILE after each epoch and on interruption."),
    option("checkpoint-minutes", type=Finite(0), default=10.0, help="Also checkpoint every N minutes; 0 disables."),
    flag("resume", "Resume from the file of --checkpoint if it exists; otherwise start from scratch."),
    option("log-json", metavar="FILE", help="Write the metrics of each epoch to FILE, one JSON object per line."),
    *RECORD,
]


def as_options(values):
    """Format options as they are typed on the command line."""
    number = lambda value: f"{value:g}" if isinstance(value, float) else value
    typed = {("tying", "tied"): "--tie", ("tying", "linear"): "--tie-linear", ("tying", "untied"): "--no-tie"}
    option = lambda name: f"--{name.replace('_', '-')}"
    switch = lambda name, value: option(name) if value else option(f"no_{name}")
    return " ".join(
        switch(name, value) if isinstance(value, bool) else typed.get((name, value), f"{option(name)} {number(value)}")
        for name, value in values.items()
    )


class SectionedCommand(click.Command):
    """A command whose help groups its options under the section titles set by `sections`."""

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
    """Return a decorator that adds options grouped by section; `options`: title -> list of option decorators."""

    def decorate(function):
        for title, decorators in reversed(options.items()):
            for add in reversed(decorators):
                function = add(function)
                function.__click_params__[-1].section = title
        return function

    return decorate
