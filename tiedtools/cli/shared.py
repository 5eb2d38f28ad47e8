"""Options and arguments of several commands."""

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.settings import Files, LmReading, Reading
from tiedtools.cli.options import Finite, choice, file_option, flag, integer, option, options_of, text_option, together
from tiedtools.network.config import Computation
from tiedtools.text.sources import shown
from tiedtools.vectors.formats import FORMATS

(errors_option,) = options_of(Reading, "errors")
field_option, tokenize_option, phrases_option = options_of(
    Reading, "field", "tokenize", "phrases",
    tokenize=dict(help="Split TEXT into words as `--tokenize` does in training; words: TEXT is words already. "
                  " [default: as the training text of MODEL]"),
    phrases=dict(help="Join the phrases in LIST, as `--phrases` does in training; none: join no phrases.  [default: as"
                 " in the training text of MODEL]"),
)  # fmt: skip
split_options = together(tokenize_option, phrases_option, errors_option)  # for texts that a trained model reads
raw_options = together(field_option, split_options)
(seed_option,) = options_of(Computation, "seed")

VECTOR_FORMATS = click.Choice(list(FORMATS))
FORMAT_HELP = "Format of vector files; model files are always recognized.  [default: detected]"
format_option = option("format", type=VECTOR_FORMATS, help=FORMAT_HELP)
skip_bad_option = flag("skip-bad", "Skip lines and rows of vectors that cannot be read; report their number on stderr.")
reading_options = together(format_option, errors_option, skip_bad_option)

DATA = "Folder with named data sets, searched before $TIEDTOOLS_DATA and the downloads."
CASE = "Look up words as written, lowercased, or as written with a lowercase fallback."
data_option = option("data", type=click.Path(exists=True, file_okay=False), help=DATA)
case_option = choice("case", "as-is lower fallback", CASE, "fallback")


@contextlib.contextmanager
def explained(*paths: str, remedy: str = "") -> Iterator[None]:
    """Add the paths of inputs, or a remedy, to the message of a TiedtoolsError that the block raises."""
    try:
        yield
    except TiedtoolsError as error:
        error.args = (": ".join([*[shown(*paths)] * bool(paths), str(error)]) + remedy,)
        raise


def with_cache(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Option callback: require --cache, which is parsed first."""
    source = ctx.get_parameter_source(parameter.name)
    if source is click.core.ParameterSource.COMMANDLINE and not ctx.params.get("cache"):
        raise click.UsageError(f"{parameter.opts[0]} requires --cache N")
    return value


# A continuous cache, for the commands that score with a language model; defaults as in LanguageModel.with_cache.
cache_options = together(
    integer("cache", 0, "Interpolate the model with a continuous cache of the last N words (Grave et al.); 0: no"
            " cache.", least=0, is_eager=True),
    option("cache-theta", type=Finite(0, 1000), default=1.0, callback=with_cache, help="With --cache, scale of the"
           " cache's scores; larger values favor more similar contexts."),
    option("cache-lambda", type=Finite(0, 1, min_open=True, max_open=True), default=0.1, callback=with_cache,
           help="With --cache, weight of the cache's probabilities. Tune both on a validation text."),
)  # fmt: skip

texts_argument = click.argument("texts", nargs=-1, metavar="[TEXT]...")
more_option = text_option("train", "Additional text, same as the TEXT argument; repeatable.", multiple=True)
TEXT_OPTIONS = [more_option, *options_of(Reading)]
read_vocab_option = file_option("read-vocab", "Read the vocabulary from FILE instead of counting words in TEXT.")
LM_TEXT = [  # of the commands that train a language model; see lmtrainer.py
    text_option("train", "Additional training text, same as the TEXT argument; repeatable.", multiple=True),
    text_option("valid", "Validation text for model selection and learning-rate decay.  [default: see --valid-share]"),
    text_option("test", "Test text; its perplexity is reported after training."),
    "valid_share min_count max_vocab",
    LmReading,
    read_vocab_option,
    "save_vocab errors tokenize phrases field",
]
debug_option = integer(
    "debug", 2, "Verbosity. 0: quiet; 1: messages, such as one line per epoch; 2: progress.", least=0, metavar=None
)
RUN_FILES = [Files, flag("no-memory-check", "Train even if memory looks insufficient.")]
OUTPUT = ["output write binary", *RUN_FILES, debug_option]
