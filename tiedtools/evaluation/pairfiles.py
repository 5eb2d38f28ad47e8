"""Read word pairs with human scores in the layouts of published similarity sets.

    word word score                      separated by tabs, commas, semicolons, or spaces (MEN, WordSim-353, RG-65)
    word:word:score:...                  (Gur350)
    word word score number number ...    the score is the mean of the numbers (RW)
    word word text score text ...        (SimVerb-3500)
    after a header                       the score is in the column with the name of a score (SimLex-999)

Fields separated by tabs, commas, or semicolons may be quoted as in csv files.
"""

import csv
import math
import re
from typing import Any

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.text.sentences import BLANKS, WORD
from tiedtools.text.sources import numbered_lines

SCORE = {"average", "human", "mean", "rating", "relatedness", "score", "similarity", "simlex999"}  # in a column's name
TAGGED = re.compile(".+-[jnv]", re.DOTALL)  # a word with its part of speech, as in MEN's lemma form


def read_pairs(path: Any) -> list[tuple[str, str, float]]:
    """Read a list of (word, word, score).

    Empty lines, lines that begin with `#`, and a header are skipped. If all words end in -n, -v, or -j, a part of
    speech, this ending is removed. Raises TiedtoolsError with file and line for a malformed or ambiguous line.
    """
    triples, width, column = [], None, None
    for number, line in numbered_lines(path):
        if not line.strip(BLANKS) or line.startswith("#"):
            continue
        try:
            fields = split(line)
            if column is None:
                width, column, is_header = layout(line, fields)
                if is_header:
                    continue
            triples.append(triple(fields, width, column))
        except ValueError as error:
            problem = str(error) or f"expected `word word score`, found {quoted(line.strip())}; correct the line"
            raise TiedtoolsError(f"{path}:{number}: {problem}") from None
    if all(TAGGED.fullmatch(word) for *words, _ in triples for word in words):
        triples = [(a[:-2], b[:-2], score) for a, b, score in triples]
    return triples


def separator(line: str) -> str | None:
    """Return the character that separates the fields of a line; None: spaces."""
    colons = ":" if line.count(":") > 1 and " " not in line else None
    return "\t" if "\t" in line else ";" if line.count(";") > 1 else "," if "," in line else colons


def split(line: str) -> list[str]:
    """Split a line into its fields. Raises ValueError for unbalanced quotes."""
    mark = separator(line)
    if mark is None:
        return WORD.findall(line)
    line = line.strip("\r\v\f ")
    try:
        quotes = '"' in line
        fields = next(csv.reader([line], delimiter=mark, skipinitialspace=True, strict=True)) if quotes else None
    except csv.Error as error:
        raise ValueError(f"{error}; correct the quotes") from None
    return [field.strip(BLANKS) for field in fields or line.split(mark)]


def layout(line: str, fields: list[str]) -> tuple[int, int, bool]:
    """Return the number of columns (0: varies), the score's column, and whether this line, the first, is a header.

    A header has no numbers in its first three fields, and names the score or two words such as `word1` and `word2`. One
    that names both may have numbered columns.
    Raises ValueError if the column of the score is ambiguous.
    """
    numbers = [k for k in range(len(fields)) if as_number(fields[k]) is not None]
    named = [k for k in range(2, len(fields)) if SCORE & set(re.split(r"\(.*\)|[\s_]+|\W", fields[k].casefold()))]
    words = fields[0][-1:] == "1" and fields[1:2] == [fields[0][:-1] + "2"]
    if len(fields) > 2 and (named or words) and not {0, 1, 2 * (not (named and words))} & set(numbers):
        if len(fields) == 3:
            return 3, 2, True
        if len(named) == 1:
            return len(fields), named[0], True
        names = ", ".join(quoted(fields[k]) for k in named) or "none"
        raise ValueError(f"expected one column named like a score, found {names}; remove the other columns")
    scores = [k for k in numbers if k > 1]
    if len(fields) == 3 or not scores or separator(line) is None:
        return 3, 2, False
    score, *others = (as_number(fields[k]) for k in scores)
    if others and not min(others) <= score <= max(others):
        what = f"several numbers, of which the first, {quoted(fields[scores[0]])}, is not the mean of the others"
        raise ValueError(f"{what}; remove all but the score")
    return 0, scores[0], False


def triple(fields: list[str], width: Any, column: Any) -> tuple[str, str, float]:
    """Return (word, word, score) of the fields of a line. Raises ValueError, without a message for a wrong layout."""
    fits = len(fields) == width if width else len(fields) > max(column, 3)
    if not fits or not all(fields[:2]) or not width and any(as_number(field) is not None for field in fields[2:column]):
        raise ValueError
    if column > 2 and fields[0].isdigit():  # pandas, for example, writes the number of each row before its words
        raise ValueError("the first column has numbers instead of words; remove it")
    score = as_number(fields[column])
    if score is None or not math.isfinite(score):
        header = ", or put # before a header" if score is None else ""
        remedy = "write a decimal point" if "," in fields[column] else f"correct it{header}"
        raise ValueError(f"the score {quoted(fields[column])} is not a finite number; {remedy}")
    return fields[0], fields[1], score


def as_number(field: str) -> Any:
    """Parse a number; None if it is not one, NaN for spellings that only Python accepts, such as 1_000."""
    try:
        return float(field) if field.isascii() and "_" not in field else float(field) * math.nan
    except ValueError:
        return None
