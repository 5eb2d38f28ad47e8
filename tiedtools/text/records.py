"""Read the texts in a field of records: JSON lines, CSV, and TSV."""

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.files.output import split_compression
from tiedtools.text.parts import Part, lines_before
from tiedtools.text.sources import LONGEST_LINE, ZERO_BYTE, Decoder, byte_lines, open_source, shown

COLUMNS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}  # ending of a name -> separator
KINDS = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}


def records(source: Any, field: str, errors: str = "strict") -> Iterator[str]:
    """Yield the text in a field of each record, a str, which is a document.

    source  as for open_source: JSON lines, that is, an object per line; or CSV or TSV with a header. The format is that
            of the name's ending, without one that of the first line. Cells of CSV may be quoted, those of TSV are not
    field   name of the field or column; a.b is the field b of the object a

    Raises TiedtoolsError with file, line, and number of the record for a record without text in the field.
    """
    name = shown(source)
    with open_source(source) as file, Decoder(source, errors) as decode:
        lines = (decode(line) for line in byte_lines(file, name))
        first = next(lines, "")
        lines = itertools.chain([first], lines)
        stem = split_compression(name)[0].lower()
        separator = next((separator for ending, separator in COLUMNS.items() if stem.endswith(ending)), None)
        if not separator and not stem.endswith((".json", ".jsonl", ".ndjson")) and first.lstrip()[:1] not in ("{", "["):
            separator = "\t" if "\t" in first else ","
        if separator and isinstance(source, Part):
            raise TiedtoolsError(f"{name}: CSV and TSV cannot be divided among ranks; convert it to JSON lines")
        found = cells(lines, separator, field) if separator else values(lines, field)
        number = 1
        try:
            for line, text in found:
                if "\0" in text:
                    raise Wrong(line, ZERO_BYTE)
                try:
                    yield text.encode("utf-8", "surrogatepass").decode("utf-8", errors)
                except UnicodeDecodeError:
                    raise Wrong(line, "half of a surrogate pair; `errors='replace'` substitutes U+FFFD") from None
                number += 1
        except Wrong as wrong:
            line, problem = wrong.args
            line += lines_before(source)
            record = "" if separator and line == 1 else f"record {number:,}: "  # the header is none
            raise TiedtoolsError(f"{name}:{line}: {record}{problem}") from None


class Wrong(Exception):
    """A record without text in the field: (line, problem)."""


def values(lines: Iterable[str], field: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the field of each JSON object. Raises Wrong."""
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply")
            raise Wrong(number, f"not JSON ({reason}); give an object per line, as `jq -c` writes them") from None
        if not isinstance(record, dict):
            raise Wrong(number, f"{KINDS.get(type(record), 'not an object')}; `jq -c '.[]'` converts a list to lines")
        yield number, text_of(record, field, number)


def text_of(record: dict[str, Any], field: str, number: int) -> str:
    """Return the text in a field of a JSON object. Raises Wrong, with the number of its line."""
    value: Any = record
    for name in [field] if field in record else field.split("."):
        if not isinstance(value, dict) or name not in value:
            names = f"; it has {', '.join(map(quoted, [*value][:9]))}" if isinstance(value, dict) and value else ""
            raise Wrong(number, f"no field {quoted(field)}{names}")
        value = value[name]
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        inner = next(iter(value), "name")
        raise Wrong(number, f"{quoted(field)} is an object; name a field in it, such as {quoted(f'{field}.{inner}')}")
    kind = KINDS.get(type(value), "null")
    raise Wrong(number, f"{quoted(field)} is {kind}, not text; `jq -c 'select(.FIELD | strings)'` drops these records")


def cells(lines: Iterable[str], separator: str, field: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the column `field` of each row. Raises Wrong."""
    csv.field_size_limit(LONGEST_LINE)
    tsv = separator != ","
    rows = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if tsv else csv.QUOTE_MINIMAL, strict=True)
    try:
        header = next(rows, [])
        if field not in header:
            raise Wrong(1, f"no column {quoted(field)}; the header has {', '.join(map(quoted, header[:9]))}")
        column = header.index(field)
        for row in rows:
            if len(row) not in (0, len(header)):
                problem = f"{len(row)} cells, but {len(header)} columns; "
                remedy = "save the table as CSV" if tsv else "quote cells that contain commas"
                raise Wrong(rows.line_num, problem + remedy)
            if row:
                yield rows.line_num, row[column]
    except csv.Error as error:
        raise Wrong(rows.line_num, f"not {'TSV' if tsv else 'CSV'} ({error}); correct it") from None
