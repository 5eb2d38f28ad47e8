"""Raw text as a source of words: the texts of a field, split into words."""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.base.settings import NONE, WORDS, Tokenization
from tiedtools.text.phrases import Phrases
from tiedtools.text.records import records
from tiedtools.text.sentences import Sentences, words_of
from tiedtools.text.sources import Decoder, byte_lines, open_source, shown
from tiedtools.text.tokenizer import Process, Tokenizer, regular_expressions

BATCH = 1 << 19  # characters tokenized at a time by a process


@dataclasses.dataclass
class Raw:
    """A source of raw text, which open_source opens as lines of words.

    source     path, URL, Part, open file, or Sentences, whose sentences may then be strings
    rules      the Tokenization; None: the text is words already
    phrases    the Phrases to join in the words, or None
    field      read this field of records, as records.records; None: the source is plain text
    errors     as for Decoder
    unit       "text": lines remain, and `rules.sentences` may divide them; "line": each line or record remains a line;
               "document": like "text", but an empty line ends each record
    processes  number of processes; None: one per core; 1: this one, which returns each line as soon as it is read
    """

    source: Any
    rules: Tokenization | None = None
    field: str | None = None
    errors: str = "strict"
    unit: str = "text"
    processes: int | None = None
    phrases: Phrases | None = None

    def __post_init__(self) -> None:
        if self.rules:
            regular_expressions()  # before any text is read
            if self.unit == "line":
                self.rules = dataclasses.replace(self.rules, sentences=False)
        if isinstance(self.source, Sentences):
            self.source.raw = True

    @property
    def name(self) -> str:
        return shown(self.source)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text, or its records, as strings that end in a newline."""
        if self.field is None:
            with open_source(self.source) as file, Decoder(self.source, self.errors) as decode:
                for line in byte_lines(file, shown(self.source)):
                    yield decode(line)
        for text in records(self.source, self.field, self.errors) if self.field is not None else ():
            if self.unit == "line":
                text = " ".join(text.split())
            elif self.unit == "document":
                text = "\n".join([*filter(str.strip, text.split("\n")), ""])
            yield text.removesuffix("\n" * (self.unit == "text")) + "\n"

    def pieces(self) -> Iterator[bytes]:
        """Yield the text as bytes, in whole lines."""
        texts: Any = self.lines()
        if self.rules:
            texts = tokenized(texts, self.rules, self.processes or available_cores(), shown(self.source))
        elif self.phrases and self.processes != 1:
            texts = batches(texts)
        with contextlib.closing(texts):
            for text in map(self.phrases.joiner(), texts) if self.phrases else texts:
                yield text.encode()


def tokenized(texts: Iterable[str], rules: Tokenization, processes: int, name: str) -> Iterator[str]:
    """Yield strings with their words separated by spaces, in order; with several processes, in batches.

    texts  iterable of strings of whole lines
    name   name of the text, for a warning about scripts without spaces
    """
    some: list[str] = []
    tokenizers: list[Any] = [Tokenizer(rules)]
    if processes > 1:
        texts = batches(texts)
        some = [*itertools.islice(texts, 2)]
    texts = itertools.chain(some, texts)
    with contextlib.ExitStack() as stack:
        if len(some) > 1:
            tokenizers = [stack.enter_context(contextlib.closing(Process(rules))) for _ in range(processes)]
            results: Any = ahead(tokenizers, texts)
            yield from stack.enter_context(contextlib.closing(results))
        else:
            yield from map(tokenizers[0], texts)
        if any(tokenizer.unsegmented for tokenizer in tokenizers):
            log.warning(
                f"{name}: words in a script without spaces, such as Han or Thai, are split into characters; segment the"
                " text with another program first"
            )


def batches(texts: Iterable[str]) -> Iterator[str]:
    """Yield the concatenation of the next strings, of about BATCH characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH:
            yield "".join(batch)
            batch, size = [], 0
    if batch:
        yield "".join(batch)


def prepared(
    source: Any, tokenize: str | None = None, field: str | None = None, errors: str = "strict", phrases: Any = None,
    **how: Any
) -> Any:  # fmt: skip
    """Return a source as a Raw, a list of sources likewise; unchanged if `tokenize`, `field`, and `phrases` are None.

    tokenize, field, errors, phrases  settings of Reading
    how                               `unit` and `processes` of the Raw
    """
    tokenize, phrases = None if tokenize == WORDS else tokenize, Phrases.of(phrases)
    if isinstance(source, list):
        return [prepared(one, tokenize, field, errors, phrases, **how) for one in source]
    if source is None or (tokenize, field, phrases) == (None, None, None):
        return source
    rules = Tokenization.of(tokenize) if tokenize is not None else None
    return Raw(source, rules, field, errors, phrases=phrases, **how)


def as_trained(settings: Any, tokenize: str | None = None, phrases: Any = None, tell: bool = True) -> dict[str, Any]:
    """Return `tokenize` and `phrases`, arguments of `prepared`, for texts read by a model with these settings.

    tokenize, phrases  settings to use instead of the model's; a difference is logged as a warning
    tell               log what is done as in training
    """
    trained = {"tokenize": WORDS, "phrases": NONE} | (settings or {})
    rules, known = trained["tokenize"], trained["phrases"]
    done = [f"tokenized (`tokenize={rules}`; not with `tokenize={WORDS}`)"] * (tokenize is None and rules != WORDS)
    done += [f"phrases are joined (not with `phrases={NONE}`)"] * (phrases is None and known != NONE)
    if done and tell:
        log.info(f"as in training: {', '.join(done)}")
    if WORDS not in (tokenize or WORDS, rules) and Tokenization.of(str(tokenize)) != Tokenization.of(rules):
        log.warning(f"the model was trained with `tokenize={rules}`: words may be missing from its vocabulary")
    given = Phrases.of(phrases)
    if given and known not in (NONE, given.packed()):
        log.warning("the model was trained with other phrases: words may be missing from its vocabulary")
    return dict(tokenize=tokenize or rules, phrases=phrases or known)


@functools.lru_cache(4)
def splitter(tokenize: str, phrases: str) -> Callable[[Any], list[str]]:
    """Return a function that splits a string into a list of words, and returns an iterable of words as a list.

    tokenize, phrases  as from `as_trained`
    """
    steps: list[Any] = []
    if tokenize != WORDS:
        steps.append(Tokenizer(dataclasses.replace(Tokenization.of(tokenize), sentences=False)))
    if known := Phrases.of(phrases):
        steps.append(known.joiner())

    def split(text: Any) -> list[str]:
        if isinstance(text, str):
            for step in steps:
                text = step(text)
        return words_of(text)

    return split
