"""Raw text as a source of words: the texts of a field, split into words."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.base.settings import WORDS, Tokenization
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
        with contextlib.closing(texts):
            for text in texts:
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
    source: Any, tokenize: str | None = None, field: str | None = None, errors: str = "strict", **how: Any
) -> Any:
    """Return a source as a Raw, a list of sources likewise; unchanged if `tokenize` and `field` are None.

    tokenize, field, errors  settings of Reading
    how                      `unit` and `processes` of the Raw
    """
    tokenize = None if tokenize == WORDS else tokenize
    if isinstance(source, list):
        return [prepared(one, tokenize, field, errors, **how) for one in source]
    if source is None or tokenize is None and field is None:
        return source
    return Raw(source, Tokenization.of(tokenize) if tokenize is not None else None, field, errors, **how)


def as_trained(model: Any, tokenize: str | None = None, tell: bool = True) -> str | None:
    """Return the `tokenize` setting for texts that a model reads: by default that of its training text, or None.

    tokenize  the setting to use instead; "words": None. A difference from the model's is logged as a warning
    tell      log that the text is tokenized
    """
    trained = (getattr(model, "settings", None) or {}).get("tokenize", WORDS)
    if tokenize is None and trained != WORDS and tell:
        log.info(f"tokenized as in training (`tokenize={trained}`); `tokenize={WORDS}` reads the text as words")
    elif WORDS not in (tokenize or WORDS, trained) and Tokenization.of(str(tokenize)) != Tokenization.of(trained):
        log.warning(f"the model was trained with `tokenize={trained}`: words may be missing from its vocabulary")
    tokenize = tokenize or trained
    return None if tokenize == WORDS else tokenize


def splitter(tokenize: str | None) -> Callable[[Any], list[str]]:
    """Return a function that splits a string into a list of words, and returns an iterable of words as a list.

    tokenize  the setting, or None
    """
    if tokenize is None:
        return words_of
    tokenizer = Tokenizer(dataclasses.replace(Tokenization.of(tokenize), sentences=False))
    return lambda text: words_of(tokenizer(text) if isinstance(text, str) else text)
