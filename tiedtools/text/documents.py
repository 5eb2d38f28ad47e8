"""Documents of an encoded text, and texts made of the same documents in another order or another number."""

import os
import tempfile
from typing import Any

import numpy as np

from tiedtools.text.encoding import EncodedText
from tiedtools.text.vocab import Vocab


class Marks:
    """Marks where documents begin while a text is encoded; an argument of encoding.encode.

    kind    "line"; "paragraph" or "record": documents are separated by empty lines; or "file"
    files   number of line ends before each file but the first
    starts  number of line ends before each document but the first; for lines, none

    With a given vocabulary, a line of unknown words counts as an empty one.
    """

    def __init__(self, kind: str) -> None:
        self.kind, self.path, self.ends, self.line_ended = kind, None, 0, False
        self.files: list[int] = []
        self.starts: list[int] = self.files if kind == "file" else []

    def see(self, path: Any, ids: Any) -> None:
        """Record the marks of the next block of IDs, as bytes, of the text at `path`."""
        ends = np.frombuffer(ids, np.int32) == 0
        if path != self.path and self.path is not None:
            self.files.append(self.ends)
        if self.kind in ("paragraph", "record"):
            empty = ends & np.append(self.line_ended, ends[:-1])
            self.starts += (self.ends + np.cumsum(ends)[empty]).tolist()
            self.line_ended = bool(ends[-1]) if ends.size else self.line_ended
        self.path, self.ends = path, self.ends + int(np.count_nonzero(ends))

    def bounds(self, ids: np.ndarray) -> np.ndarray:
        """Return the bounds of the documents among the IDs of the text, int64 [documents + 1].

        A document has at least one word; lines without words belong to the document before them.
        """
        after = np.flatnonzero(ids == 0) + 1
        starts = after if self.kind == "line" else after[np.array(self.starts, np.int64) - 1]
        bounds = np.unique(np.concatenate([[0], starts, [ids.size]]))
        words = np.append(0, np.cumsum(ids != 0))[bounds]
        return np.concatenate([[0], bounds[1:-1][np.diff(words)[1:] > 0], [ids.size]]).astype(np.int64)


def rearranged(words: list[str], ids: np.ndarray, bounds: np.ndarray, order: np.ndarray) -> EncodedText:
    """Return the text of the documents `order` as an EncodedText, whose vocabulary has the counts of this text.

    words  the vocabulary; ids, bounds: of the documents, as returned by Marks.bounds
    """
    data = np.ascontiguousarray(ids).data.cast("B")
    spans = 4 * np.stack([bounds[order], bounds[order + 1]], 1)
    file = tempfile.TemporaryFile(prefix="tiedtools-")
    file.writelines(data[start:end] for start, end in spans.tolist())
    file.flush()
    text = EncodedText(Vocab(words, np.zeros(len(words), np.int64)), file, os.fstat(file.fileno()).st_size // 4, 0)
    for part in text.parts():
        text.vocab.counts += np.bincount(part, minlength=len(words))
    return text
