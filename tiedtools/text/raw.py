"""Raw text as a source of words: the texts in a field of JSON lines, CSV, or TSV, split into words."""

import contextlib
import csv
import dataclasses
import functools
import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.base.settings import NONE, WORDS, Tokenization
from tiedtools.files.output import split_compression
from tiedtools.text.parts import Part, lines_before
from tiedtools.text.phrases import Phrases
from tiedtools.text.sentences import WORD, Sentences, words_of
from tiedtools.text.sources import LONGEST_LINE, counted, decoded_lines, shown
from tiedtools.text.tokenizer import Process, Tokenizer, regular_expressions

BATCH = 1 << 19  # characters tokenized at a time by a process
COLUMNS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}  # ending of a name -> separator
KINDS = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}


@dataclasses.dataclass
class Raw:
    """A source of raw text, which open_source opens as lines of words.

    source     path, URL, Part, open file, or Sentences, whose sentences may then be strings
    rules      the Tokenization; None: the text is words already
    phrases    the Phrases to join in the words, or None
    field      read this field of records, as for `records`; None: the source is plain text
    errors     as for Decoder
    unit       "text": lines remain, and `rules.sentences` may divide them; "line": each line or record remains a line;
               "record": like "text", but an empty line ends each record; "lines": each line of plain text; "paragraph":
               like "text". With these three, lines of which no word remains are dropped, and blank lines only remain
               where the text has them
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
            lines = decoded_lines(self.source, self.errors)
            if self.unit == "line":  # the last line remains, too, if all its words are dropped
                lines = (line.removesuffix("\n") + "\n" for line in lines)
            return (yield from (f"{line}\n" for line in lines) if self.unit == "lines" else lines)
        for text in records(self.source, self.field, self.errors):
            if self.unit == "line":
                text = " ".join(WORD.findall(text))
            elif self.unit == "record":
                # Not str.strip for words, since U+00A0 is one.
                text = "\n".join([*filter(str.strip if self.rules else WORD.search, text.split("\n")), ""])
            # A document ends with an empty line; no paragraph continues in the next record.
            yield text.removesuffix("\n" * (self.unit != "record")) + "\n" * (1 + (self.unit == "paragraph"))

    def pieces(self) -> Iterator[bytes]:
        """Yield the text as bytes, in whole lines."""
        texts: Any = self.lines()
        if self.rules:
            how = self.rules, self.unit in ("record", "lines", "paragraph")
            texts = tokenized(texts, how, self.processes or available_cores(), self.name)
        elif self.phrases and self.processes != 1:
            texts = batches(texts)
        with contextlib.closing(texts):
            for text in map(self.phrases.joiner(), texts) if self.phrases else texts:
                if text:  # a line may lose all its words
                    yield text.encode()


def joined(sources: Iterable[Raw]) -> Iterator[bytes]:
    """Yield the pieces of texts; a text begins on a new line, even if the text before it does not end with one."""
    last = b"\n"
    for piece in itertools.chain.from_iterable(source.pieces() for source in sources):
        yield piece if last.endswith(b"\n") else b"\n" + piece
        last = piece


def tokenized(texts: Iterable[str], how: tuple[Any, bool], processes: int, name: str) -> Iterator[str]:
    """Yield strings with their words separated by spaces, in order; with several processes, in batches.

    texts  iterable of strings of whole lines
    how    arguments of Tokenizer
    name   name of the text, for a warning about scripts without spaces
    """
    tokenizers: list[Any] = [Tokenizer(*how)]
    texts = batches(texts) if processes > 1 else texts
    some = [*itertools.islice(texts, 2 if processes > 1 else 0)]
    texts = itertools.chain(some, texts)
    with contextlib.ExitStack() as stack:
        if len(some) > 1:
            tokenizers = [stack.enter_context(contextlib.closing(Process(*how))) for _ in range(processes)]
            yield from stack.enter_context(contextlib.closing(ahead(tokenizers, texts)))
        else:
            yield from map(tokenizers[0], texts)
        if any(tokenizer.unsegmented for tokenizer in tokenizers):
            what = "words in a script without spaces, such as Han or Thai, are split into characters"
            log.warning(f"{name}: {what}; segment the text with another program first")


def batches(texts: Iterable[str]) -> Iterator[str]:
    """Yield the concatenation of the next strings, of about BATCH characters."""
    batch, size = [], 0
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
    if (given := Phrases.of(phrases)) and known not in (NONE, given.packed()):
        log.warning("the model was trained with other phrases: words may be missing from its vocabulary")
    return dict(tokenize=tokenize or rules, phrases=given.packed() if given else phrases or known)


@functools.lru_cache(4)
def splitter(tokenize: str, phrases: str) -> Callable[[Any], list[str]]:
    """Return a function that splits a string into a list of words, and returns an iterable of words as a list.

    tokenize, phrases  as from `as_trained`
    """
    steps: list[Any] = []
    lock = threading.Lock()  # joining has state
    if tokenize != WORDS:
        steps.append(Tokenizer(dataclasses.replace(Tokenization.of(tokenize), sentences=False)))
    if known := Phrases.of(phrases):
        steps.append(known.joiner())

    def split(text: Any) -> list[str]:
        if isinstance(text, str):
            # Arguments may not be UTF-8, and joining refuses zero bytes.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")
            with lock:
                for step in steps:
                    text = step(text)
        return words_of(text)

    return split


def records(source: Any, field: str, errors: str = "strict") -> Iterator[str]:
    """Yield the text in a field of each record, a str, which is a document.

    source  as for open_source: JSON lines, that is, an object per line; or CSV or TSV with a header. The format is that
            of the name's ending, without one that of the first nonblank line. Cells of CSV may be quoted, not of TSV
    field   name of the field or column; a.b is the field b of the object a

    Raises TiedtoolsError with file, line, and number of the record for a record without text in the field.
    """
    name, lines = shown(source), decoded_lines(source, errors)
    head = [next(lines, "")]
    while head[-1].isspace():
        head.append(next(lines, ""))
    first, lines = head[-1], itertools.chain(head, lines)
    stem = split_compression(name)[0].lower()
    separator = next((separator for ending, separator in COLUMNS.items() if stem.endswith(ending)), None)
    if not separator and not stem.endswith((".json", ".jsonl", ".ndjson")) and first.lstrip()[:1] not in ("{", "["):
        separator = "\t" if "\t" in first else ","
    if separator and isinstance(source, Part):
        raise TiedtoolsError(f"{name}: CSV and TSV cannot be divided among ranks; convert it to JSON lines")
    number = 1
    try:
        for line, text in cells(lines, separator, field) if separator else values(lines, field):
            if "\0" in text:
                raise Wrong(line, r"a zero byte; `sed 's/\\u0000//g'` removes it")  # others were refused above
            try:
                yield text.encode("utf-16", "surrogatepass").decode("utf-16", errors)  # in UTF-8, one becomes three
            except UnicodeDecodeError:
                raise Wrong(line, "an unpaired surrogate; `errors='replace'` substitutes U+FFFD") from None
            number += 1
    except Wrong as wrong:
        line, problem = wrong.args
        line += lines_before(source)
        record = "" if separator and line == 1 else f"record {number:,}: "  # the header is not a record
        raise TiedtoolsError(f"{name}:{line}: {record}{problem}") from None


class Wrong(Exception):
    """A record without text in the field: (line, problem)."""


def values(lines: Iterable[str], field: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the field of each JSON object. Raises Wrong."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem, listed = getattr(error, "msg", "nested too deeply"), number == 1 and line.lstrip().startswith("[")
            remedy = "`jq -c '.[]'` converts a list" if listed else "as `jq -c` writes them"
            raise Wrong(number, f"not JSON ({problem}); give an object per line: {remedy}") from None
        if not isinstance(record, dict):
            raise Wrong(number, "not an object; give an object per line: `jq -c '.[]'` converts a list")
        yield number, text_of(record, field, number)


def text_of(record: dict[str, Any], field: str, number: int) -> str:
    """Return the text in a field of a JSON object. Raises Wrong, with the number of its line."""
    value, path, problem = record, "", f"no field {quoted(field)}"
    steps = [field] if field in record else field.split(".")
    for name in steps:
        if not isinstance(value, dict) or name not in value:
            break
        value, path = value[name], f"{path}{name}."
    else:
        if isinstance(value, str):
            return value
        problem = f"{quoted(field)} is {KINDS.get(type(value), 'null')}, not text"
    names = [path + name for name in value] if isinstance(value, dict) else []
    drop = f"drop such records: `jq -c 'select(.{'.'.join(map(json.dumps, steps))}? | strings)'`"
    raise Wrong(number, f"{problem}; {choice(names, drop)}")


def choice(names: list[str], otherwise: str) -> str:
    """Return the remedy to name one of some fields or columns, or else to do what `otherwise` says."""
    return f"name one of {', '.join(map(quoted, names[:9]))}, or {otherwise}" if names else otherwise


def cells(lines: Iterable[str], separator: str, field: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the column `field` of each row. Raises Wrong."""
    csv.field_size_limit(LONGEST_LINE)
    tsv = separator != ","
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if tsv else csv.QUOTE_MINIMAL, strict=True)
    try:
        header = next(rows, [])
        if len(header) == 1 and ";" in header[0]:
            raise Wrong(1, "cells are separated by semicolons; save the table as CSV with commas, or as TSV")
        if field not in header:
            raise Wrong(1, f"no column {quoted(field)}; {choice(header, 'add a header')}")
        if header.count(field) > 1:
            raise Wrong(1, f"two columns {quoted(field)}; rename one")
        column = header.index(field)
        for row in rows:
            if len(row) not in (0, len(header)):
                remedy = "save the table as CSV" if tsv else "quote cells that contain commas or line breaks"
                raise Wrong(rows.line_num, f"{counted(len(row), 'cell')}, the header has {len(header)}; {remedy}")
            if row:
                yield rows.line_num, row[column]
    except csv.Error as error:
        remedy = "remove line breaks from cells" if tsv else "close quoted cells, and double their quotation marks"
        raise Wrong(rows.line_num, f"not {'TSV' if tsv else 'CSV'} ({error}); {remedy}") from None
