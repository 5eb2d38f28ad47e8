"""Settings, each declared once as a field of a dataclass: checks, documentation, and sorting by name."""

import dataclasses
import inspect
import numbers
import textwrap
import typing
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, TypeVar

from tiedtools.base import aliases
from tiedtools.base.errors import Contradiction, Mistyped, quoted

T = TypeVar("T")
Mistake = tuple[str, object]  # a message, and whether it applies, as a truth value
SIDES = "in", "out", "sum", "concat"  # word vectors of most models; see vectors.Vectors.of
ERRORS = "strict", "replace", "ignore"  # what to do with invalid UTF-8
DEFAULT, WORDS = "default", "words"  # values of `tokenize`: all defaults; the text is words already
NONE = "none"  # value of `phrases`
SPLIT = "tokenize", "phrases"  # settings of the text that continued training keeps


class Range(NamedTuple):
    """The range of a numeric setting, with the fields of click's IntRange and FloatRange.

    Nonzero numbers also need a magnitude of 1e-30 to 1e30, which is safe for float32.
    """

    min: float
    max: float | None = None
    min_open: bool = False
    max_open: bool = False

    def require(self, name: str, value: float | None) -> None:
        """Raise Contradiction unless the value of the setting `name` is in the range or None."""
        if value is None:
            return
        above = value > self.min if self.min_open else value >= self.min
        below = self.max is None or (value < self.max if self.max_open else value <= self.max)
        if not (above and below) or value and not 1e-30 <= abs(value) <= 1e30:
            limits = "finite, with magnitude 1e-30 to 1e30" if above and below else self
            raise Contradiction(f"`{name}={value}` must be {limits}")

    def __str__(self) -> str:
        if self.max is not None and not self.min_open and not self.max_open:
            return f"from {self.min:,} to {self.max:,}"
        least = f"{'more than' if self.min_open else 'at least'} {self.min:,}"
        return least if self.max is None else f"{least} and {'less than' if self.max_open else 'at most'} {self.max:,}"


SEEDS, THREADS = Range(0, 2**32 - 1), Range(1, 1024)


def checked(name: str, value: Any, expected: Any, within: Range | None = None) -> Any:
    """Return the value of the setting `name`, of one of the expected types; NumPy numbers become Python's.

    Raises Contradiction for a value of another type, or outside the range `within`.
    """
    types = typing.get_args(expected) or (expected,)
    if getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool) or value is None:
        fits = type(value) in types
    elif isinstance(value, numbers.Integral) and {int, float} & set(types):
        fits, value = True, int(value)
    elif isinstance(value, numbers.Real) and float in types:
        fits, value = True, float(value)
    else:
        fits = isinstance(value, types)
    if not fits:
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in types)
        raise Mistyped(f"`{name}={quoted(value)}` is not {names}; correct it")
    if within:
        within.require(name, value)
    return value


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Raise Contradiction unless the value of the setting `name` is one of the choices."""
    if value not in choices:
        named = ", ".join(str(choice) for choice in choices if choice is not None)
        raise Contradiction(f"`{name}={quoted(value)}` is not one of {named}")


def setting(
    default: Any, within: Range | None = None, choices: Collection[object] | None = None, **option: Any
) -> Callable[[str | dict[Any, str]], Any]:
    """Declare a setting of a Checked dataclass, from which the check, the option, and the documentation are derived.

    Returns a function of the help: `epochs: int = setting(5, Range(1))("Number of epochs.")`. The help names other
    settings in backticks; it may be a dict: value -> its effect.

    within   Range of a number
    choices  allowed values
    option   attributes of the command-line option: metavar; off=True: also `--no-NAME`; hidden=True: no option
    """
    metadata = dict(within=within, choices=choices, **option)
    return lambda help: dataclasses.field(default=default, metadata=dict(help=help, **metadata))


class Checked:
    """Base class of settings dataclasses that validate themselves when constructed.

    Fields declared by `setting` are checked by their ranges and choices. Each class in the inheritance chain may define
    `mistakes`, a method that yields pairs (message, whether it applies). Raises Contradiction with the first message
    that applies.
    """

    def __post_init__(self) -> None:
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self)  # type: ignore[arg-type]
        for field in fields:
            if choices := field.metadata.get("choices"):
                one_of(field.name, getattr(self, field.name), tuple(choices))
        for field in fields:
            if within := field.metadata.get("within"):
                within.require(field.name, getattr(self, field.name))
        checks = [vars(kind)["mistakes"] for kind in type(self).__mro__ if "mistakes" in vars(kind)]
        for message, applies in (mistake for check in checks for mistake in check(self)):
            if applies:
                raise Contradiction(message)


def documented(*kinds: Any, **defaults: Any) -> Callable[[T], T]:
    """Return a decorator of a class or function that adds the settings of dataclasses to its documentation.

    They are listed in its docstring and as parameters in its signature. Without `kinds`, a class lists its own settings
    in its docstring.

    defaults  defaults that differ from the fields' defaults
    """

    def add(cls: Any) -> Any:
        fields = {field.name: field for kind in kinds or (cls,) for field in dataclasses.fields(kind)}
        width = max(map(len, fields)) + 2
        lines = (textwrap.wrap(full_help(field, defaults), 116 - width) for field in fields.values() if field.metadata)
        indented = (f"\n{' ' * width}".join(wrapped) for wrapped in lines)
        listed = "\n".join(f"{name:{width}}{text}" for name, text in zip(fields, indented))
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{listed}"
        if kinds:
            own = {n: p for n, p in inspect.signature(cls).parameters.items() if p.kind is not p.VAR_KEYWORD}
            added = [f for f in fields.values() if f.metadata and f.name not in own]
            of = lambda f: dict(default=defaults.get(f.name, f.default), annotation=f.type)
            more = [inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, **of(f)) for f in added]
            cls.__signature__ = inspect.Signature([*own.values(), *more])
        return cls

    return add


def full_help(field: Any, defaults: dict[str, Any]) -> str:
    """Return the help of a setting, a dataclass field, with its default, for a docstring."""
    help = field.metadata["help"]
    text = help if isinstance(help, str) else " ".join(f"{value}: {text}" for value, text in help.items())
    default = defaults.get(field.name, field.default)
    return text if "[default: " in text or default is None else f"{text}  [default: {default}]"


@dataclasses.dataclass(frozen=True)
class Tokenization(Checked):
    """How raw text is split into words: the options of `tiedtools tokenize`.

    A tokenization is written as its settings that differ from their defaults: "lower,language=tr".
    """

    lower: bool = setting(False)("Lowercase; `language=tr` or az: with dotted and dotless i.")
    language: str | None = setting(None, choices=(None, "az", "ca", "de", "el", "en", "fr", "it", "tr"))(
        "Language of the text, for lowercasing, contractions, and ends of sentences.  [default: any]"
    )
    sentences: bool = setting(False)("Write each sentence on its own line; line breaks of the text remain.")
    numbers: str = setting("keep", choices=("keep", "zeros", "fold", "drop"))(
        "Numbers: keep; zeros: replace each digit by 0, also within words, but not in URLs and e-mail addresses; fold:"
        " write `<num>`; drop."
    )
    urls: str = setting("keep", choices=("keep", "fold", "drop"))(
        "URLs and e-mail addresses: keep; fold: replace with `<url>`; drop."
    )
    apostrophes: str | None = setting(None, choices=(None, "keep", "contractions", "split", "drop"))(
        "Apostrophes within words: keep (don't); contractions: split as the language does (do n't, l' homme); split"
        " (don ' t); drop (dont).  [default: contractions for ca, fr, and it; otherwise keep]"
    )
    hyphens: str = setting("split", choices=("split", "keep"))("Hyphens within words: split (well - known) or keep.")
    punctuation: str = setting("keep", choices=("keep", "drop"))(
        "Punctuation marks and symbols: keep, as words of their own; drop."
    )

    def mistakes(self) -> Any:
        needed = self.apostrophes == "contractions" and self.language not in ("ca", "en", "fr", "it")
        yield "`apostrophes=contractions` needs `language`: ca, en, fr, or it", needed

    @classmethod
    def of(cls, text: str) -> "Tokenization":
        """Parse a tokenization, such as "default" or "lower,language=tr". Raises Contradiction."""
        items = [item.strip().partition("=") for item in text.split(",") if item.strip() not in ("", DEFAULT)]
        config: Tokenization = sort_out({name: value if equals else True for name, equals, value in items}, cls)[0]
        return config

    def __str__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        return ",".join(name if value is True else f"{name}={value}" for name, value in values.items()) or DEFAULT


@dataclasses.dataclass(frozen=True)
class Reading(Checked):
    """Settings for reading training texts. Settings without a value have the default of the reader."""

    min_count: int = setting(5, Range(0))("Discard words that occur less often than this.")
    max_vocab: int | None = setting(None, Range(2), metavar="N")(
        "Keep only the most frequent words: N at most, including `</s>`.  [default: no limit]"
    )
    errors: str = setting("strict", choices=ERRORS)("Invalid UTF-8: reject the file, replace with U+FFFD, or skip.")
    tokenize: str | None = setting(None, metavar="OPTIONS")(
        "Split raw TEXT into words: `default`, or options of `tiedtools tokenize`, separated by commas, as in"
        " lower,language=tr; words: TEXT is words separated by whitespace.  [default: words]"
    )
    phrases: object | None = setting(None, metavar="LIST")(
        "Join the phrases of LIST, written by `tiedtools phrases --save`, in TEXT.  [default: none]"
    )
    field: str | None = setting(None, metavar="NAME")(
        "Read this field of JSON lines, or this column of CSV or TSV; a.b is field b of the object a.  [default: TEXT"
        " is plain text]"
    )

    def mistakes(self) -> Any:
        if self.tokenize not in (None, WORDS):
            Tokenization.of(self.tokenize)
        yield "`field` is empty; name a field", self.field == ""


@dataclasses.dataclass(frozen=True)
class LmReading(Reading):
    """How the texts of language models are read."""

    min_count: int = setting(1, Range(0))("Replace words that occur less often than this with `<unk>`.")
    max_vocab: int | None = setting(None, Range(3), metavar="N")(
        "Keep only the most frequent words: N at most, including `</s>` and `<unk>`.  [default: no limit]"
    )
    valid_share: float = setting(0.1, Range(0, 1, max_open=True))(
        "Without `valid`, proportion of the text held out for validation, whole lines from its end; 0 disables."
    )


@dataclasses.dataclass(frozen=True)
class Continuation(Checked):
    """Settings of training that continues from earlier vectors; see docs/time.md."""

    init_from: str | None = setting(None, metavar="FILE")(
        "Start from a model of `w2v`, or from any file of word vectors. Its words are the vocabulary; `grow` adds"
        " those of TEXT. Counts are added up. A model's architecture, window, sampling, tying, subwords, `tokenize`,"
        " and `phrases` are the defaults; the default of `lr` is halved, except with `freeze`."
    )
    grow: bool = setting(False)(
        "With `init_from`, add new words of TEXT to the vocabulary: those that occur at least `min_count` times and"
        " are among the `max_vocab` most frequent ones of TEXT."
    )
    freeze: str | None = setting(None, choices=(None, "in", "out", "old"))(
        "With `init_from`, freeze input vectors (in), output vectors (out), or all vectors of the words in FILE (old)."
    )

    def mistakes(self) -> Iterator[Mistake]:
        for name in "grow", "freeze":
            yield f"`{name}` needs `init_from`, the file to continue from", not self.init_from and getattr(self, name)
        problem = "`freeze=in` would leave the input vectors of new words random; omit it, or `grow`"
        yield problem, self.grow and self.freeze == "in"


@dataclasses.dataclass(frozen=True)
class LmContinuation(Continuation):
    """Settings of training that continues from a language model; see docs/time.md."""

    init_from: str | None = setting(None, metavar="MODEL")(
        "Start from a model of `lm` or `lstm`. Its settings of the model and of training, `tokenize`, and `phrases` are"
        " the defaults; with `preset`, only the settings of its layers and text are. The learning-rate schedule"
        " restarts. Counts of words are added."
    )
    freeze: str | None = setting(None, choices=(None, "embeddings"))(
        "With `init_from`, freeze the input and output embeddings and, with `subwords`, the layers that compose them."
    )

    def mistakes(self) -> Iterator[Mistake]:
        problem = "`freeze=embeddings` would leave the embeddings of new words random; omit it, or `grow`"
        yield problem, self.grow and self.freeze


def settings_of(*configs: Any) -> dict[str, Any]:
    """Return all settings of configurations by name, defaults included, since readers may have other defaults."""
    settings = {field.name: getattr(config, field.name) for config in configs for field in dataclasses.fields(config)}
    if "direct" in settings:
        settings["direct"] /= 10**6  # rnnlm's option is in millions
    return settings


def sort_out(settings: dict[str, Any], *kinds: Any) -> list[Any]:
    """Return an instance of each dataclass in `kinds` with its fields set from `settings`.

    Raises Contradiction for an unknown setting, and for a value of a wrong type or out of range.
    """
    fields = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    known = set().union(*fields)
    if unknown := [name for name in settings if name not in known]:
        raise Mistyped(f"unknown setting `{unknown[0]}`; {aliases.remedy(unknown[0], known)}")
    configs: list[Any] = []
    for kind, names in zip(kinds, fields):
        types = typing.get_type_hints(kind)
        configs.append(kind(**{name: checked(name, settings[name], types[name]) for name in settings if name in names}))
    return configs


def with_reading(settings: dict[str, Any], *kinds: Any) -> list[Any]:
    """Sort settings as `sort_out`, but return the last dataclass, a Reading, as a dict of the explicit settings."""
    *configs, reading = sort_out(settings, *kinds)
    return [*configs, {name: value for name, value in vars(reading).items() if name in settings}]


@documented()
@dataclasses.dataclass(frozen=True)
class Files(Checked):
    """Paths of the files that a training run writes; None: not written, `-`: standard output."""

    output: str | None = setting(None)(
        "Output file for the vectors; - is standard output. NAME.npy, NAME.safetensors, or NAME.tsv is written in that"
        " format, with the words beside it."
    )
    write: str = setting("in")("Vectors to write: input, output, their sum, or their concatenation.")
    binary: bool = setting(False)("1: write word2vec's binary format; 0: text.")
    save_model: str | None = setting(None, metavar="FILE")(
        "Write the model (parameters, vocabulary, and options) to FILE in .npz format."
    )
    save_vocab: str | None = setting(None, metavar="FILE")("Write the vocabulary to FILE, one `word count` per line.")
    checkpoint: str | None = setting(None, metavar="FILE")(
        "Write a checkpoint to FILE after each epoch and on interruption."
    )
    checkpoint_minutes: float = setting(10.0, Range(0))("Also checkpoint every N minutes; 0 disables.")
    resume: bool = setting(False)("Resume from the file of `checkpoint` if it exists; otherwise start from scratch.")
    log_json: str | None = setting(None, metavar="FILE")(
        "Write the metrics of each epoch to FILE, one JSON object per line."
    )
    manifest: str | None = setting(None, metavar="FILE")(
        "Also write the run's manifest (command, inputs, environment) to FILE; see `tiedtools rerun`."
    )
    no_manifest: bool = setting(False)(
        "Do not write a .run.json manifest next to the vectors or the model, from which the tokenization is read."
    )
