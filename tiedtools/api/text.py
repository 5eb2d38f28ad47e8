"""Raw text from Python: its words, and the documents in files of records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tiedtools.base.errors import Mistyped
from tiedtools.base.settings import ERRORS, THREADS, Tokenization, checked, documented, one_of, sort_out
from tiedtools.text.raw import Raw, records
from tiedtools.text.sentences import Sentences, sources, words_of
from tiedtools.text.sources import Path, is_path


@documented(Tokenization)
def tokenize(
    texts: Iterable[str] | Path, *, errors: str = "strict", threads: int | None = None, **rules: Any
) -> Iterator[list[str]]:
    """Yield the words of each text, a list of str, in order: `tiedtools tokenize` on texts.

    texts    an iterable of strings, read as the words are needed; or a path or an open file, whose lines are the texts.
             With `sentences`, the words of each sentence are yielded
    errors   invalid UTF-8: "strict" raises TiedtoolsError, "replace" inserts U+FFFD, "ignore" skips it
    threads  number of processes for texts of more than half a million characters; None: one per core

    Raises Contradiction for wrong rules, TiedtoolsError without the package regex or for texts that cannot be read.

    >>> list(tokenize(["The file isn't open.", "L'homme"], lower=True))
    [['the', 'file', "isn't", 'open', '.'], ["l'homme"]]
    """
    one_of("errors", errors, ERRORS)
    threads = checked("threads", threads, int | None, THREADS)
    tokenization: Tokenization = sort_out(rules, Tokenization)[0]
    (source,) = sources(texts) if is_path(texts) or hasattr(texts, "read") else [Sentences(texts)]
    pieces = Raw(source, tokenization, None, errors, processes=threads).pieces()
    return (words_of(line.decode()) for line in itertools.chain.from_iterable(map(bytes.splitlines, pieces)))


def documents(source: Any, field: str, *, errors: str = "strict") -> Iterator[str]:
    """Yield the text in a field of each record of JSON lines, CSV, or TSV, a str, in order.

    source  a path, a list of paths, or an open file; paths may be compressed, or URLs
    field   name of the field or column; "a.b" is field b of the object in field a
    errors  as for `tokenize`

    Raises TiedtoolsError, with the number of the record, for records without text in the field.
    """
    one_of("errors", errors, ERRORS)
    checked("field", field, str)
    if isinstance((texts := sources(source))[0], Sentences):
        raise Mistyped(f"expected a path or a file of records, found {type(source).__name__}; take the field from each")
    return itertools.chain.from_iterable(records(text, field, errors) for text in texts)
